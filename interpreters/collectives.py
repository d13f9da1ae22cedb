"""Collectives as functions: where all devices come alike, what each gets depends on what all put in, and on no more.

So a second exchange of the same values gives the same. That does not hold inside of a branch or a loop, which one
device may enter and another may not: there a collective is an effect, as everything is that is not understood.
"""

from __future__ import annotations

import re
from collections import Counter

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ..dialects.every import every_operation
from .anatomy import attributes_of, callee_of, functions_of, name_of, public_functions
from .scope import Scope

_NAMES = "all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter"
COLLECTIVES = frozenset(f"stablehlo.{name}" for name in _NAMES.split())
CHANNEL = "channel_handle"
"""The number of one exchange. Whether there is one, above zero, says between whom; which one it is, nothing."""
_NUMBER = re.compile(r"(handle\s*=\s*)[1-9]\d*\b")
_POSITIVE = re.compile(r"\bhandle\s*=\s*([1-9]\d*)\b")
CALL = "func.call"


def is_exchange(op: Operation, scope: Scope) -> bool:
    """Whether it is a collective to which all devices come alike."""
    return scope.is_alike and not scope.literal and name_of(op) in COLLECTIVES


def what_counts(op: Operation, scope: Scope) -> dict[str, Attribute]:
    """The attributes on which the results depend. Raises `Refusal`."""
    attributes = attributes_of(op)
    if not is_exchange(op, scope) or CHANNEL not in attributes:
        return attributes
    return attributes | {CHANNEL: StringAttr(_NUMBER.sub(r"\1some", str(attributes[CHANNEL])))}


def shared_channels(module: ModuleOp) -> set[int]:
    """Channels that several operations go by once calls are inlined, `send` and the like among them: a function with
    an exchange that is called twice is two exchanges. Raises `Refusal` for a call of what does not exist."""
    functions, counted = functions_of(module), dict[str, Counter[int]]()

    def channels_of(name: str) -> Counter[int]:
        if name not in counted:
            counted[name] = Counter[int]()
            for op in every_operation(functions[name]):
                counted[name].update(_channels(op) if name_of(op) != CALL else channels_of(callee_of(op, functions)))
        return counted[name]

    found = sum(map(channels_of, public_functions(functions)), Counter[int]())
    return {channel for channel, times in found.items() if times > 1}


def _channels(op: Operation) -> list[int]:
    """The channel of an operation, if it has one: its number, whatever else is said of it."""
    match = _POSITIVE.search(str(op.properties.get(CHANNEL, op.attributes.get(CHANNEL, ""))))
    return [int(match[1])] if match else []
