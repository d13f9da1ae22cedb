"""xDSL's `arith` dialect with two additional operations, `index_castui` and `remf`, which MLIR has and xDSL lacks."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType, VectorType
from xdsl.ir import Dialect
from xdsl.irdl import AttrConstraint, BaseAttr, IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

_INDICES: AttrConstraint = BaseAttr(IntegerType) | BaseAttr(IndexType)
_INDEX_LIKE: AttrConstraint = _INDICES | TensorType.constr(_INDICES) | VectorType.constr(_INDICES)


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """Convert an unsigned integer to an index, or an index to an unsigned integer."""

    name = "arith.index_castui"

    input = operand_def(_INDEX_LIKE)
    result = result_def(_INDEX_LIKE)

    traits = traits_def(Pure())

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """Return the remainder of a floating-point division, with the sign of the dividend."""

    name = "arith.remf"

    traits = traits_def(Pure())


ARITH = Dialect(
    "arith",
    [*arith.Arith.operations, IndexCastUIOp, RemFOp],
    list(arith.Arith.attributes),
    [arith.ArithConstantMaterializationInterface()],
)
