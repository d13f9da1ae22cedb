"""Batch normalization for training and for inference, and its gradient. StableHLO prints all three in generic form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import (
    Constraint,
    check_element,
    check_shape,
    check_within,
    element_of,
    is_float,
    is_numeric,
    shape_of,
    verify_constraints,
)
from .formats import I64_ATTR
from .tensors import numbers


class BatchNormOp(IRDLOperation):
    """Base class of operations that normalize along all dimensions except the feature dimension."""

    operand = operand_def(numbers("I1"))
    scale = operand_def(numbers("I2"))
    epsilon = prop_def(FloatAttr)
    feature_index = prop_def(I64_ATTR)

    traits = traits_def(Pure())

    @property
    def features(self) -> list[int]:
        """The shape of a value with one element for each feature."""
        return [shape_of(self.operand)[self.feature_index.value.data]]


@irdl_op_definition
class BatchNormTrainingOp(BatchNormOp):
    """Normalize the operand, and return the normalized operand with the mean and the variance of each feature."""

    name = "stablehlo.batch_norm_training"

    operand = operand_def(numbers("I1"))
    scale = operand_def(numbers("I2"))
    offset = operand_def(numbers("I3"))
    output = result_def(TensorType)
    batch_mean = result_def(TensorType)
    batch_var = result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, TRAINING_CONSTRAINTS)


@irdl_op_definition
class BatchNormInferenceOp(BatchNormOp):
    """Normalize the operand with the given mean and variance of each feature."""

    name = "stablehlo.batch_norm_inference"

    operand = operand_def(numbers("I1"))
    scale = operand_def(numbers("I2"))
    offset = operand_def(numbers("I3"))
    mean = operand_def(numbers("I4"))
    variance = operand_def(numbers("I5"))
    result = result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, INFERENCE_CONSTRAINTS)


@irdl_op_definition
class BatchNormGradOp(BatchNormOp):
    """Compute the gradients of a `batch_norm_training` with respect to its operand, scale and offset."""

    name = "stablehlo.batch_norm_grad"

    operand = operand_def(numbers("I1"))
    scale = operand_def(numbers("I2"))
    mean = operand_def(numbers("I3"))
    variance = operand_def(numbers("I4"))
    grad_output = operand_def(numbers("I5"))
    grad_operand = result_def(TensorType)
    grad_scale = result_def(TensorType)
    grad_offset = result_def(TensorType)

    def verify_(self) -> None:
        verify_constraints(self, GRAD_CONSTRAINTS)


def _values(op: BatchNormOp, names: Sequence[str]) -> list[SSAValue]:
    return [getattr(op, name) for name in names]


def _check_float(op: BatchNormOp) -> None:
    for value in (*op.operands, *op.results):
        element = element_of(value)
        if is_numeric(element) and not is_float(element):
            raise VerifyException(f"{op.name} is not defined for elements of type {element}")


def _check_epsilon(op: BatchNormOp) -> None:
    if op.epsilon.type != f32:
        raise VerifyException(f"epsilon has type {op.epsilon.type}, expected f32")


def _check_feature(op: BatchNormOp) -> None:
    check_within("feature_index", [op.feature_index.value.data], len(shape_of(op.operand)))


def _check_elements(op: BatchNormOp) -> None:
    """Check that all operands and results have the same element type. Quantized types are not compared."""
    expected = element_of(op.operand)
    for value in (*op.operands, *op.results):
        if is_numeric(expected) and is_numeric(element_of(value)):
            check_element("an operand or a result", element_of(value), expected)


def _requires_one_per_feature(name: str) -> Callable[[BatchNormOp], None]:
    """Return a check that the operand or result `name` has one element for each feature."""
    return lambda op: check_shape(name, shape_of(getattr(op, name)), op.features)


def _requires_equal_shapes(expected: str, *names: str) -> Callable[[BatchNormOp], None]:
    def check(op: BatchNormOp) -> None:
        (first,) = _values(op, [expected])
        for name, value in zip(names, _values(op, names), strict=True):
            check_shape(name, shape_of(value), shape_of(first))

    return check


def _constraints(specific: Sequence[Constraint[BatchNormOp]]) -> tuple[Constraint[BatchNormOp], ...]:
    return (
        Constraint("I1", _check_float),
        Constraint("epsilon", _check_epsilon),
        Constraint("C1", _check_feature),
        Constraint("C2", _check_elements),
        *specific,
    )


TRAINING_CONSTRAINTS = _constraints(
    [
        Constraint("C3", _requires_one_per_feature("scale")),
        Constraint("C4", _requires_one_per_feature("offset")),
        Constraint("C5", _requires_one_per_feature("batch_mean")),
        Constraint("C6", _requires_one_per_feature("batch_var")),
        Constraint("C7", _requires_equal_shapes("operand", "output")),
    ]
)
INFERENCE_CONSTRAINTS = _constraints(
    [
        Constraint("C3", _requires_one_per_feature("scale")),
        Constraint("C4", _requires_one_per_feature("offset")),
        Constraint("C5", _requires_one_per_feature("mean")),
        Constraint("C6", _requires_one_per_feature("variance")),
        Constraint("C7", _requires_equal_shapes("operand", "result")),
    ]
)
GRAD_CONSTRAINTS = _constraints(
    [
        Constraint("C3", _requires_equal_shapes("operand", "grad_output", "grad_operand")),
        Constraint("C4", _requires_equal_shapes("scale", "mean", "variance", "grad_scale", "grad_offset")),
        Constraint("C5", _requires_one_per_feature("scale")),
    ]
)

NORMALIZATION: list[type[Operation]] = [BatchNormTrainingOp, BatchNormInferenceOp, BatchNormGradOp]
