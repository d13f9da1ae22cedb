"""recompute-phase: write the phase of every operation of a training step in the attribute `recompute.phase`.

    %1 = stablehlo.tanh %0                       %1 = stablehlo.tanh %0 {recompute.phase = "primal"}
    %2 = stablehlo.multiply %ct, %1       ->     %2 = stablehlo.multiply %ct, %1 {recompute.phase = "gradient"}

Without the attribute, passes derive the phases from locations, which other tools may drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..analysis.request.value_names import matches_of
from ..analysis.step.guessed_phases import guessed_phases
from ..analysis.step.module_steps import NoGradient, steps_of
from ..analysis.step.order import Order, functions_of, single_block
from ..analysis.step.phases_by_results import late_operations, phases_by_results
from ..dialects.names import Names
from ..options.selection import PhaseHint
from ..rules.effects import why_impure
from ..support.diagnostics import BadRequest
from ..support.interface import option
from ..support.operations import every_operation, name_of
from ..support.phase import Phase
from ..support.remarks import Remark, RemarkKind, tell
from .outlining.nested_steps import outline_temporarily

GUESSED_LOSS = (
    "a guess: the phase of no operation is known, and result {number}, the first scalar, is assumed to be "
    "the loss; give {hint} to confirm it, or name another result or value"
)
GUESSED_TURN = (
    "a guess: the phase of no operation is known and no result looks like a loss; the forward pass is assumed to "
    "end with this {name}, after which values are read again in reverse order; to choose another end, name a value of "
    "the program ({values}=%loss)"
)
NO_FORWARD_OPERATION = (
    "no gradient found: with {hint} no operation belongs to the forward pass, because the hint names an argument or a "
    "constant, not a result of an operation: give the index of the loss among the results"
)
NO_GRADIENT_OPERATION = (
    "no gradient found: with {hint} the forward pass ends with {name}, and nothing after it reads a value of the "
    "forward pass; name the loss itself, or a value that is computed before the gradient begins ({values}=%loss)"
)


def write_phases(module: ModuleOp, hint: PhaseHint) -> list[Remark]:
    """Write the phases that follow from the user's hint. The hint names results or values of the forward pass, or
    cotangents.

    Operations that only the primal results need are moved before the gradient. If there is no hint and no operation has
    a phase, the loss is guessed, and remarks on the guess are returned.

    Raises:
        Refusal: The hint does not match a function, or no operation would be a gradient operation.
    """
    if hint:
        for function in functions_of(module):
            _write_phases_of_function(function, hint, _operations_of_hint(function, hint))
        return []
    guessed = [(function, guess) for function in functions_of(module) if (guess := guessed_phases(function))]
    remarks = list[Remark]()
    for function, guess in guessed:
        _write_phases_of_function(function, guess.hint, [] if guess.turn is None else [guess.turn])
        if guess.turn is None:
            text = GUESSED_LOSS.format(number=guess.hint.results[0], hint=guess.hint)
        else:
            text = GUESSED_TURN.format(name=name_of(guess.turn), values=option("primal-values"))
        remarks.append(Remark(guess.turn or function, text, RemarkKind.ANALYSIS))
    return remarks


def _operations_of_hint(function: FuncOp, hint: PhaseHint) -> list[Operation]:
    """Return the operations that define the values named by the hint. Raises `BadRequest` for an unknown name."""
    named = matches_of(every_operation(function)[1:], hint.values)
    if (unknown := next((name for name, ops in named.items() if not ops), None)) is not None:
        raise BadRequest(function, f"{option('primal-values')}: no value is named '{unknown}'")
    return [op for ops in named.values() for op in ops]


def _write_phases_of_function(function: FuncOp, hint: PhaseHint, primal: Sequence[Operation]) -> None:
    """Write the phases of a function.

    `primal`: further operations of the forward pass, besides the operations that define the results named by the hint.
    """
    order = _move_late_operations(Order.of(single_block(function)), hint, primal)
    op_phases = phases_by_results(order, hint, primal)
    if Phase.GRADIENT not in op_phases.values():
        raise _no_gradient_by_hint(function, hint, [op for op in order.operations if op_phases.get(op) is Phase.PRIMAL])
    for op, phase in op_phases.items():
        op.attributes[Names.PHASE] = StringAttr(phase.value)


def _move_late_operations(order: Order, hint: PhaseHint, primal: Sequence[Operation]) -> Order:
    """Move operations before the gradient if only primal results need them; move none if any of them has effects.
    Return the new order."""
    end, late = late_operations(order, hint, primal)
    if not late or any(why_impure(order.operations[index]) is not None for index in late):
        return order
    previous = order.operations[end]
    for index in late:
        op = order.operations[index]
        op.detach()
        order.block.insert_op_after(op, previous)
        previous = op
    return Order.of(order.block)


def _no_gradient_by_hint(function: FuncOp, hint: PhaseHint, primal: Sequence[Operation]) -> NoGradient:
    """Return a refusal of a hint under which no operation is a gradient operation.

    `primal`: the operations of the forward pass, in program order.
    """
    if not primal:
        return NoGradient(function, NO_FORWARD_OPERATION.format(hint=hint))
    last, values = primal[-1], option("primal-values")
    return NoGradient(last, NO_GRADIENT_OPERATION.format(hint=hint, name=name_of(last), values=values))


def annotate_phases(module: ModuleOp) -> None:
    """Write the phase of every operation of the functions with a gradient.

    Raises:
        NoGradient: No function has a gradient.
    """
    for _, classified in steps_of(module):
        for op, phase in classified.phase.items():
            op.attributes[Names.PHASE] = StringAttr(phase.value)


@dataclass(frozen=True)
class PhasePass(ModulePass):
    """
    primal_results: indices of the results of the forward pass, for steps whose operations carry no phase information.
    primal_values: names of values of the forward pass, such as a loss that is not returned.
    cotangents: indices of the arguments that are cotangents, an alternative to primal_results.
    """

    name = "recompute-phase"

    primal_results: tuple[int, ...] = ()
    primal_values: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, write_phases(op, PhaseHint(self.primal_results, self.primal_values, self.cotangents)))
        with outline_temporarily(op):
            annotate_phases(op)
