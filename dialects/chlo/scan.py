"""`chlo.scan`: a computation along a dimension that carries values from each slice to the next.

    %outputs, %carries = chlo.scan(%inputs) inits (%inits) dimension = 0 {
    ^bb0(%slice: tensor<3xf32>, %carry: tensor<3xf32>):
      …
      stablehlo.return %output, %next : tensor<3xf32>, tensor<3xf32>
    } : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)

The body takes the carries and a slice of each input (without this dimension), and returns a slice of each output and
the next carries. Constraints follow StableHLO's verifier; the specification does not describe CHLO.
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from ..stablehlo.attributes import parse_int64
from ..stablehlo.checks import check_count, check_types, check_within, shape_of
from ..stablehlo.control import returned_types
from ..stablehlo.formats import I64_ATTR, print_function_type

_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Run the body on each slice along a dimension, and carry values from each slice to the next.

    With `is_reverse`, the scan begins at the last slice.
    """

    name = "chlo.scan"

    inputs = var_operand_def(TensorType)
    inits = var_operand_def(TensorType)
    dimension = prop_def(I64_ATTR)
    scan_dim_size = opt_prop_def(I64_ATTR)
    is_reverse = opt_prop_def(BoolAttr)
    is_associative = opt_prop_def(BoolAttr)
    outputs = var_result_def(TensorType)
    carries = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect(), IsolatedFromAbove())
    irdl_options = (AttrSizedOperandSegments(as_property=True), AttrSizedResultSegments(as_property=True))

    @property
    def axis(self) -> int:
        """The index of the dimension along which inputs and outputs are sliced."""
        return self.dimension.value.data

    @property
    def length(self) -> int:
        """The number of slices; `DYNAMIC_INDEX` if it is unknown."""
        if self.scan_dim_size is not None:
            return self.scan_dim_size.value.data
        extents = [shape_of(value)[self.axis] for value in (*self.inputs, *self.outputs)]
        return next((extent for extent in extents if extent != DYNAMIC_INDEX), DYNAMIC_INDEX)

    def verify_(self) -> None:
        axis = self.axis
        if not self.inputs and not self.outputs:
            raise VerifyException("there are no inputs and no outputs, expected at least one")
        for name, attribute in (("dimension", self.dimension), ("scan_dim_size", self.scan_dim_size)):
            if attribute is not None and attribute.value.data < 0:
                raise VerifyException(f"{name} is {attribute.value.data}, but must not be negative")
        for value in self.inputs:
            check_within("dimension", [axis], len(shape_of(value)))
        for value in self.outputs:
            check_within("dimension of an output", [axis], len(shape_of(value)))
        for value in (*self.inputs, *self.outputs):
            if shape_of(value)[axis] not in (DYNAMIC_INDEX, self.length):
                raise VerifyException(f"an input or output has {shape_of(value)[axis]} slices, expected {self.length}")
        arguments = self.body.block.arg_types
        returned = returned_types(self.body.block)
        check_count("arguments of the body", len(arguments), len(self.operands))
        check_count("values that the body returns", len(returned), len(self.results))
        check_count("carries", len(self.carries), len(self.inits))
        sliced = [self._slice(value.type) for value in self.inputs]
        for actual, expected in zip(arguments, (*sliced, *self.inits.types), strict=True):
            check_types("an argument of the body", actual, expected)
        sliced = [self._slice(value.type) for value in self.outputs]
        for actual, expected in zip(returned, (*sliced, *self.carries.types), strict=True):
            check_types("a value that the body returns", actual, expected)
        for actual, expected in zip(self.carries.types, self.inits.types, strict=True):
            check_types("a carry", actual, expected)

    def _slice(self, type_: Attribute) -> Attribute:
        """Return the type of one slice of a tensor. The slice lacks the scan dimension."""
        assert is_tensor(type_), "the definition of the operation requires a tensor"
        shape = type_.get_shape()
        return TensorType(type_.element_type, [*shape[: self.axis], *shape[self.axis + 1 :]], type_.encoding)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("inits")
        inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("dimension")
        parser.parse_punctuation("=")
        dimension = IntegerAttr(parse_int64(parser), i64)
        given = parser.parse_optional_attr_dict_with_keyword(reserved_attr_names=("dimension", *_SEGMENTS))
        named = dict(given.data) if given is not None else {}
        body = parser.parse_region()
        parser.parse_punctuation(":")
        types: FunctionType = parser.parse_function_type()
        operands = parser.resolve_operands([*inputs, *inits], types.inputs.data, start)
        outputs = len(types.outputs.data) - len(inits)
        if outputs < 0:
            parser.raise_error(
                f"there are {len(types.outputs.data)} results, expected at least {len(inits)}, one for each init",
                start,
                parser.pos,
            )
        segments = ((len(inputs), len(inits)), (outputs, len(inits)))
        properties: dict[str, Attribute] = {"dimension": dimension}
        for name, sizes in zip(_SEGMENTS, segments, strict=True):
            properties[name] = DenseArrayBase.from_list(i32, sizes)
        for name in ("scan_dim_size", "is_reverse", "is_associative"):
            if name in named:
                properties[name] = named.pop(name)
        return cls.create(
            operands=operands, result_types=types.outputs.data, properties=properties, attributes=named, regions=[body]
        )

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_list(self.inputs, printer.print_operand)
        printer.print_string(" inits ")
        with printer.in_parens():
            printer.print_list(self.inits, printer.print_operand)
        printer.print_string(f" dimension={self.axis}")
        shown = {name: value for name, value in self.properties.items() if name not in ("dimension", *_SEGMENTS)}
        printer.print_op_attributes({**self.attributes, **shown}, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        print_function_type(printer, self)


SCAN: list[type[Operation]] = [ScanOp]
