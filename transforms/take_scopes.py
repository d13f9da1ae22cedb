"""recompute-take-scopes: segments that a framework marks where a function is called become attributes.

    %0 = stablehlo.sine %x loc("jit(step)/jvp(recompute:block@3)/sin")
    %1 = stablehlo.exponential %0 loc("jit(step)/jvp(recompute:block@3)/recompute.save:exp@4/exp")

    %0 = stablehlo.sine %x {recompute.segment = "block"}
    %1 = stablehlo.exponential %0 {recompute.segment = "block", recompute.recompute = false}

`analysis/request/called.py` has the names of such scopes. Of segments inside of one another the outermost counts; what
is kept or run again inside of it is said by the innermost. What is run again outside of every segment is one itself.
A conditional is in the segment that one of its branches is in; what holds an operation that is kept is kept as a whole,
for it is copied as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.request.called import Called, Kind, Switches, read
from ..analysis.request.segments import numbered_repetitions
from ..analysis.request.switches import hand_on
from ..analysis.step.direction import Direction
from ..analysis.step.functions import functions_of
from ..analysis.step.jax_paths import path_of, scope_of
from ..analysis.step.marks import Policy
from ..dialects.recompute import Names
from ..rules.names import name_of
from ..support.diagnostics import Refusal
from ..support.walk import every_operation

BRANCHES = frozenset({"stablehlo.case", "stablehlo.if", "scf.if", "scf.index_switch"})
SAYS = {Kind.SAVE: BoolAttr.from_bool(False), Kind.AGAIN: StringAttr(Policy.MUST_RECOMPUTE.value)}


@dataclass(frozen=True)
class _Said:
    """Of one operation: its segment, and what is said of it alone."""

    segment: Called | None
    alone: Called | None


def take_scopes(module: ModuleOp) -> int:
    """Write the attributes; returns how many operations have some. Raises `Refusal` for a switch that nobody knows."""
    taken = 0
    for function in functions_of(module):
        said = {op: one for op in every_operation(function) if (one := _said_of(op)) is not None}
        if said:
            _write(said)
            taken += len(said)
    return taken


def _said_of(op: Operation) -> _Said | None:
    """None for what stands in no such scope, or in the backward pass."""
    found, inside = list(_calls(op)), list[list[Called]]()
    if op.regions:
        inside = [calls for inner in every_operation(op)[1:] if (calls := list(_calls(inner)))]
    if not found and inside and name_of(op) in BRANCHES:
        found = inside[0]
    kept = next((call for calls in inside for call in calls if call.kind is Kind.SAVE and call not in found), None)
    if not found and kept is None:
        return None
    alone = kept or next((one for one in reversed(found) if one.kind in SAYS), None)
    segment = next((one for one in found if one.kind is Kind.SEGMENT), None)
    if segment is None and alone is not None and alone.kind is Kind.AGAIN:
        segment = alone
    return _Said(segment, alone)


def _calls(op: Operation) -> Iterator[Called]:
    """The scopes around the operation that mark a call, from the outside in."""
    if ":" not in path_of(op.location):
        return
    scope = scope_of(op.location)
    if scope.direction is Direction.BACKWARD:
        return
    for part in scope.path:
        try:
            one = read(part)
        except ValueError as error:
            raise Refusal(op, str(error)) from error
        if one is not None:
            yield one


def _write(said: Mapping[Operation, _Said]) -> None:
    segments = _segments({op: one.segment for op, one in said.items() if one.segment is not None})
    for op, one in said.items():
        if one.alone is not None:
            op.attributes.setdefault(Names.RECOMPUTE, SAYS[one.alone.kind])
        if one.segment is not None:
            op.attributes.setdefault(Names.SEGMENT, StringAttr(segments[op]))
            hand_on([op], _as_attributes(one.segment.switches))
            if one.segment.switches.output_recompute:
                op.attributes.setdefault(Names.RECOMPUTE, BoolAttr.from_bool(True))


def _segments(called: Mapping[Operation, Called]) -> dict[Operation, str]:
    """A segment for each call, in the order of the program: `block`, `block#1`, and so on."""
    calls = numbered_repetitions({op: (one.name, str(one.number)) for op, one in called.items()})
    names, taken = dict[str, str](), dict[str, int]()
    for op, call in calls.items():
        if call not in names:
            name = called[op].name
            number = taken[name] = taken.get(name, -1) + 1
            names[call] = f"{name}#{number}" if number else name
    return {op: names[call] for op, call in calls.items()}


def _as_attributes(switches: Switches) -> dict[str, bool]:
    return {Names.PREFIX + name: value for name, value in asdict(switches).items()}


@dataclass(frozen=True)
class TakeScopesPass(ModulePass):
    """Turn scopes that a framework opens around marked calls into attributes."""

    name = "recompute-take-scopes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        take_scopes(op)
