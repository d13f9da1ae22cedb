"""recompute: the whole way, from a training step as a framework lowers it to the same step in less memory.

inline -> mark (with the phases) -> clone -> cse -> verify -> lower
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.functions import functions_of
from ..analysis.units import Unit
from ..dialects.diagnostics import Refusal, Remark, emit
from .clone import clone
from .cse import cse
from .inline import inline
from .lower import TARGETS, lower
from .mark import mark
from .verify import verify


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

    Raises `Refusal` when there is no gradient, no such region, or when the result breaks an invariant.
    """
    inline(module)
    remarks = mark(module, regions)
    cloned = clone(module)
    cse(module)
    verify(module)
    lower(module, target)
    verify(module)
    remarks = [*remarks, *cloned.remarks]
    if not cloned.units:
        remarks.append(Remark(functions_of(module)[0], "nothing is recomputed: the step is unchanged"))
    return Recomputation(cloned.units, tuple(remarks))


@dataclass(frozen=True)
class RecomputePass(ModulePass):
    """Recompute regions of a training step: inline, mark, clone, clean up, verify, lower."""

    name = "recompute"

    regions: str = "auto"
    target: str = "stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.target not in TARGETS:
            raise Refusal(op, f"unknown target '{self.target}'; known are {', '.join(TARGETS)}")
        emit(recompute(op, self.regions, self.target).remarks)
