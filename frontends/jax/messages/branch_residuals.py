"""Advice on conditionals whose branches return residuals: put `jax.checkpoint` around the blocks in the branches.

A conditional is copied as a whole, so that all residuals of a branch are live at once. If every block in the branches
is in a `jax.checkpoint`, the blocks are recomputed one after another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ....analysis.step.direction import Direction
from ....analysis.step.jax_paths import scope_of
from ....analysis.step.order import captured_values
from ....analysis.step.views import value_bytes
from ....dialects.stablehlo.branches import CaseOp, IfOp
from ....dialects.stablehlo.checks import is_float_or_complex
from ....rules.effects import is_constant
from ....search.budget.compiled_refusal import BudgetNotReached
from ....support.diagnostics import Refusal, place_of
from ....support.locations import base_name
from ....support.operations import every_operation, is_private, operations_around, terminator_of
from ....support.remarks import MAX_PLACES
from ....support.type_guards import is_tensor
from ....transforms.merge_remat import is_in_second_pass, is_of_remat

NOTABLE = 2
"""The minimum ratio of the bytes of residuals that a branch computes to the bytes that the conditional reads."""
_ADVICE = (
    "put jax.checkpoint around the blocks inside the branches and keep recompute.jax.jit, which needed less memory on "
    "most measured models, and more on none: the {conditionals} at {places} return{s} the residuals of the branches to "
    "the backward pass (section 'Blocks in branches' of the documented limits)"
)


def branch_advice(module: ModuleOp | None) -> str:
    """Return the advice on the conditionals of a plain step; "" if it does not apply.

    The advice applies if a branch in the forward pass computes residuals that are large compared with its inputs, and
    if no block in a branch is in `jax.checkpoint` already.

    `module`: the step, before it is rewritten; None if it could not be read.
    """
    if module is None:
        return ""
    operations = every_operation(module)
    conditionals = [op for op in operations if isinstance(op, CaseOp | IfOp)]
    callers = _callers(operations)
    if not conditionals or any(is_of_remat(op) and _is_in_branch(op, callers) for op in operations):
        return ""
    advised = [op for op in conditionals if _is_forward(op, callers) and _returns_residuals(op)]
    places = list(dict.fromkeys(base_name(place_of(op)) for op in advised))
    if not places:
        return ""
    named = places if len(places) <= MAX_PLACES else [*places[:MAX_PLACES], f"{len(places) - MAX_PLACES} more"]
    listed = " and ".join([part for part in (", ".join(named[:-1]), named[-1]) if part])
    is_single = len(advised) == 1
    return _ADVICE.format(
        conditionals="conditional" if is_single else "conditionals", places=listed, s="s" if is_single else ""
    )


def with_branch_advice(error: BudgetNotReached, module: ModuleOp) -> BudgetNotReached:
    """Return the error with the advice on the conditionals of its step as the last line, if the advice applies."""
    advice = branch_advice(module)
    if not advice:
        return error
    return BudgetNotReached(error.operation, f"{error.reason}\n  {advice}", error.least_bytes)


def _callers(operations: Sequence[Operation]) -> dict[str, list[CallOp]]:
    callers = dict[str, list[CallOp]]()
    for op in operations:
        if isinstance(op, CallOp):
            callers.setdefault(op.callee.string_value(), []).append(op)
    return callers


def _is_in_branch(op: Operation, callers: Mapping[str, Sequence[CallOp]]) -> bool:
    """Return whether the operation, or a direct or indirect call of its function, is in a branch of a conditional."""
    return any(
        isinstance(around, CaseOp | IfOp)
        for call in _with_calls_around(op, callers)
        for around in operations_around(call)
    )


def _is_forward(op: Operation, callers: Mapping[str, Sequence[CallOp]]) -> bool:
    """Return whether the operation belongs to a forward pass that is differentiated, or to a second forward pass.

    The path of an operation begins at its function, so the paths of the calls of this function are also examined.
    """
    for call in _with_calls_around(op, callers):
        direction = scope_of(call.location).direction
        if direction is not Direction.NONE or is_in_second_pass(call):
            return direction is Direction.FORWARD or is_in_second_pass(call)
    return False


def _with_calls_around(op: Operation, callers: Mapping[str, Sequence[CallOp]]) -> Iterator[Operation]:
    """Yield the operation, the calls of the function that contains it, and, transitively, the calls of the functions
    that contain these calls."""
    visited, pending = set[str](), deque[Operation]([op])
    while pending:
        current = pending.popleft()
        yield current
        function = next((around for around in operations_around(current) if isinstance(around, FuncOp)), None)
        if function is not None and function.sym_name.data not in visited:
            visited.add(function.sym_name.data)
            pending += callers.get(function.sym_name.data, ())


def _returns_residuals(conditional: Operation) -> bool:
    """Return whether a branch computes residuals that are large compared with the values that the conditional reads.

    The arguments of the step are not counted among these values, because they stay live in any case. Without
    `jax.checkpoint`, the branch computes the result of the conditional and the residuals; the largest value is assumed
    to be the result.
    """
    read = sum(_bytes_of(value) for value in captured_values(conditional) if not _is_argument_of_step(value))
    for region in conditional.regions:
        sizes = sorted(_computed_bytes(region.block))
        if sizes[:-1] and sum(sizes[:-1]) >= NOTABLE * max(read, sizes[-1]):
            return True
    return False


def _computed_bytes(branch: Block) -> list[int]:
    """Return the bytes of the floating-point values that a branch computes and returns, without constants."""
    returned = dict.fromkeys(terminator_of(branch).operands)
    return [_bytes_of(value) for value in returned if isinstance(value, OpResult) and _is_computed(value.op, branch)]


def _is_computed(op: Operation, branch: Block) -> bool:
    """Return whether an operation of the branch computes its results from values other than constants."""
    if op.parent is not branch or is_constant(op):
        return False
    owners = [operand.owner for operand in op.operands]
    return not owners or any(not isinstance(owner, Operation) or not is_constant(owner) for owner in owners)


def _is_argument_of_step(value: SSAValue) -> bool:
    function = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return isinstance(function, FuncOp) and not is_private(function)


def _bytes_of(value: SSAValue) -> int:
    """Return the size of a floating-point value in bytes; 0 for other values, and for values of unknown size."""
    if not is_tensor(value.type) or not is_float_or_complex(value.type.get_element_type()):
        return 0
    try:
        return value_bytes(value)
    except Refusal:
        return 0
