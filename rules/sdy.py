"""Shardy: https://openxla.org/shardy. A constraint forwards its operand and fixes its sharding."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from ..dialects.computations import ManualComputationOp
from ..dialects.sdy import axes_of_mesh
from ..dialects.shardings import layout_of
from .facts import Facts, View, nothing, pure, pure_if_body_is, terminator, view


def devices(op: Operation) -> int:
    """The number of devices that run the body; 1 without a mesh."""
    if not isinstance(op, ManualComputationOp):
        return 1
    layout = layout_of(next(iter((*op.in_shardings.data, *op.out_shardings.data)), ""))
    sizes = {} if layout is None else axes_of_mesh(op, layout.mesh)
    return prod(sizes.get(axis, 1) for axis in op.manual_axes.data)


OPERATIONS: dict[str, Facts] = {
    "sdy.mesh": pure(flops=nothing),
    "sdy.manual_computation": pure_if_body_is(flops=nothing, body_runs=devices),
    "sdy.return": terminator(),
    "sdy.sharding_constraint": view(layout=View.DENSE),
}
