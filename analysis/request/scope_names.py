"""Marks on function calls, encoded in the name of a scope around the call.

    jit(step)/jvp(recompute:block@3+output_recompute)/dot_general    in segment `block`; its outputs are recomputed too
    jit(step)/jvp(recompute:block@3)/recompute.save:exp@4/exp        inside the segment, but saved

A frontend opens such a scope, with a unique number, around each marked call; `recompute-take-scopes` turns the scopes
into attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum


class CallTreatment(Enum):
    """The treatment of a call's operations: whether they form a segment, are all recomputed, or are all saved."""

    SEGMENT = "recompute"
    AGAIN = "recompute.again"
    SAVE = "recompute.save"


@dataclass(frozen=True)
class Switches:
    """Options of one segment, as in MindSpore's `Cell.recompute` and Paddle's `recompute`.

    Attributes:
        output_recompute: Also recompute the outputs of the segment.
        mp_comm_recompute: Allow collectives that all devices execute equally often to be repeated, except collectives
            that gather parameters.
        parallel_optimizer_comm_recompute: Allow collectives that gather parameters (all-gathers of an argument) to be
            repeated.
        recompute_slice_activation: Shard the inputs of the segment over the devices of a mesh while they are saved.
        preserve_rng_state: Never repeat operations that draw from a hidden random state; False permits new draws.
    """

    output_recompute: bool = False
    mp_comm_recompute: bool = True
    parallel_optimizer_comm_recompute: bool = False
    recompute_slice_activation: bool = False
    preserve_rng_state: bool = True


DEFAULT = Switches()


@dataclass(frozen=True)
class MarkedCall:
    """A call that is marked by the scope around it.

    Attributes:
        name: The name of the called function.
        number: The unique id of the call.
        kind: The treatment of its operations.
        switches: The options of its segment.
    """

    name: str
    number: int
    kind: CallTreatment = CallTreatment.SEGMENT
    switches: Switches = DEFAULT


_NOT_IN_A_NAME = re.compile(r"[^\w.]+")
_CALLED = re.compile(r"(recompute(?:\.again|\.save)?):([\w.]+)@(\d+)((?:[+-]\w+)*)")


def format_scope(called: MarkedCall) -> str:
    """Return the name of the scope that marks a call; switches with their default value are omitted."""
    name = _NOT_IN_A_NAME.sub("_", called.name).strip("_") or "function"
    return f"{called.kind.value}:{name}@{called.number}{''.join(_changed_switches(called.switches))}"


def _changed_switches(switches: Switches) -> Iterator[str]:
    for field in fields(switches):
        value = getattr(switches, field.name)
        if value != field.default:
            yield f"{'+' if value else '-'}{field.name}"


def parse_scope(scope: str) -> MarkedCall | None:
    """Parse the name of a scope, or return None if it does not mark a call.

    Raises:
        ValueError: The scope has an unknown switch.
    """
    if (match := _CALLED.fullmatch(scope)) is None:
        return None
    kind, name, number, switch_text = match.groups()
    switches = {switch[1:]: switch[0] == "+" for switch in re.findall(r"[+-]\w+", switch_text)}
    valid_names = {field.name for field in fields(Switches)}
    if unknown := switches.keys() - valid_names:
        raise ValueError(
            f"scope '{scope}': unknown switch '{min(unknown)}'; expected one of {', '.join(sorted(valid_names))}"
        )
    return MarkedCall(name, int(number), CallTreatment(kind), Switches(**switches))
