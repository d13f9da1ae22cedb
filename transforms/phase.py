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

from ..analysis.step.direction import Direction
from ..analysis.step.functions import functions_of, single_block
from ..analysis.step.jax_paths import path_of, scope_of, transpositions
from ..analysis.step.order import Order
from ..analysis.step.phases import Phases, phases
from ..analysis.step.phases_by_results import phases_by_results
from ..analysis.step.step import Step
from ..dialects.diagnostics import Refusal
from ..dialects.every import every_operation
from ..dialects.recompute import Names
from ..dialects.stopwatch import part
from ..rules.costs.cost import CostsOf
from .plans.nested_steps import nested_steps_apart

NO_LOCATIONS = (
    'no gradient found: no location says transpose(jvp(...)) and no operation has recompute.phase = "gradient"; '
    "keep the locations when lowering (JAX: as_text(debug_info=True); here: --print-debuginfo), say which results are "
    "the forward pass's (primal-results=0), or set the attribute"
)
FORWARD_ONLY = (
    "no gradient found: the locations name {forward} operations of a forward pass and none of its gradient; "
    "differentiate first (JAX: lower jax.grad or jax.value_and_grad of the function)"
)
FORWARD_OVER_REVERSE = (
    "the gradient is taken inside of a derivative in forward mode (jax.jvp or jax.linearize of jax.grad, as in a "
    "Hessian-vector product), and all of it runs in the forward pass of that derivative: nothing is recomputed there; "
    "put jax.checkpoint around the blocks of the function, or take the derivative in reverse mode "
    "(jax.vjp of jax.grad), which is recomputed"
)
NOT_DIFFERENTIATED = (
    "no gradient found: the locations name operations, and none of them under jvp or transpose: nothing here was "
    "differentiated by JAX; lower jax.grad or jax.value_and_grad of the function, or say which results are the forward "
    "pass's (primal-results=0)"
)


class NoGradient(Refusal):
    """Nothing in the module is a gradient."""


def steps_of(module: ModuleOp) -> Iterator[tuple[FuncOp, Phases]]:
    """The functions with a gradient. Raises `NoGradient` when there is none, and the refusals of `phases`."""
    found = False
    for function in functions_of(module):
        if (classified := phases(function)) is not None:
            found = True
            yield function, classified
    if not found:
        raise NoGradient(next(iter(functions_of(module)), module), _why_none(module))


def _why_none(module: ModuleOp) -> str:
    operations = [op for function in functions_of(module) for op in every_operation(function)]
    forward = sum(scope_of(op.location).direction is Direction.FORWARD for op in operations)
    if forward and any((transpositions(path_of(op.location)) or 0) > 0 for op in operations):
        return FORWARD_OVER_REVERSE
    if forward:
        return FORWARD_ONLY.format(forward=forward)
    return NOT_DIFFERENTIATED if any(path_of(op.location) for op in operations) else NO_LOCATIONS


Steps = Sequence[tuple[FuncOp, Step]]
"""The functions with a gradient, numbered; valid until the module is changed."""


def numbered_steps(module: ModuleOp, bare: bool = False, costs: CostsOf | None = None) -> Steps:
    """`bare`: for who does not plan. `costs`: for who plans, as in `graph_of`.

    Raises `Refusal` when there is none, for storages of unknown size, and for operations without a cost.
    """
    with part("phases"):
        classified = list(steps_of(module))
    with part("graph"):
        return [(function, Step.of(found, bare, costs)) for function, found in classified]


def state_phases(module: ModuleOp, results: Sequence[int], cotangents: Sequence[int]) -> None:
    """Write the phases that follow from which results are primal; nothing where nothing is said of that.

    Raises `Refusal` where that does not fit a function.
    """
    for function in functions_of(module) if results or cotangents else ():
        order = Order.of(single_block(function))
        for op, phase in phases_by_results(order, results, cotangents).items():
            op.attributes[Names.PHASE] = StringAttr(phase)


def annotate_phases(module: ModuleOp) -> None:
    for _, classified in steps_of(module):
        for op, phase in classified.phase.items():
            op.attributes[Names.PHASE] = StringAttr(phase)


@dataclass(frozen=True)
class PhasePass(ModulePass):
    """Classify operations as primal, residual, gradient or update.

    primal_results: numbers of the results that the forward pass makes, for steps whose operations say nothing.
    cotangents: numbers of the arguments that are cotangents, which says the same.
    """

    name = "recompute-phase"

    primal_results: tuple[int, ...] = ()
    cotangents: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        state_phases(op, self.primal_results, self.cotangents)
        with nested_steps_apart(op):
            annotate_phases(op)
