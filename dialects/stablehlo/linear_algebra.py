"""Transforms and factorizations of whole matrices."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.counted import counted
from ...support.type_guards import is_complex_type
from .attributes import FftType, FftTypeAttr, Transpose, TransposeAttr
from .checks import (
    Constraint,
    check_element,
    check_shape,
    check_takes,
    check_types,
    element_of,
    is_float_or_complex,
    shape_of,
    verify_constraints,
)
from .formats import FunctionTypeOp, Properties, SameTypeOp, parse_field, print_field
from .tensors import numbers


@irdl_op_definition
class FftOp(FunctionTypeOp):
    """Compute Fourier transforms along the last dimensions: `stablehlo.fft %a, type = RFFT, length = [8] : (t) -> u`"""

    name = "stablehlo.fft"

    operand = operand_def(numbers("I1"))
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("fft_type", "fft_length")

    def verify_(self) -> None:
        verify_constraints(self, FFT_CONSTRAINTS)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("type")
        parser.parse_punctuation("=")
        type_ = FftTypeAttr(parser.parse_str_enum(FftType))
        return {"fft_type": type_, "fft_length": parse_field(parser, "length")}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", type = {self.fft_type.data.value}")
        print_field(printer, "length", self.fft_length)


def _check_count(op: FftOp) -> None:
    if not 1 <= len(op.fft_length) <= 3:
        raise VerifyException(f"fft_length has {counted(len(op.fft_length), 'entry', 'entries')}, expected 1 to 3")


def _check_rank(op: FftOp) -> None:
    if len(op.fft_length) > len(shape_of(op.operand)):
        raise VerifyException(
            f"fft_length has {counted(len(op.fft_length), 'entry', 'entries')}, but the operand has rank "
            f"{len(shape_of(op.operand))}"
        )


_REAL_SIDE: dict[FftType, str] = {FftType.RFFT: "operand", FftType.IRFFT: "result"}
"""The real tensor, the operand or the result, of each transform that has one. All other transforms have only complex
tensors."""


def _sides(op: FftOp) -> tuple[SSAValue | None, SSAValue]:
    """Return the operand and the result, the real one first and the complex one second. If both are complex, return
    None and the operand."""
    real = _REAL_SIDE.get(op.fft_type.data)
    if real is None:
        return None, op.operand
    return (op.operand, op.result) if real == "operand" else (op.result, op.operand)


def _check_elements(op: FftOp) -> None:
    real, complex_ = _sides(op)
    element = element_of(complex_)
    if not is_complex_type(element):
        side = "operand" if complex_ is op.operand else "result"
        raise VerifyException(
            f"the {side} has type {complex_.type}, but {op.fft_type.data.value} requires complex numbers"
        )
    if real is None:
        return check_element("the result", element_of(op.result), element)
    check_element("the real side", element_of(real), element.element_type)


def _check_lengths(op: FftOp) -> None:
    real, _ = _sides(op)
    lengths = op.fft_length.get_values()
    if any(length < 0 for length in lengths):
        raise VerifyException(f"the lengths {list(lengths)} must not be negative")
    if real is not None:
        check_shape("the real side", shape_of(real)[-len(lengths) :], lengths)


def _check_result(op: FftOp) -> None:
    """Check that the result has the shape of the operand. If the operand or the result is real, the last dimension of
    the other, complex one is shorter, since half of the complex values are redundant.
    """
    real, complex_ = _sides(op)
    if real is None:
        return check_shape("the result", shape_of(op.result), shape_of(op.operand))
    lengths = op.fft_length.get_values()
    last = lengths[-1] // 2 + 1 if lengths[-1] else 0
    check_shape("the complex side", shape_of(complex_), [*shape_of(real)[: -len(lengths)], *lengths[:-1], last])


FFT_CONSTRAINTS: tuple[Constraint[FftOp], ...] = (
    Constraint("C3", _check_count),
    Constraint("C2", _check_elements),
    Constraint("C1", _check_rank),
    Constraint("C4", _check_lengths),
    Constraint("C5", _check_result),
)


@irdl_op_definition
class CholeskyOp(SameTypeOp):
    """Compute the Cholesky factor of each matrix: `stablehlo.cholesky %a, lower = true : t`"""

    name = "stablehlo.cholesky"

    a = operand_def(numbers("I1"))
    lower = prop_def(BoolAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("lower",)

    def verify_(self) -> None:
        verify_constraints(self, CHOLESKY_CONSTRAINTS)
        check_takes(self, is_float_or_complex)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("lower")
        parser.parse_punctuation("=")
        return {"lower": BoolAttr.from_bool(parser.parse_boolean())}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", lower = {str(bool(self.lower)).lower()}")


def _check_square(op: CholeskyOp) -> None:
    rows, columns = shape_of(op.a)[-2:]
    check_shape("a matrix", [rows, columns], [columns, rows])


def _check_matrices(op: CholeskyOp) -> None:
    if len(shape_of(op.a)) < 2:
        raise VerifyException(f"the operand has rank {len(shape_of(op.a))}, expected at least 2")


CHOLESKY_CONSTRAINTS: tuple[Constraint[CholeskyOp], ...] = (
    Constraint("C1", lambda op: check_types("the result", op.result.type, op.a.type)),
    Constraint("C2", _check_matrices),
    Constraint("C3", _check_square),
)


@irdl_op_definition
class TriangularSolveOp(IRDLOperation):
    """Solve `a x = b`, or `x a = b`, for `x`, where `a` is triangular. StableHLO prints the operation in generic
    form."""

    name = "stablehlo.triangular_solve"

    a = operand_def(numbers("I1"))
    b = operand_def(numbers("I2"))
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_takes(self, is_float_or_complex)
        verify_constraints(self, SOLVE_CONSTRAINTS)


def _check_ranks(op: TriangularSolveOp) -> None:
    ranks = len(shape_of(op.a)), len(shape_of(op.b))
    if ranks[0] != ranks[1] or ranks[0] < 2:
        raise VerifyException(f"a and b have ranks {ranks[0]} and {ranks[1]}, expected equal ranks of at least 2")


def _check_system(op: TriangularSolveOp) -> None:
    a, b = shape_of(op.a), shape_of(op.b)
    check_shape("the batch of b", b[:-2], a[:-2])
    check_shape("a matrix", a[-2:], [a[-1], a[-2]])
    check_shape("a side of b", [b[-2 if op.left_side else -1]], [a[-1]])


def _check_transpose(op: TriangularSolveOp) -> None:
    if op.transpose_a.data is Transpose.TRANSPOSE_INVALID:
        raise VerifyException("transpose_a is TRANSPOSE_INVALID, expected NO_TRANSPOSE, TRANSPOSE or ADJOINT")


SOLVE_CONSTRAINTS: tuple[Constraint[TriangularSolveOp], ...] = (
    Constraint("C1", lambda op: check_element("b", element_of(op.b), element_of(op.a))),
    Constraint("C2", _check_ranks),
    Constraint("C3", _check_system),
    Constraint("C4", lambda op: check_types("the result", op.result.type, op.b.type)),
    Constraint("I6", _check_transpose),
)

LINEAR_ALGEBRA: list[type[Operation]] = [FftOp, CholeskyOp, TriangularSolveOp]
