"""Operations whose own syntax in xDSL (0.73, 0.74) would lose something: they are printed in generic form."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, i1
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.scf import ExecuteRegionOp
from xdsl.ir import Attribute, Operation

from .stablehlo.control import OptimizationBarrierOp, WhileOp

LEAVE_ATTRIBUTES_OUT = frozenset(
    """
    arith.cmpf arith.cmpi linalg.broadcast linalg.reduce linalg.transpose memref.cast memref.copy memref.rank
    scf.parallel tensor.empty
    """.split()
)
"""Their syntax has no place for attributes."""

RESULT_IS_SCALAR = frozenset({"arith.cmpf", "arith.cmpi"})
"""They are read as if the operands were scalars, whatever type stands there."""


NEVER_PRINTED = "operandSegmentSizes"
"""xDSL takes it for its own in the syntax of every operation, also where it is an attribute like any other."""


def own_syntax_loses(op: Operation) -> bool:
    """Whether the operation has to be printed in generic form."""
    if NEVER_PRINTED in op.attributes:
        return True
    match op:
        case FuncOp(body=body, function_type=type_):
            is_declared = not body.blocks
            said_of_positions = (op.arg_attrs or op.res_attrs) is not None
            return (is_declared and said_of_positions) or _is_function(type_.outputs.data)
        case ExecuteRegionOp():
            # Without results it is printed without the terminator that MLIR wants to see.
            return not op.results
        case CallOp():
            return _is_function(op.result_types)
        # StableHLO's syntax of loops and barriers names each type once, though a result may know fewer of its extents.
        case WhileOp(cond=cond, body=body):
            arguments = (region.blocks[0].arg_types for region in (cond, body) if region.blocks)
            return any(types != op.operand_types for types in (op.result_types, *arguments))
        case OptimizationBarrierOp():
            return op.result_types != op.operand_types
        case _:
            leaves_out = op.name in LEAVE_ATTRIBUTES_OUT and bool(op.attributes)
            return leaves_out or (op.name in RESULT_IS_SCALAR and op.results[0].type != i1)


def _is_function(types: Sequence[Attribute]) -> bool:
    """A single result of function type, which is printed without the parentheses that it needs."""
    return len(types) == 1 and isinstance(types[0], FunctionType)
