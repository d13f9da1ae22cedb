"""Segments that are marked where a function is called, and how the name of a scope spells them.

    jit(step)/jvp(recompute:block@3+output_recompute)/dot_general    in the segment `block`, whose outputs go too
    jit(step)/jvp(recompute:block@3)/recompute.save:exp@4/exp        kept, though it is inside

A framework opens such a scope around the call, each with a number of its own; `recompute-take-scopes` turns them into
attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum


class Kind(Enum):
    """What is said of the operations of a call: they are a segment, they are all run again, or they are kept."""

    SEGMENT = "recompute"
    AGAIN = "recompute.again"
    SAVE = "recompute.save"


@dataclass(frozen=True)
class Switches:
    """What MindSpore's `Cell.recompute` and Paddle's `recompute` say of one segment.

    output_recompute: what leaves it is recomputed too.
    mp_comm_recompute: its collectives may be repeated, on all devices alike, but those that gather parameters.
    parallel_optimizer_comm_recompute: those that gather parameters may be repeated: all-gathers of what is an argument.
    recompute_slice_activation: what it reads is sharded over the devices of a mesh while it is kept.
    preserve_rng_state: operations that draw from a hidden state are never repeated; with False they may draw anew.
    """

    output_recompute: bool = False
    mp_comm_recompute: bool = True
    parallel_optimizer_comm_recompute: bool = False
    recompute_slice_activation: bool = False
    preserve_rng_state: bool = True


DEFAULT = Switches()


@dataclass(frozen=True)
class Called:
    """One call: the name of the function, a number that no other call has, and what is said of it."""

    name: str
    number: int
    kind: Kind = Kind.SEGMENT
    switches: Switches = DEFAULT


_NOT_IN_A_NAME = re.compile(r"[^\w.]+")
_CALLED = re.compile(r"(recompute(?:\.again|\.save)?):([\w.]+)@(\d+)((?:[+-]\w+)*)")


def spelled(called: Called) -> str:
    """The name of its scope: what differs from the defaults is told."""
    name = _NOT_IN_A_NAME.sub("_", called.name).strip("_") or "function"
    return f"{called.kind.value}:{name}@{called.number}{''.join(_told(called.switches))}"


def _told(switches: Switches) -> Iterator[str]:
    for field in fields(switches):
        value = getattr(switches, field.name)
        if value != field.default:
            yield f"{'+' if value else '-'}{field.name}"


def read(scope: str) -> Called | None:
    """The call whose scope it is; None for every other scope. Raises `ValueError` for a switch that nobody knows."""
    if (match := _CALLED.fullmatch(scope)) is None:
        return None
    kind, name, number, told = match.groups()
    said = {switch[1:]: switch[0] == "+" for switch in re.findall(r"[+-]\w+", told)}
    known = {field.name for field in fields(Switches)}
    if unknown := said.keys() - known:
        raise ValueError(f"'{scope}' has no switch '{min(unknown)}'; known are {', '.join(sorted(known))}")
    return Called(name, int(number), Kind(kind), Switches(**said))
