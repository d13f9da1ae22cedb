"""recompute: the whole way, from a training step as a framework lowers it to the same step in less memory.

inline -> mark (with the phases) -> clone -> cse -> verify -> lower
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import region_dce

from ..analysis.functions import functions_of
from ..analysis.liveness import timeline
from ..analysis.phases import phases
from ..analysis.policy import explicit_mark
from ..analysis.units import Unit, is_copy
from ..dialects.context import tell
from ..dialects.diagnostics import Refusal, Remark
from .clone import clone
from .cse import cse
from .inline import inline
from .lower import TARGETS, lower
from .mark import mark
from .verify import verify, verify_input


@dataclass(frozen=True)
class Recomputation:
    """What was done: the units in the order of the backward pass, and the reasons for what was left alone."""

    units: tuple[Unit, ...]
    remarks: tuple[Remark, ...]

    @property
    def copies(self) -> int:
        return sum(len(unit.originals) for unit in self.units)

    @property
    def extra_flops(self) -> int:
        return sum(unit.extra_flops for unit in self.units)


def recompute(module: ModuleOp, regions: str = "auto", target: str = "stablehlo") -> Recomputation:
    """Recompute the chosen regions of every step in the module, in place.

    The module stays as it is, and a remark says why, when it has been recomputed already, when nothing can be
    recomputed, and when the policy's choice does not lower the peak in program order.

    Raises `Refusal` when there is no gradient, no such region, or when the result breaks an invariant.
    """
    work = module.clone()
    inline(work)
    drop_dead(work)
    if any(is_copy(op) for op in work.walk()):
        return _unchanged(module, [], "the step has copies already, from an earlier run")
    forced = any(explicit_mark(op) for op in work.walk())
    before = peak_bytes(work)
    remarks = mark(work, regions)
    cloned = clone(work)
    remarks = [*remarks, *cloned.remarks]
    if not cloned.units:
        return _unchanged(module, remarks, "nothing is recomputed")
    cse(work)
    verify(work)
    after = peak_bytes(work)
    if after >= before and not forced:
        return _unchanged(module, remarks, f"recomputing takes the peak from {before} to {after} bytes")
    lower(work, target)
    # Without a target that can order operations, program order is all that holds the copies back.
    (verify_input if target == "none" else verify)(work)
    _replace(module, work)
    return Recomputation(cloned.units, tuple(remarks))


def drop_dead(module: ModuleOp) -> None:
    """Dead code reads values too, and would make outputs of what nobody needs."""
    for function in functions_of(module):
        region_dce(function.body)


def peak_bytes(module: ModuleOp) -> int:
    """The highest peak of temporaries among the functions of an inlined module."""
    return max(timeline(function, phases(function)).peak_bytes for function in functions_of(module))


def _unchanged(module: ModuleOp, remarks: Sequence[Remark], reason: str) -> Recomputation:
    said = Remark(functions_of(module)[0], f"{reason}: the step is left as it is")
    return Recomputation((), (*remarks, said))


def _replace(module: ModuleOp, work: ModuleOp) -> None:
    """Give the module the content of `work`."""
    for op in list(module.ops):
        op.detach()
        op.erase()
    for op in list(work.ops):
        op.detach()
        module.body.block.add_op(op)


@dataclass(frozen=True)
class RecomputePass(ModulePass):
    """Recompute regions of a training step: inline, mark, clone, clean up, verify, lower."""

    name = "recompute"

    regions: str = "auto"
    target: str = "stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise Refusal(op, f"unknown target '{self.target}'; known are {', '.join(TARGETS)}")
        tell(ctx, recompute(op, self.regions, self.target).remarks)
