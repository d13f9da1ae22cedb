"""Assign new channel ids to copied collectives. A copy with the channel id of its original would take part in the
original's exchange."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, Operation

from ..support.operations import every_operation

_HANDLE = re.compile(r"(handle\s*=\s*)(\d+)")
CHANNEL = "channel_handle"


def free_channels(root: Operation) -> Iterator[int]:
    """Yield channel ids that are greater than every id in use in `root`."""
    used = (number for op in every_operation(root) if (number := channel_of(op)) is not None)
    return count(max(used, default=0) + 1)


def channel_of(op: Operation) -> int | None:
    if (channel := _channel(op)) is None:
        return None
    match = _HANDLE.search(_text(channel))
    return int(match[2]) if match else None


def take_channels(copies: Iterable[Operation], channels: Iterator[int]) -> None:
    """Assign a new channel to each collective among the copies and in their regions."""
    for copy in copies:
        for op in every_operation(copy):
            _take_channel(op, channels)


def _take_channel(copy: Operation, channels: Iterator[int]) -> None:
    """Replace the channel id of an operation. An operation with id 0 has no channel and is not changed."""
    attribute = _channel(copy)
    if not isinstance(attribute, UnregisteredAttr) or not channel_of(copy):
        return
    text = _HANDLE.sub(lambda match: f"{match[1]}{next(channels)}", attribute.value.data)
    changed = type(attribute)(attribute.attr_name, attribute.is_type, attribute.is_opaque, text)
    for holder in (copy.attributes, copy.properties):
        if CHANNEL in holder:
            holder[CHANNEL] = changed


def _channel(op: Operation) -> Attribute | None:
    return op.attributes.get(CHANNEL, op.properties.get(CHANNEL))


def _text(attribute: Attribute | None) -> str:
    return attribute.value.data if isinstance(attribute, UnregisteredAttr) else ""
