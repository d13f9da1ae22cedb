"""recompute-lower: lower tokens to operations of the target.

    %t = recompute.token %ct                          %x1, %ct1 = stablehlo.optimization_barrier %x, %ct
    %x1 = recompute.depend %x after %t        ->
    ... %ct ...                                       ... %ct1 ...

With `target=stablehlo`, each `recompute.depend` becomes a barrier over its delayed values and the gates. Later readers
of a gate read the barrier's result, because XLA would remove an unused operand, and with it the ordering.
`target=none` removes tokens, for executors that run operations in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.step.marks import is_copy
from ..analysis.step.order import Order
from ..dialects.names import Names
from ..dialects.recompute import DependOp, TokenOp
from ..dialects.stablehlo.control import OptimizationBarrierOp
from ..options.recompute_options import EMISSION_TARGETS
from ..support.diagnostics import Refusal
from ..support.operations import block_of, every_operation
from ..support.remarks import Remark, tell

NO_TOKENS = "nothing is lowered: there is no recompute.token and no copy; run recompute-clone before recompute-lower"


def lower(module: ModuleOp, target: str) -> None:
    """Replace each operation of the recompute dialect with operations of the target.

    Raises:
        ValueError: The target is unknown.
    """
    if target not in _LOWERINGS:
        targets = ", ".join(EMISSION_TARGETS)
        raise ValueError(f"unknown target '{target}' for recompute-lower; expected one of {targets}")
    orders = dict[Block, Order]()
    for token in [op for op in every_operation(module) if isinstance(op, TokenOp)]:
        block = block_of(token)
        if block not in orders:
            # Lowering preserves the order of the operations, so positions stay comparable.
            orders[block] = Order.of(block)
        _LOWERINGS[target](token, orders[block])
        Rewriter.erase_op(token)


def _lower_to_barriers(token: TokenOp, order: Order) -> None:
    gates = list[SSAValue](token.gates)
    waiting = order.readers(token.token)
    for depend in waiting:
        if not isinstance(depend, DependOp):
            raise Refusal(depend, "only recompute.depend can wait for a token when lowering to stablehlo")
        gates = _insert_barrier(depend, gates, order)


def _insert_barrier(depend: DependOp, gates: list[SSAValue], order: Order) -> list[SSAValue]:
    """Replace a `recompute.depend` with a barrier. Return the results that replace the gates for later readers."""
    values = [*depend.values, *(gate for gate in gates if gate not in depend.values)]
    barrier = OptimizationBarrierOp(values)
    barrier.location = depend.location
    if Names.PHASE in depend.attributes:
        barrier.attributes[Names.PHASE] = depend.attributes[Names.PHASE]
    Rewriter.insert_op(barrier, InsertPoint.before(depend))
    passed = dict(zip(values, barrier.results, strict=True))
    for old, new in zip(depend.delayed, barrier.results, strict=False):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    _redirect_later_uses(gates, passed, depend, order)
    Rewriter.erase_op(depend)
    return [passed[gate] for gate in gates]


def _redirect_later_uses(
    gates: list[SSAValue], passed: Mapping[SSAValue, SSAValue], depend: DependOp, order: Order
) -> None:
    """Redirect uses of the gates after `depend` to the results of the barrier. `passed`: the result for each gate."""
    start = order.position[depend]
    for gate in gates:
        for use in list(gate.uses):
            owner = order.owner_here(use.operation)
            if owner is not None and owner is not depend and order.position[owner] > start:
                use.operation.operands[use.index] = passed[gate]


def _remove_token(token: TokenOp, order: Order) -> None:
    for use in list(token.token.uses):
        depend = use.operation
        if not isinstance(depend, DependOp):
            raise Refusal(depend, "only recompute.depend can wait for a token")
        for value, delayed in zip(depend.values, depend.delayed, strict=True):
            delayed.replace_all_uses_with(value)
        Rewriter.erase_op(depend)


_LOWERINGS: dict[str, Callable[[TokenOp, Order], None]] = {"stablehlo": _lower_to_barriers, "none": _remove_token}
"""The lowering of a token for each target."""
assert _LOWERINGS.keys() == set(EMISSION_TARGETS), "each target has a lowering"


@dataclass(frozen=True)
class LowerPass(ModulePass):
    """
    target: `stablehlo` (barriers, for XLA) or `none` (no barriers, for executors that follow program order).
    """

    name = "recompute-lower"

    target: str = "stablehlo"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        operations = every_operation(op)
        if not any(isinstance(inner, TokenOp) or is_copy(inner) for inner in operations):
            tell(ctx, [Remark(op, NO_TOKENS)])
        lower(op, self.target)
