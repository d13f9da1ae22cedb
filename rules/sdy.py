"""Facts about Shardy: https://openxla.org/shardy.

A sharding constraint returns its operand and fixes the sharding of the operand. Collectives, groups and edges are never
recomputed, because Shardy does not declare them `Pure`.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from ..dialects.sdy.computations import ManualComputationOp
from ..dialects.sdy.sharding_ops import axes_of_mesh
from ..dialects.sdy.shardings import layout_of
from .facts import (
    Carry,
    Facts,
    RegionStorage,
    View,
    constant,
    impure,
    no_work,
    once,
    pure,
    pure_if_body_is,
    table,
    terminator,
    view,
    without_arithmetic,
)


def devices(op: Operation) -> int:
    """Return the number of devices that run the body of an operation; 1 if the operation has no known mesh."""
    if not isinstance(op, ManualComputationOp):
        return 1
    layout = layout_of(next(iter((*op.in_shardings.data, *op.out_shardings.data)), ""))
    sizes = {} if layout is None else axes_of_mesh(op, layout.mesh)
    return prod(sizes.get(axis, 1) for axis in op.manual_axes.data)


_EDGE = "its operand owns a Shardy edge, and must have no other user"
_COLLECTIVE = "it is a Shardy collective, and moves a value between devices"

OPERATIONS: dict[str, Facts] = {
    "sdy.mesh": pure(flops=no_work),
    "sdy.manual_computation": pure_if_body_is(flops=no_work, body_runs=devices),
    "sdy.named_computation": pure_if_body_is(no_work, once, (RegionStorage(Carry.OPERANDS),)),
    "sdy.return": terminator(),
    # Shardy declares its constants `Pure`. They exist so that each use can have a copy.
    "sdy.constant": constant(),
    "sdy.sharding_constraint": view(layout=View.DENSE),
    # Shardy declares both `Pure`. A barrier is "like an identity op"; a reshard attaches a sharding to a tensor.
    **table("sdy", "propagation_barrier reshard", view(layout=View.DENSE)),
    **table("sdy", "data_flow_edge func_data_flow_edge", without_arithmetic(impure(_EDGE))),
    "sdy.sharding_group": without_arithmetic(impure("it adds its operand to a sharding group")),
    **table(
        "sdy",
        "all_gather all_reduce all_slice all_to_all collective_permute reduce_scatter replicated_to_unreduced "
        "sharded_to_unreduced",
        without_arithmetic(impure(_COLLECTIVE)),
    ),
}
