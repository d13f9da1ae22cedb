"""A workaround for `arith`, which makes xDSL's conversions, comparisons and selections accept tensors and vectors.

Examples:
    %1 = arith.extui %0 : tensor<2xi8> to tensor<2xi32>
    %2 = arith.cmpi slt, %1, %1 : tensor<2xi32>                          // The result has type tensor<2xi1>.
    %3 = arith.select %2, %1, %1 : tensor<2xi1>, tensor<2xi32>

xDSL 0.73 and 0.74 define these operations for scalars only, in custom and in generic form. `repair_arith` relaxes the
constraints in their definitions, and replaces their verifiers with verifiers that follow MLIR:
https://mlir.llvm.org/docs/Dialects/ArithOps/.
"""

from __future__ import annotations

from xdsl.dialects.arith import (
    CmpfOp,
    CmpiOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    SelectOp,
    SIToFPOp,
    TruncIOp,
    UIToFPOp,
)
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IndexType,
    IntegerType,
    ShapedType,
    TensorType,
    VectorType,
    f32,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrConstraint, BaseAttr, IRDLOperation, OperandDef, ResultDef
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ...support.type_guards import is_shaped

INTEGERS: AttrConstraint = BaseAttr(IntegerType)
FLOATS: AttrConstraint = AnyFloatConstr
INDICES: AttrConstraint = INTEGERS | BaseAttr(IndexType)
CONVERSIONS: dict[type[IRDLOperation], tuple[AttrConstraint, AttrConstraint]] = {
    ExtSIOp: (INTEGERS, INTEGERS),
    ExtUIOp: (INTEGERS, INTEGERS),
    TruncIOp: (INTEGERS, INTEGERS),
    IndexCastOp: (INDICES, INDICES),
    SIToFPOp: (INTEGERS, FLOATS),
    UIToFPOp: (INTEGERS, FLOATS),
    FPToSIOp: (FLOATS, INTEGERS),
    FPToUIOp: (FLOATS, INTEGERS),
}
"""For each conversion, the constraints on the element types of the operand and of the result."""


def elements_of(type_: Attribute) -> Attribute:
    """Return the element type of a shaped type; a scalar type is its own element type."""
    return type_.element_type if is_shaped(type_) else type_


def with_elements(type_: Attribute, element: Attribute) -> Attribute:
    """Return the type with its element type replaced by `element`; for a scalar type, return `element`."""
    match type_:
        case TensorType():
            return TensorType(element, type_.shape, type_.encoding)
        case VectorType():
            return VectorType(element, type_.shape, type_.scalable_dims)
        case _:
            return element


def repair_arith() -> None:
    """Apply the workaround for operations of `arith` on tensors and vectors."""
    if takes_tensors():
        return
    for conversion, (source, target) in CONVERSIONS.items():
        _widen(conversion, source, target)
        conversion.verify_ = _verify_conversion
    for comparison in (CmpiOp, CmpfOp):
        definition = comparison.get_irdl_definition()
        definition.results[0] = ("result", ResultDef(_ELEMENTWISE_BITS))
        comparison.verify_ = _verify_comparison
    definition = SelectOp.get_irdl_definition()
    definition.operands[0] = ("cond", OperandDef(_ELEMENTWISE_BITS))
    SelectOp.verify_ = _verify_selection


def takes_tensors() -> bool:
    """Return whether xDSL's `arith.extsi` accepts tensors."""
    value = create_ssa_value(TensorType(i8, [2]))
    try:
        ExtSIOp.create(operands=[value], result_types=[TensorType(i32, [2])]).verify()
    except VerifyException:
        return False
    return True


def _elementwise(constraint: AttrConstraint) -> AttrConstraint:
    """Return the constraint for scalars that satisfy `constraint`, and for tensors and vectors of such scalars."""
    return constraint | TensorType.constr(constraint) | VectorType.constr(constraint)


_ELEMENTWISE_BITS = _elementwise(INTEGERS)


def _widen(conversion: type[IRDLOperation], source: AttrConstraint, target: AttrConstraint) -> None:
    definition = conversion.get_irdl_definition()
    definition.operands[0] = ("input", OperandDef(_elementwise(source)))
    definition.results[0] = ("result", ResultDef(_elementwise(target)))


def _verify_conversion(self: IRDLOperation) -> None:
    source, target = self.operands[0].type, self.results[0].type
    if with_elements(source, f32) != with_elements(target, f32):
        raise VerifyException(f"the operand {source} and the result {target} must have the same shape")
    _check_elements(self, elements_of(source), elements_of(target))


def _check_elements(op: Operation, source: Attribute, target: Attribute) -> None:
    match op, source, target:
        case IndexCastOp(), _, _ if isinstance(source, IndexType) == isinstance(target, IndexType):
            raise VerifyException(f"exactly one of the element types {source} and {target} must be 'index'")
        case ExtSIOp() | ExtUIOp(), IntegerType(), IntegerType() if not target.width.data > source.width.data:
            raise VerifyException(f"the result type {target} must be wider than the operand type {source}")
        case TruncIOp(), IntegerType(), IntegerType() if not target.width.data < source.width.data:
            raise VerifyException(f"the result type {target} must be narrower than the operand type {source}")
        case _:
            pass


def _verify_comparison(self: CmpiOp | CmpfOp) -> None:
    expected = with_elements(self.lhs.type, i1)
    if self.lhs.type != self.rhs.type:
        raise VerifyException(f"the operands have the types {self.lhs.type} and {self.rhs.type}, but types must match")
    if self.result.type != expected:
        raise VerifyException(f"the result has type {self.result.type}, expected {expected}")


def _verify_selection(self: SelectOp) -> None:
    condition, result = self.cond.type, self.result.type
    if condition == i1:
        return
    if not isinstance(result, ShapedType) or condition != with_elements(result, i1):
        expected = f"i1, or a tensor or vector of i1 with the shape of {result}"
        raise VerifyException(f"the condition has type {condition}, expected {expected}")
