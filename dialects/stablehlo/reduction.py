"""Operations that combine elements with a region: `stablehlo.reduce`, in its short and its long form, and
`stablehlo.map`.

The region of `reduce` combines two values of each input into one. The element type of each operand must be promotable
to the element type of the result. The specification requires the values in the region to be scalars. Like StableHLO's
own verifier, the verifier here also accepts tensors with the extents of the result.

    %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (t, s) -> s
    %r = stablehlo.reduce(%a init: %zero) across dimensions = [0] : (t, s) -> u
     reducer(%x: s, %y: s) { … }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, DenseArrayBase, LocationAttr, TensorType, UnknownLoc, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...support.locations import trailing_location
from ...support.type_guards import AnyTensor, is_complex_type, is_integer_type, is_tensor
from .attributes import Dimensions, parse_dimensions
from .binary import COMMUTATIVE, CommutativeOp
from .checks import (
    Constraint,
    Shape,
    bits_of,
    check_count,
    check_distinct,
    check_element,
    check_shape,
    check_within,
    element_of,
    shape_of,
    verify_constraints,
)
from .control import ReturnOp, check_all, returned_types
from .formats import i64_array, parse_attributes, parse_located_argument, print_attributes, print_function_type
from .quantized_types import QuantizedType, same_element
from .shapes import I64_ARRAY
from .tensors import numbers


def combined_types(block: Block, count: int) -> Sequence[AnyTensor]:
    """Return the types of the values that the region combines.

    Raises `VerifyException` unless the region returns `count` tensors and takes two arguments of the type of each
    tensor.
    """
    returned = returned_types(block)
    check_count("values that the region returns", len(returned), count)
    check_all("the arguments of the region", block.arg_types, [*returned, *returned])
    tensors = [type_ for type_ in returned if is_tensor(type_)]
    if len(tensors) != count:
        raise VerifyException(f"the region returns {', '.join(map(str, returned))}, expected tensors")
    return tensors


def check_scalars(types: Sequence[AnyTensor]) -> None:
    for type_ in types:
        if type_.get_shape():
            raise VerifyException(f"the region must take scalars, not {type_}")


def check_slices(types: Sequence[AnyTensor], shape: Shape) -> None:
    """Check that the extents of each tensor are a subsequence of `shape`."""
    for type_ in types:
        extents = iter(shape)
        if not all(any(_agree(size, extent) for extent in extents) for size in type_.get_shape()):
            raise VerifyException(
                f"the region must take scalars, or tensors with the extents {list(shape)}, not {type_}"
            )


def _agree(first: int, second: int) -> bool:
    return first == second or DYNAMIC_INDEX in (first, second)


def check_promotable(subject: str, element: Attribute, to: Attribute) -> None:
    """Check that the type `element` can be promoted to the type `to`.

    Both types must be of the same kind, and `to` must have at least as many bits. Floats of any width can be promoted
    to each other.
    """
    if not same_element(element, to) and not _promotes(element, to):
        raise VerifyException(f"{subject} has elements of type {element}, but they cannot be promoted to {to}")


def _promotes(element: Attribute, to: Attribute) -> bool:
    if isinstance(element, AnyFloat):
        return isinstance(to, AnyFloat)
    source, target = QuantizedType.of(element), QuantizedType.of(to)
    if source is not None and target is not None:
        widens = source.storage.width.data <= target.storage.width.data
        return widens and source.expressed == target.expressed and source.dimension == target.dimension
    kinds = (is_integer_type, is_complex_type)
    return any(of(element) and of(to) for of in kinds) and (bits_of(element) or 0) <= (bits_of(to) or 0)


class ReducingOp(IRDLOperation):
    """Base class of operations that combine elements of their inputs with a region, starting from an initial value."""

    inputs = var_operand_def(numbers("I1"))
    init_values = var_operand_def(numbers("I2"))
    result = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)


def check_counts(op: ReducingOp) -> None:
    if not op.inputs:
        raise VerifyException("there are no inputs, expected at least one")
    check_count("initial values", len(op.init_values), len(op.inputs))
    check_count("results", len(op.result), len(op.inputs))


def check_same_shapes(op: ReducingOp) -> None:
    for value in op.inputs:
        check_shape("an input", shape_of(value), shape_of(op.inputs[0]))


def check_body(op: ReducingOp, shape: Shape) -> None:
    """Check that the region combines scalars, or tensors with extents of `shape`, and that the inputs can be promoted
    to the types in the region."""
    types = combined_types(op.body.block, len(op.inputs))
    check_slices(types, shape)
    for value, type_ in zip(op.inputs, types, strict=True):
        check_promotable("an input", element_of(value), type_.element_type)


def check_inits(op: ReducingOp) -> None:
    for init, type_ in zip(op.init_values, combined_types(op.body.block, len(op.inputs)), strict=True):
        check_shape("an initial value", shape_of(init), type_.get_shape())
        check_promotable("an initial value", element_of(init), type_.element_type)


def check_result_elements(op: ReducingOp) -> None:
    for result, type_ in zip(op.result, combined_types(op.body.block, len(op.inputs)), strict=True):
        check_element("a result", element_of(result), type_.element_type)


@irdl_op_definition
class MapOp(IRDLOperation):
    """Apply the region to the elements of the inputs at each index."""

    name = "stablehlo.map"

    inputs = var_operand_def(numbers("I1"))
    dimensions = prop_def(I64_ARRAY)
    computation = region_def("single_block")
    result = result_def(TensorType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, MAP_CONSTRAINTS)


def _check_count(op: MapOp) -> None:
    if not op.inputs:
        raise VerifyException("there are no inputs, expected at least one")


def _check_shapes(op: MapOp) -> None:
    for value in op.inputs:
        check_shape("an input", shape_of(value), shape_of(op.result))


def _check_dimensions(op: MapOp) -> None:
    dimensions = list(op.dimensions.get_values())
    rank = len(shape_of(op.inputs[0]))
    if dimensions != list(range(rank)):
        raise VerifyException(f"the dimensions are {dimensions}, expected {list(range(rank))}")


def _check_computation(op: MapOp) -> None:
    scalars = [TensorType(element_of(value), []) for value in op.inputs]
    check_all("the arguments of the region", op.computation.block.arg_types, scalars)
    returned = [TensorType(element_of(op.result), [])]
    check_all("the values that the region returns", returned_types(op.computation.block), returned)


MAP_CONSTRAINTS: tuple[Constraint[MapOp], ...] = (
    Constraint("C2", _check_count),
    Constraint("C1", _check_shapes),
    Constraint("C3", _check_dimensions),
    Constraint("C4", _check_computation),
)

MAPPING: list[type[Operation]] = [MapOp]


@irdl_op_definition
class ReduceOp(ReducingOp):
    """Combine the elements of one or more tensors along some dimensions, starting from an initial value."""

    name = "stablehlo.reduce"

    dimensions = prop_def(DenseArrayBase.constr(i64))

    def __init__(self, inputs: Sequence[SSAValue], inits: Sequence[SSAValue], dimensions: Sequence[int], body: Region):
        types = [TensorType(element_of(init), _reduced_shape(shape_of(inputs[0]), dimensions)) for init in inits]
        properties = {"dimensions": i64_array(dimensions)}
        super().__init__(operands=[inputs, inits], result_types=[types], properties=properties, regions=[body])

    def verify_(self) -> None:
        verify_constraints(self, REDUCE_CONSTRAINTS)

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
            parser.raise_error("the first operand of a reduction must be a tensor", start, parser.pos)
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


def _reduced_shape(shape: Sequence[int], dimensions: Sequence[int]) -> list[int]:
    return [extent for dimension, extent in enumerate(shape) if dimension not in dimensions]


def _shape_of_result(op: ReduceOp) -> list[int]:
    return _reduced_shape(shape_of(op.inputs[0]), op.dimensions.get_values())


def _check_results(op: ReduceOp) -> None:
    for result in op.result:
        check_shape("a result", shape_of(result), _shape_of_result(op))


REDUCE_CONSTRAINTS: tuple[Constraint[ReduceOp], ...] = (
    Constraint("C3", check_counts),
    Constraint("C1", check_same_shapes),
    Constraint(
        "C4", lambda op: check_within("the dimensions", op.dimensions.get_values(), len(shape_of(op.inputs[0])))
    ),
    Constraint("C5", lambda op: check_distinct("dimensions", op.dimensions.get_values())),
    Constraint("C6", lambda op: check_body(op, _shape_of_result(op))),
    Constraint("C2", check_inits),
    Constraint("C7", _check_results),
    Constraint("C8", check_result_elements),
)


def short_form(op: ReduceOp, with_locations: bool) -> CommutativeOp | None:
    """Return the only operation of the region if the short form loses no information, and None otherwise. The short
    form prints just the name of this operation.

    The operation must take the block arguments in order and must not have attributes or locations that the short form
    omits.
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
    """Return the region that `applies` abbreviates. Its operations and arguments have `location`, the location of the
    reduction."""
    scalar = TensorType(element, [])
    block = Block(arg_types=[scalar, scalar])
    combine = combiner(block.args[0], block.args[1])
    block.add_ops([combine, end := ReturnOp([combine.result])])
    for place in (*block.args, combine, end):
        place.location = location
    return Region(block)


def _parse_pair(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    """Parse an input and its initial value: `(%value init: %init)`"""
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
    """Parse the reduced dimensions: `across dimensions = [0]`"""
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    return parse_dimensions(parser)


def _parse_reducer(parser: Parser) -> Region:
    """Parse a reducer: `(%a: s, %a0: s) (%b: s, %b0: s) {…}`. The block takes the first value of each pair, then the
    second value of each pair."""
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
