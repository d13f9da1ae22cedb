"""recompute-phase: write the phase of every operation of a training step as `recompute.phase`.

%1 = stablehlo.tanh %0 {recompute.phase = "primal"}
%2 = stablehlo.multiply %ct, %1 {recompute.phase = "gradient"}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ..analysis.step.functions import functions_of
from ..analysis.step.phases import Phases, phases
from ..analysis.step.step import Step
from ..dialects.diagnostics import Refusal
from ..dialects.recompute import Names
from ..dialects.stopwatch import part

NO_GRADIENT = (
    'no gradient found: no location says transpose(jvp(...)) and no operation has recompute.phase = "gradient"; '
    "keep the locations when lowering (JAX: as_text(debug_info=True); here: --print-debuginfo) or set the attribute"
)


def steps_of(module: ModuleOp) -> Iterator[tuple[FuncOp, Phases]]:
    """The functions with a gradient. Raises `Refusal` when there is none."""
    found = False
    for function in functions_of(module):
        if (classified := phases(function)) is not None:
            found = True
            yield function, classified
    if not found:
        raise Refusal(next(iter(functions_of(module)), module), NO_GRADIENT)


Steps = Sequence[tuple[FuncOp, Step]]
"""The functions with a gradient, numbered; valid until the module is changed."""


def numbered_steps(module: ModuleOp, bare: bool = False) -> Steps:
    """`bare`: for who does not plan. Raises `Refusal` when there is none, and for storages of unknown size."""
    with part("phases"):
        classified = list(steps_of(module))
    with part("graph"):
        return [(function, Step.of(found, bare)) for function, found in classified]


def annotate_phases(module: ModuleOp) -> None:
    for _, classified in steps_of(module):
        for op, phase in classified.phase.items():
            op.attributes[Names.PHASE] = StringAttr(phase)


@dataclass(frozen=True)
class PhasePass(ModulePass):
    """Classify operations as primal, residual, gradient or update."""

    name = "recompute-phase"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        annotate_phases(op)
