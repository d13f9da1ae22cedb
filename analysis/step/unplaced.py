"""Values that may reside outside device memory, and therefore must not be moved to the host.

A value is usually in the same memory as the operands of its operation. If an operation has unknown effects, or if an
attribute names a memory or a device for its computation, its results may be in any memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from ...dialects.names import Names
from ...dialects.placements import DEVICE, FRONTEND, is_from_host, is_placement
from ...dialects.stablehlo.custom_call import CustomCallOp
from ...rules.custom_calls import KNOWN_TARGETS
from ...rules.effects import why_impure
from ...support.operations import name_of
from .order import Order, read_values

_HARMLESS = frozenset(
    """
    jax.buffer_donor jax.global_constant mhlo.is_same_data_across_replicas mhlo.layout_mode mhlo.sharding sdy.sharding
    tf.aliasing_output
    """.split()
)
_MEMORY_KIND = "mhlo.memory_kind"


def unplaced_values(function: FuncOp, order: Order) -> frozenset[SSAValue]:
    """Return the arguments and results of an inlined function that are not known to be in device memory."""
    unplaced = set(_unplaced_arguments(function))
    for op in order.operations:
        if not is_from_host(op) and (_moves(op) or any(operand in unplaced for operand in read_values(op))):
            unplaced.update(op.results)
    return frozenset(unplaced)


def _unplaced_arguments(function: FuncOp) -> list[SSAValue]:
    entries = function.arg_attrs
    if entries is None or not isa(entries, ArrayAttr[DictionaryAttr]):
        return []
    pairs = zip(function.body.block.args, (entry.data for entry in entries.data), strict=True)
    return [argument for argument, attributes in pairs if not _is_on_device(attributes)]


def _is_on_device(attributes: Mapping[str, Attribute]) -> bool:
    unknown = {name for name in attributes if "." in name and not name.startswith(Names.PREFIX)} - _HARMLESS
    return attributes.get(_MEMORY_KIND, StringAttr(DEVICE)) == StringAttr(DEVICE) and unknown <= {_MEMORY_KIND}


def _moves(op: Operation) -> bool:
    """Return whether the operation, or an operation in its regions, may put a value into another memory."""
    return any(
        is_placement(inner)
        or FRONTEND in inner.attributes
        or (bool(inner.results) and not inner.regions and _is_unknown(inner))
        for inner in op.walk()
    )


def _is_unknown(op: Operation) -> bool:
    if isinstance(op, CustomCallOp):
        return not op.call_target_name.data.startswith(KNOWN_TARGETS)
    return name_of(op) != "stablehlo.rng" and why_impure(op) is not None
