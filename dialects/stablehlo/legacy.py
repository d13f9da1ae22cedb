"""Operations that StableHLO supports for older exporters, although its specification no longer describes them.

    %0 = stablehlo.dot %a, %b, precision = [HIGH, DEFAULT] : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.broadcast %a, sizes = [2] : (tensor<8xf32>) -> tensor<2x8xf32>
    %2 = stablehlo.einsum %a, %b, config = "ab,bc->ac" : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>

No specification numbers their constraints, so error messages have no labels such as `C1`. `create_token` is in
`tokens.py`, and `rng` in `external.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .attributes import PrecisionAttr, check_precisions
from .checks import Shape, check_element, check_shape, check_within, element_of, is_integer_or_bool, shape_of
from .contraction import parse_precisions
from .formats import I64_ATTR, FunctionTypeOp, Properties, parse_field, print_field
from .shapes import I64_ARRAY
from .tensors import NUMBERS

_EQUATION = re.compile(r"([A-Za-z.]*)(?:,([A-Za-z.]*))?->([A-Za-z.]*)")
ELLIPSIS = "..."


@dataclass(frozen=True)
class Einsum:
    """The parsed equation of an `einsum`: labels for the dimensions of operands and result, and the labels' extents.

    The dimensions of an ellipsis have the labels `.0`, `.1`, …, counted from the last one.
    """

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]
    extents: Mapping[str, int]

    @classmethod
    def parse(cls, equation: str, shapes: Sequence[Shape]) -> Einsum:
        """Parse an equation for operands of these shapes. Raises `ValueError` if the equation does not match them."""
        match = _EQUATION.fullmatch(equation.replace(" ", ""))
        if match is None:
            raise ValueError(f"'{equation}' is not an equation such as 'ab,bc->ac'")
        terms = [term for term in match.groups()[:2] if term is not None]
        if len(terms) != len(shapes):
            raise ValueError(f"'{equation}' has {len(terms)} operands, but the operation has {len(shapes)}")
        operands = [_labels(term, len(shape)) for term, shape in zip(terms, shapes, strict=True)]
        extents: dict[str, int] = {}
        for labels, shape in zip(operands, shapes, strict=True):
            for label, extent in zip(labels, shape, strict=True):
                _merge(extents, label, extent)
        hidden = max((sum(label.startswith(".") for label in labels) for labels in operands), default=0)
        result = _labels(match[3], len(match[3].replace(ELLIPSIS, "")) + (hidden if ELLIPSIS in match[3] else 0))
        if unknown := [label for label in result if label not in extents]:
            raise ValueError(f"the result of '{equation}' has the label '{unknown[0]}', but no operand has this label")
        if len(set(result)) != len(result):
            raise ValueError(f"the labels of the result of '{equation}' must be distinct")
        return cls(tuple(operands), result, extents)

    def result_shape(self) -> list[int]:
        return [self.extents[label] for label in self.result]

    @property
    def contracted(self) -> tuple[str, ...]:
        """The labels over which the products are summed."""
        return tuple(label for label in self.extents if label not in self.result)


def _labels(term: str, rank: int) -> tuple[str, ...]:
    before, dots, after = term.partition(ELLIPSIS)
    hidden = rank - len(before) - len(after)
    if "." in before + after or hidden < 0 or (hidden and not dots):
        raise ValueError(f"'{term}' must have a label for each of {rank} dimensions")
    return (*before, *(f".{index}" for index in reversed(range(hidden))), *after)


def _merge(extents: dict[str, int], label: str, extent: int) -> None:
    previous = extents.get(label, DYNAMIC_INDEX)
    if DYNAMIC_INDEX not in (previous, extent) and previous != extent:
        raise ValueError(f"label '{label}' has two different extents, {previous} and {extent}")
    extents[label] = extent if previous == DYNAMIC_INDEX else previous


@irdl_op_definition
class DotOp(FunctionTypeOp):
    """Multiply two matrices, a matrix and a vector, or two vectors."""

    name = "stablehlo.dot"

    lhs = operand_def(NUMBERS)
    rhs = operand_def(TensorType)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("precision_config",)

    def verify_(self) -> None:
        check_precisions(self.precision_config)
        left, right = shape_of(self.lhs), shape_of(self.rhs)
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2):
            raise VerifyException(f"the operands have ranks {len(left)} and {len(right)}, but ranks must be 1 or 2")
        check_shape("the contracted dimension of the right operand", right[:1], left[-1:])
        check_shape("the result", shape_of(self.result), [*left[:-1], *right[1:]])

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        if parser.parse_optional_punctuation(",") is None:
            return {}
        parser.parse_keyword("precision")
        parser.parse_punctuation("=")
        return {"precision_config": parse_precisions(parser)}

    def print_own(self, printer: Printer) -> None:
        if self.precision_config is not None:
            names = (precision.data.value for precision in self.precision_config)
            printer.print_string(f", precision = [{', '.join(names)}]")


@irdl_op_definition
class BroadcastOp(FunctionTypeOp):
    """Repeat the operand along new leading dimensions."""

    name = "stablehlo.broadcast"

    operand = operand_def(NUMBERS)
    broadcast_sizes = prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("broadcast_sizes",)

    def verify_(self) -> None:
        sizes = self.broadcast_sizes.get_values()
        if any(size < 0 for size in sizes):
            raise VerifyException(f"broadcast_sizes {list(sizes)} must not be negative")
        check_element("the result", element_of(self.result), element_of(self.operand))
        check_shape("the result", shape_of(self.result), [*sizes, *shape_of(self.operand)])

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"broadcast_sizes": parse_field(parser, "sizes")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "sizes", self.broadcast_sizes)


class EinsumFormatOp(FunctionTypeOp):
    """Base class of operations with an equation, printed as `name %a, config = "ab->ba"`."""

    einsum_config = prop_def(StringAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("einsum_config",)

    @property
    def equation(self) -> Einsum:
        """The parsed equation. Raises `VerifyException` if the equation is invalid or does not match the operands'
        shapes."""
        try:
            return Einsum.parse(self.einsum_config.data, [shape_of(operand) for operand in self.operands])
        except ValueError as error:
            raise VerifyException(str(error)) from None

    def verify_(self) -> None:
        check_shape("the result", shape_of(self.result), self.equation.result_shape())

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("config")
        parser.parse_punctuation("=")
        return {"einsum_config": StringAttr(parser.parse_str_literal())}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(", config = ")
        printer.print_attribute(self.einsum_config)


@irdl_op_definition
class EinsumOp(EinsumFormatOp):
    """Multiply the operands, and sum over the labels that the result does not contain."""

    name = "stablehlo.einsum"

    lhs = operand_def(NUMBERS)
    rhs = operand_def(NUMBERS)

    ARITY: ClassVar[int] = 2


@irdl_op_definition
class UnaryEinsumOp(EinsumFormatOp):
    """Sum the operand over the labels that the result does not contain, and transpose it."""

    name = "stablehlo.unary_einsum"

    operand = operand_def(NUMBERS)


@irdl_op_definition
class TorchIndexSelectOp(IRDLOperation):
    """Select slices along one dimension with an index tensor, like `torch.index_select`.

    StableHLO prints this operation in generic form.
    """

    name = "stablehlo.torch_index_select"

    operand = operand_def(NUMBERS)
    index = operand_def(NUMBERS)
    dim = prop_def(I64_ATTR)
    batch_dims = prop_def(I64_ATTR)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        operand, index = shape_of(self.operand), shape_of(self.index)
        dimension, batch = self.dim.value.data, self.batch_dims.value.data
        check_within("dim", [dimension], len(operand))
        if not 0 <= batch <= min(dimension, len(index)):
            raise VerifyException(f"batch_dims is {batch}, expected 0 to {min(dimension, len(index))}")
        if not is_integer_or_bool(element_of(self.index)):
            raise VerifyException(f"the index has elements of type {element_of(self.index)}, expected integers")
        check_shape("the batch dimensions of the index", index[:batch], operand[:batch])
        check_element("the result", element_of(self.result), element_of(self.operand))
        expected = [*operand[:dimension], *index[batch:], *operand[dimension + 1 :]]
        check_shape("the result", shape_of(self.result), expected)


LEGACY: list[type[Operation]] = [DotOp, BroadcastOp, EinsumOp, UnaryEinsumOp, TorchIndexSelectOp]
