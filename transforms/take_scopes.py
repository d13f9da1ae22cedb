"""recompute-take-scopes: convert scopes, which a frontend opens around marked calls, to attributes of operations.

    %0 = stablehlo.sine %x loc("jit(step)/jvp(recompute:block@3)/sin")
    %1 = stablehlo.exponential %0 loc("jit(step)/jvp(recompute:block@3)/recompute.save:exp@4/exp")

becomes

    %0 = stablehlo.sine %x {recompute.segment = "block"}
    %1 = stablehlo.exponential %0 {recompute.segment = "block", recompute.recompute = false}

`analysis/request/scope_names.py` defines the names of such scopes. If segments are nested, the outermost segment
applies. The innermost scope determines whether an operation is kept or recomputed. A `recompute.again` scope outside
all segments forms its own segment. A conditional belongs to the segment of one of its branches. An operation whose
region contains a kept operation is kept, because it can only be copied as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.request.scope_names import CallTreatment, MarkedCall, Switches, parse_scope
from ..analysis.request.scope_repetitions import numbered_repetitions
from ..analysis.step.direction import Direction
from ..analysis.step.jax_paths import path_of, scope_of
from ..analysis.step.order import functions_of
from ..dialects.mark_kind import MarkKind
from ..dialects.names import Names
from ..dialects.result_marks import decided_mark
from ..rules.effects import BRANCHES
from ..support.diagnostics import Refusal
from ..support.operations import every_operation, name_of
from .attributes.switches import propagate_switches

DECISIONS = {
    CallTreatment.SAVE: decided_mark([False]),
    CallTreatment.AGAIN: StringAttr(MarkKind.MUST_RECOMPUTE.value),
}


@dataclass(frozen=True)
class _Scopes:
    """The marked calls that apply to an operation: one determines the segment of the operation, the other whether the
    operation is kept or recomputed."""

    segment: MarkedCall | None
    decision: MarkedCall | None


def take_scopes(module: ModuleOp) -> int:
    """Write attributes for the scopes of marked calls. Return the number of operations in such scopes.

    Raises:
        Refusal: A scope has an unknown switch.
    """
    scope_count = 0
    for function in functions_of(module):
        scopes = {op: scope for op in every_operation(function) if (scope := _scopes_of(op)) is not None}
        if scopes:
            _write_attributes(scopes)
            scope_count += len(scopes)
    return scope_count


def _scopes_of(op: Operation) -> _Scopes | None:
    """Return the marked calls that apply to an operation; None if there are none, as in the backward pass."""
    calls = list(_marked_calls(op))
    inside = list[list[MarkedCall]]()
    if op.regions:
        inside = [inner_calls for inner in every_operation(op)[1:] if (inner_calls := list(_marked_calls(inner)))]
    if not calls and inside and name_of(op) in BRANCHES:
        calls = inside[0]
    save_call = next(
        (
            call
            for inner_calls in inside
            for call in inner_calls
            if call.kind is CallTreatment.SAVE and call not in calls
        ),
        None,
    )
    if not calls and save_call is None:
        return None
    decision = save_call or next((call for call in reversed(calls) if call.kind in DECISIONS), None)
    segment = next((call for call in calls if call.kind is CallTreatment.SEGMENT), None)
    if segment is None and decision is not None and decision.kind is CallTreatment.AGAIN:
        segment = decision
    return _Scopes(segment, decision)


def _marked_calls(op: Operation) -> Iterator[MarkedCall]:
    """Yield the marked calls whose scopes contain the operation, the outermost first."""
    if ":" not in path_of(op.location):
        return
    scope = scope_of(op.location)
    if scope.direction is Direction.BACKWARD:
        return
    for part in scope.path:
        try:
            call = parse_scope(part)
        except ValueError as error:
            raise Refusal(op, str(error)) from error
        if call is not None:
            yield call


def _write_attributes(scopes_of: Mapping[Operation, _Scopes]) -> None:
    segments = _segments({op: scopes.segment for op, scopes in scopes_of.items() if scopes.segment is not None})
    for op, scopes in scopes_of.items():
        if scopes.decision is not None:
            op.attributes.setdefault(Names.RECOMPUTE, DECISIONS[scopes.decision.kind])
        if scopes.segment is not None:
            op.attributes.setdefault(Names.SEGMENT, StringAttr(segments[op]))
            propagate_switches([op], _as_attributes(scopes.segment.switches))
            if scopes.segment.switches.output_recompute:
                op.attributes.setdefault(Names.RECOMPUTE, decided_mark([True]))


def _segments(called: Mapping[Operation, MarkedCall]) -> dict[Operation, str]:
    """Return the segment name of each operation. Calls with the same name are numbered in program order: `block`,
    `block#1`, `block#2`."""
    calls = numbered_repetitions({op: (call.name, str(call.number)) for op, call in called.items()})
    names, last_numbers = dict[str, str](), dict[str, int]()
    for op, call in calls.items():
        if call not in names:
            name = called[op].name
            number = last_numbers[name] = last_numbers.get(name, -1) + 1
            names[call] = f"{name}#{number}" if number else name
    return {op: names[call] for op, call in calls.items()}


def _as_attributes(switches: Switches) -> dict[str, bool]:
    return {Names.PREFIX + name: value for name, value in asdict(switches).items()}


@dataclass(frozen=True)
class TakeScopesPass(ModulePass):
    name = "recompute-take-scopes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        take_scopes(op)
