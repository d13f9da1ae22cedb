"""`stablehlo.reduce`, in its short and its long form.

%r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (t, s) -> s
%r = stablehlo.reduce(%a init: %zero) across dimensions = [0] : (t, s) -> u
 reducer(%x: s, %y: s) { … }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, TensorType, UnknownLoc, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ...support.locations import trailing_location
from ...support.type_guards import is_tensor
from .binary import COMMUTATIVE, CommutativeOp
from .checks import check_distinct, check_shape, check_within, element_of, shape_of
from .constraints import Constraint, verify_constraints
from .control import ReturnOp
from .formats import i64_array, parse_attributes, parse_located_argument, print_attributes, print_function_type
from .reducing import ReducingOp, check_body, check_counts, check_inits, check_result_elements, check_same_shapes
from .structs import Dimensions, parse_dimensions


@irdl_op_definition
class ReduceOp(ReducingOp):
    """Combines the elements of one tensor, or of several at once, along some dimensions, from an initial value."""

    name = "stablehlo.reduce"

    dimensions = prop_def(DenseArrayBase.constr(i64))

    def __init__(self, inputs: Sequence[SSAValue], inits: Sequence[SSAValue], dimensions: Sequence[int], body: Region):
        types = [TensorType(element_of(init), _reduced(shape_of(inputs[0]), dimensions)) for init in inits]
        properties = {"dimensions": i64_array(dimensions)}
        super().__init__(operands=[inputs, inits], result_types=[types], properties=properties, regions=[body])

    def verify_(self) -> None:
        verify_constraints(self, CONSTRAINTS)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_pair(parser))
        combiner = _parse_combiner(parser) if parser.parse_optional_keyword("applies") is not None else None
        dimensions = _parse_across(parser)
        _, attributes = parse_attributes(parser, cls, ("dimensions",))
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        first = types.inputs.data[0] if types.inputs.data else None
        if first is None or not is_tensor(first):
            parser.raise_error("a reduction takes tensors", start, parser.pos)
        values = [value for value, _ in pairs] + [init for _, init in pairs]
        operands = parser.resolve_operands(values, types.inputs.data, start)
        location = None
        if combiner is None:
            parser.parse_keyword("reducer")
            body = _parse_reducer(parser)
        else:
            location = trailing_location(parser)
            body = short_body(combiner, first.element_type, location)
        return cls.create(
            operands=operands,
            result_types=types.outputs.data,
            properties={"dimensions": i64_array(dimensions)},
            attributes=attributes,
            regions=[body],
            location=location,
        )

    def print(self, printer: Printer) -> None:
        pairs = list(zip(self.inputs, self.init_values, strict=True))
        printer.print_list(pairs, lambda pair: _print_pair(printer, *pair))
        combiner = short_form(self, printer.print_debuginfo)
        if combiner is not None:
            printer.print_string(f" applies {combiner.name}")
        printer.print_string(f" across dimensions = {list(self.dimensions.get_values())}")
        print_attributes(printer, self, ("dimensions",))
        printer.print_string(" : ")
        print_function_type(printer, self)
        if combiner is None:
            _print_reducer(printer, self.body)


def _reduced(shape: Sequence[int], dimensions: Sequence[int]) -> list[int]:
    return [extent for dimension, extent in enumerate(shape) if dimension not in dimensions]


def _kept(op: ReduceOp) -> list[int]:
    return _reduced(shape_of(op.inputs[0]), op.dimensions.get_values())


def _check_results(op: ReduceOp) -> None:
    for result in op.result:
        check_shape("a result", shape_of(result), _kept(op))


CONSTRAINTS: tuple[Constraint[ReduceOp], ...] = (
    Constraint("C3", check_counts),
    Constraint("C1", check_same_shapes),
    Constraint(
        "C4", lambda op: check_within("the dimensions", op.dimensions.get_values(), len(shape_of(op.inputs[0])))
    ),
    Constraint("C5", lambda op: check_distinct("dimensions", op.dimensions.get_values())),
    Constraint("C6", lambda op: check_body(op, _kept(op))),
    Constraint("C2", check_inits),
    Constraint("C7", _check_results),
    Constraint("C8", check_result_elements),
)


def short_form(op: ReduceOp, with_locations: bool) -> CommutativeOp | None:
    """The only operation of the region, if its name determines the region.

    It takes the arguments as they come, and neither attributes nor locations would be lost.
    """
    block = op.body.block
    first, last = block.first_op, block.last_op
    if not isinstance(first, CommutativeOp) or not isinstance(last, ReturnOp) or first.next_op is not last:
        return None
    forwards = tuple(first.operands) == block.args and tuple(last.operands) == (first.result,)
    types = {value.type for value in (*first.operands, first.result)}
    if not forwards or first.attributes or last.attributes or types != {_scalar_of(op)}:
        return None
    inner: list[LocationAttr] = [first.location, last.location, *(argument.location for argument in block.args)]
    if with_locations and any(location not in (op.location, UnknownLoc()) for location in inner):
        return None
    return first


def _scalar_of(op: ReduceOp) -> TensorType:
    return TensorType(element_of(op.inputs[0]), [])


def short_body(combiner: type[CommutativeOp], element: Attribute, location: LocationAttr) -> Region:
    """The region that `applies` expands to, all at the location of the reduction."""
    scalar = TensorType(element, [])
    block = Block(arg_types=[scalar, scalar])
    combine = combiner(block.args[0], block.args[1])
    block.add_ops([combine, end := ReturnOp([combine.result])])
    for place in (*block.args, combine, end):
        place.location = location
    return Region(block)


def _parse_pair(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    """`(%value init: %init)`"""
    with parser.in_parens():
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("init")
        parser.parse_punctuation(":")
        return value, parser.parse_unresolved_operand()


def _print_pair(printer: Printer, value: SSAValue, init: SSAValue) -> None:
    with printer.in_parens():
        printer.print_operand(value)
        printer.print_string(" init: ")
        printer.print_operand(init)


def _parse_combiner(parser: Parser) -> type[CommutativeOp]:
    start = parser.pos
    name = parser.parse_identifier()
    if name not in COMMUTATIVE:
        parser.raise_error(f"expected one of {', '.join(COMMUTATIVE)}", start, parser.pos)
    return COMMUTATIVE[name]


def _parse_across(parser: Parser) -> Dimensions:
    """`across dimensions = [0]`"""
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    return parse_dimensions(parser)


def _parse_reducer(parser: Parser) -> Region:
    """`(%a: s, %a0: s) (%b: s, %b0: s) {…}`; the block takes the first of each pair, then the second of each pair."""
    values: list[Parser.Argument] = []
    others: list[Parser.Argument] = []
    while parser.parse_optional_punctuation("(") is not None:
        values.append(parse_located_argument(parser))
        parser.parse_punctuation(",")
        others.append(parse_located_argument(parser))
        parser.parse_punctuation(")")
    return parser.parse_region([*values, *others])


def _print_reducer(printer: Printer, body: Region) -> None:
    arguments = body.block.args
    half = len(arguments) // 2
    printer.print_string("\n reducer")
    for value, accumulator in zip(arguments[:half], arguments[half:], strict=True):
        printer.print_string("(")
        printer.print_block_argument(value)
        printer.print_string(", ")
        printer.print_block_argument(accumulator)
        printer.print_string(") ")
    printer.print_region(body, print_entry_block_args=False)


REDUCTION: list[type[Operation]] = [ReduceOp]
