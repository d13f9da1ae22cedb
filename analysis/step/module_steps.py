"""The training steps of a module: its functions with a gradient, or a refusal that explains why none was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...rules.costs.cost import CostsOf
from ...support.counted import counted
from ...support.diagnostics import Refusal
from ...support.interface import interface_wording, option
from ...support.operations import every_operation
from ...support.timing import part
from .direction import Direction
from .graph_of import NumberedGraph
from .jax_paths import path_of, scope_of, transpositions
from .order import functions_of
from .phases import Phases, phases
from .step import Step, Steps

NO_LOCATIONS = (
    'no gradient found: no location names transpose(jvp(...)) and no operation has recompute.phase = "gradient"; '
    "keep the locations when lowering (JAX: as_text(debug_info=True){here}), name the results of "
    "the forward pass ({results}=0), or set the attribute"
)
FORWARD_ONLY = (
    "no gradient found: the locations name {forward} of a forward pass, but no operations of its gradient; "
    "differentiate first (JAX: lower jax.grad or jax.value_and_grad of the function)"
)
FORWARD_OVER_REVERSE = (
    "the gradient is taken inside a derivative in forward mode (jax.jvp or jax.linearize of jax.grad, as in a "
    "Hessian-vector product), and all of it runs in the forward pass of that derivative, where nothing is recomputed; "
    "put jax.checkpoint around the blocks of the function, or take the derivative in reverse mode "
    "(jax.vjp of jax.grad), which is recomputed"
)
NOT_DIFFERENTIATED = (
    "no gradient found: the locations name operations, but none of them is under jvp or transpose, so JAX has not "
    "differentiated this program; lower jax.grad or jax.value_and_grad of the function, or name the results of the "
    "forward pass ({results}=0)"
)


class NoGradient(Refusal):
    """Refusal of a module that contains no gradient."""


class ForwardOverReverse(NoGradient):
    """Refusal of a gradient inside a forward-mode derivative, whose forward pass includes this gradient."""

    def __init__(self, op: Operation):
        super().__init__(op, FORWARD_OVER_REVERSE)


def steps_of(module: ModuleOp) -> Iterator[tuple[FuncOp, Phases]]:
    """Yield each function with a gradient, and its phases.

    Raises:
        NoGradient: No function has a gradient.
        Refusal: The phases of a function contradict each other.
    """
    has_gradient = False
    for function in functions_of(module):
        if (classified := phases(function)) is not None:
            has_gradient = True
            yield function, classified
    if not has_gradient:
        raise _no_gradient(next(iter(functions_of(module)), module), module)


def _no_gradient(place: Operation, module: ModuleOp) -> NoGradient:
    """Return the refusal for a module without a gradient. It is reported at `place`."""
    operations = [op for function in functions_of(module) for op in every_operation(function)]
    forward = sum(scope_of(op.location).direction is Direction.FORWARD for op in operations)
    if forward and any((transpositions(path_of(op.location)) or 0) > 0 for op in operations):
        return ForwardOverReverse(place)
    if forward:
        return NoGradient(place, FORWARD_ONLY.format(forward=counted(forward, "operation")))
    # A loop may already contain copies, whose locations name a transpose although the input has no locations.
    paths = [path for op in operations if (path := path_of(op.location))]
    names_only = paths and all(transpositions(path) is None for path in paths)
    reason = NOT_DIFFERENTIATED if names_only else NO_LOCATIONS
    here = interface_wording("; here: --print-debuginfo", "")
    return NoGradient(place, reason.format(here=here, results=option("primal-results")))


def numbered_steps(
    module: ModuleOp,
    bare: bool = False,
    costs: CostsOf | None = None,
    graphs: Mapping[FuncOp, NumberedGraph] = MappingProxyType({}),
) -> Steps:
    """Return the steps of the module, each with its function, its phases and its graph.

    Args:
        module: The module.
        bare: Whether to omit the data that only planners read.
        costs: The recomputation costs that planners minimize, as in `graph_of`.
        graphs: Known graphs of functions, without phases; the graphs of other functions are computed.

    Raises:
        Refusal: There is no gradient, a storage has an unknown size, or an operation has no cost.
    """
    with part("phases"):
        classified = list(steps_of(module))
    with part("graph"):
        return [
            (function, Step.with_graph(step_phases, graphs[function]))
            if function in graphs
            else (function, Step.of(step_phases, bare, costs))
            for function, step_phases in classified
        ]
