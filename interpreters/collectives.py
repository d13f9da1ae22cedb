"""Collectives as functions: if all devices run them alike, results depend on the operands of all devices alone.

So a second exchange of the same values has the same results. That does not hold inside of a branch or a loop, which one
device may enter and another may not: there a collective is an effect, like every operation without a rule.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from .anatomy import attributes_of, name_of
from .scope import Exchange, RegionScope

_NAMES = "all_gather all_reduce all_to_all collective_broadcast collective_permute collective_reduce reduce_scatter"
COLLECTIVES = frozenset(f"stablehlo.{name}" for name in _NAMES.split())
CHANNEL = "channel_handle"
"""The number of an exchange. Its presence (above zero) determines the participants; its value has no meaning."""
_NUMBER = re.compile(r"(handle\s*=\s*)[1-9]\d*\b")
_POSITIVE = re.compile(r"\bhandle\s*=\s*([1-9]\d*)\b")


def is_exchange(op: Operation, scope: RegionScope) -> bool:
    """Whether the operation is a collective that all devices run alike."""
    return scope.is_alike and not scope.literal and name_of(op) in COLLECTIVES


def what_counts(op: Operation, scope: RegionScope) -> dict[str, Attribute]:
    """The attributes on which the results depend. Raises `Refusal`."""
    attributes = attributes_of(op)
    if not is_exchange(op, scope) or CHANNEL not in attributes:
        return attributes
    return attributes | {CHANNEL: StringAttr(_NUMBER.sub(r"\1some", str(attributes[CHANNEL])))}


def channels_of(op: Operation) -> list[int]:
    """The channel number of an operation, if it has one; the rest of the handle is ignored."""
    match = _POSITIVE.search(str(op.properties.get(CHANNEL, op.attributes.get(CHANNEL, ""))))
    return [int(match[1])] if match else []


def newly_shared(before: Iterable[Exchange], after: Iterable[Exchange]) -> int | None:
    """A channel of the program after whose operations did not share one before, or None.

    The operations over a channel are a multiset: a function that is called twice runs its exchange twice.
    """
    groups = _by_channel(before)
    for channel, operations in _by_channel(after).items():
        if operations.total() > 1 and not any(operations <= other for other in groups.values()):
            return channel
    return None


def _by_channel(exchanges: Iterable[Exchange]) -> dict[int, Counter[object]]:
    groups = defaultdict[int, Counter[object]](Counter[object])
    for channel, operation in exchanges:
        groups[channel][operation] += 1
    return groups
