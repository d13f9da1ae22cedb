"""Collectives as functions: where all devices come alike, what each gets depends on what all put in, and on no more.

So a second exchange of the same values gives the same. That does not hold inside of a branch or a loop, which one
device may enter and another may not: there a collective is an effect, as everything is that is not understood.
"""

from __future__ import annotations

import re
from collections import Counter

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from ..dialects.every import every_operation
from .anatomy import attributes_of, name_of
from .scope import Scope

_NAMES = "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter"
COLLECTIVES = frozenset(f"stablehlo.{name}" for name in _NAMES.split())
CHANNEL = "channel_handle"
"""The number of one exchange. Whether there is one, above zero, says between whom; which one it is, nothing."""
_NUMBER = re.compile(r"(handle\s*=\s*)[1-9]\d*\b")


def is_exchange(op: Operation, scope: Scope) -> bool:
    """Whether it is a collective to which all devices come alike."""
    return scope.is_alike and not scope.literal and name_of(op) in COLLECTIVES


def what_counts(op: Operation, scope: Scope) -> dict[str, Attribute]:
    """The attributes on which the results depend. Raises `Refusal`."""
    attributes = attributes_of(op)
    if not is_exchange(op, scope) or CHANNEL not in attributes:
        return attributes
    return attributes | {CHANNEL: StringAttr(_NUMBER.sub(r"\1some", str(attributes[CHANNEL])))}


def shared_channels(module: Operation) -> set[str]:
    """Channels that several collectives go by, as text: as attributes those of two programs would not be equal."""
    collectives = (op for op in every_operation(module) if name_of(op) in COLLECTIVES)
    found = Counter(str(said[CHANNEL]) for said in map(attributes_of, collectives) if CHANNEL in said)
    return {channel for channel, times in found.items() if times > 1}
