"""recompute-mark: turn a policy into marks. Marked operations are the ones that `recompute-clone` copies.

`regions=auto` or `regions=<pattern>` marks the inside of every region that is worth it:

    %1 = stablehlo.dot_general ... {recompute.region = "block0", recompute.recompute = true}
    %2 = stablehlo.add ...         {recompute.region = "block0", recompute.checkpoint}       // an output: kept

An explicit `recompute.recompute` on an operation is left as it is. Segments are flattened into such marks first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, BoolAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.passes import ModulePass

from ..analysis.marks import is_forced
from ..analysis.policy import Decision, decide, explicit_mark
from ..analysis.regions import NoSuchRegion
from ..dialects.context import tell
from ..dialects.diagnostics import Refusal, Remark
from ..dialects.recompute import Names
from ..rules.names import name_of
from .inline_segments import inline_segments
from .phase import steps_of


def mark(module: ModuleOp, regions: str, outputs: bool = False) -> list[Remark]:
    """Mark what the policy chooses; returns a remark for each region that is left alone.

    `regions` is `auto` or a shell-style pattern; with `outputs` what leaves a region is recomputed too. Raises
    `Refusal` when there is no gradient or no such region.
    """
    inline_segments(module)
    remarks = list[Remark]()
    for function, phases in steps_of(module):
        try:
            decisions = decide(phases, regions, outputs)
        except NoSuchRegion as error:
            raise Refusal(function, str(error)) from error
        if not any(decision.region for decision in decisions) and not any(explicit_mark(op) for op in function.walk()):
            remarks.append(Remark(function, "no regions: the locations name no scope (see jax.named_scope)"))
        for decision in decisions:
            _write(decision)
        remarks.extend(_left_alone(decisions))
    return remarks


def _write(decision: Decision) -> None:
    if not decision.recomputed:
        _settle(decision)
        return
    for op in decision.operations:
        wanted = [result in decision.values for result in op.results]
        if decision.region:
            op.attributes[Names.REGION] = StringAttr(decision.region)
        if not any(wanted):
            op.attributes[Names.CHECKPOINT] = UnitAttr()
        elif explicit_mark(op) is None:
            marks = [BoolAttr.from_bool(one) for one in wanted]
            op.attributes[Names.RECOMPUTE] = marks[0] if all(wanted) else ArrayAttr(marks)
            op.attributes.pop(Names.CHECKPOINT, None)


def _settle(decision: Decision) -> None:
    """A preference gives way where recomputing saves nothing: it is kept, and the mark says so from now on."""
    for op in decision.operations:
        if explicit_mark(op) and not is_forced(op):
            op.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(False)


def _left_alone(decisions: Iterable[Decision]) -> list[Remark]:
    return [Remark(d.first, f"{_what(d)} is not recomputed: {d.reason}") for d in decisions if d.reason]


def _what(decision: Decision) -> str:
    return f"region '{decision.region}'" if decision.region else f"{name_of(decision.first)}, which is preferred,"


@dataclass(frozen=True)
class MarkPass(ModulePass):
    """Mark operations by policy; `regions` is `auto` or a pattern such as `block*`; `outputs` marks outputs too."""

    name = "recompute-mark"

    regions: str = "auto"
    outputs: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, mark(op, self.regions, self.outputs))
