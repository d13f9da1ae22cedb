"""Bugs that change what the program computes, each of which the proof must reject."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from recompute.dialects.constants.dense import DenseAttr
from recompute.dialects.context import make_context
from recompute.dialects.stablehlo.attributes import (
    ComparisonDirection,
    ComparisonDirectionAttr,
    DotAttr,
    Precision,
    PrecisionAttr,
)
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.support.operations import name_of

from .bug import IDENTITIES, Bug, Edit, differ, functions, is_copy, live_operations, live_values, main_block, origin

NOT_COMMUTATIVE = ("subtract", "divide", "power", "shift_left", "shift_right_logical", "compare")
OTHER_KIND = {
    "sine": "cosine",
    "cosine": "sine",
    "tanh": "logistic",
    "exponential": "exponential_minus_one",
    "rsqrt": "sqrt",
    "maximum": "minimum",
    "subtract": "add",
    "multiply": "divide",
    "xor": "or",
}
OTHER_BODY = {"add": "maximum", "maximum": "add"}
OTHER_DIRECTION = {
    ComparisonDirection.EQ: ComparisonDirection.NE,
    ComparisonDirection.NE: ComparisonDirection.EQ,
    ComparisonDirection.LT: ComparisonDirection.LE,
    ComparisonDirection.LE: ComparisonDirection.LT,
    ComparisonDirection.GT: ComparisonDirection.GE,
    ComparisonDirection.GE: ComparisonDirection.GT,
}
KEY = TensorType(IntegerType(32, Signedness.UNSIGNED), [2])


def live(module: ModuleOp, *names: str) -> list[Operation]:
    """Return the live operations of these kinds."""
    return [op for op in live_operations(module) if op.name.removeprefix("stablehlo.") in names]


def swap(op: Operation, i: int, j: int) -> None:
    op.operands[i], op.operands[j] = op.operands[j], op.operands[i]


def set_operand(op: Operation, index: int, value: SSAValue) -> None:
    op.operands[index] = value


def set_property(op: Operation, name: str, value: Attribute) -> None:
    op.properties[name] = value


def swappable(values: Sequence[SSAValue]) -> Iterator[tuple[int, int]]:
    """Yield the index pairs of values that have the same type and differ."""
    for i, j in combinations(range(len(values)), 2):
        if values[i].type == values[j].type and differ(values[i], values[j]):
            yield i, j


# Operands


def operands_swapped(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, *NOT_COMMUTATIVE):
        for i, j in swappable(op.operands):
            yield partial(swap, op, i, j)


def operands_of_a_copy_swapped(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, *NOT_COMMUTATIVE):
        for i, j in swappable(op.operands) if is_copy(op) else ():
            yield partial(swap, op, i, j)


def copy_of_another_layer(module: ModuleOp) -> Iterator[Edit]:
    """Let a copy read the input of another instance of its region: an argument of the same type that it does not
    read."""
    for op in live_operations(module):
        if not is_copy(op) or op.parent is not main_block(module):
            continue
        for index, operand in enumerate(op.operands):
            for argument in main_block(module).args:
                if argument.type == operand.type and differ(argument, operand):
                    yield partial(set_operand, op, index, argument)
                    break


def operation_skipped(module: ModuleOp) -> Iterator[Edit]:
    for op in live_operations(module):
        if op.name not in IDENTITIES and len(op.operands) == len(op.results) == 1 and not op.regions:
            (operand,), (result,) = op.operands, op.results
            if operand.type == result.type and op.name != "stablehlo.convert":  # To its own type it is its operand.
                yield partial(result.replace_all_uses_with, operand)


def other_result(module: ModuleOp) -> Iterator[Edit]:
    """Let a reader of one result of an operation read a different result."""
    alive = live_values(module)
    for op in live(module, "while", "func.call"):
        for first, other in combinations([result for result in op.results if result in alive], 2):
            if first.type == other.type and first.uses.get_length():
                yield partial(first.replace_all_uses_with, other)


# Random keys


def keys_read(module: ModuleOp) -> Iterator[tuple[Operation, int]]:
    """Yield the operands of copies that are keys derived from the step's key."""
    arguments = main_block(module).args
    for op in live_operations(module):
        if op.parent is main_block(module) and op.name not in IDENTITIES:
            for index, operand in enumerate(op.operands):
                if operand.type == KEY and origin(operand) not in arguments:
                    yield op, index


def step_key_for_derived_key(module: ModuleOp) -> Iterator[Edit]:
    for key in [argument for argument in main_block(module).args if argument.type == KEY]:
        for op, index in keys_read(module):
            yield partial(set_operand, op, index, key)


def constant_for_derived_key(module: ModuleOp) -> Iterator[Edit]:
    for op, index in keys_read(module):
        yield partial(_read_constant, op, index, bytes(range(8)))


def _read_constant(op: Operation, index: int, raw: bytes) -> None:
    constant = ConstantOp.create(properties={"value": DenseAttr.get(KEY, raw)}, result_types=[KEY])
    block = op.parent
    assert block is not None, "a live operation stands in a block"
    block.insert_op_before(constant, op)
    op.operands[index] = constant.results[0]


# Attributes


def compare_direction(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, "compare"):
        direction = op.properties["comparison_direction"]
        assert isinstance(direction, ComparisonDirectionAttr), "verified"
        other = ComparisonDirectionAttr(OTHER_DIRECTION[direction.data])
        yield partial(set_property, op, "comparison_direction", other)


def dot_dimensions(module: ModuleOp) -> Iterator[Edit]:
    """Contract a square matrix along the wrong dimension."""
    for op in live(module, "dot_general"):
        numbers, left = op.properties["dot_dimension_numbers"], op.operands[0].type
        assert isinstance(numbers, DotAttr) and isinstance(left, TensorType), "verified"
        shape, contracting = left.get_shape(), numbers.data.lhs_contracting_dimensions
        if len(shape) == 2 and shape[0] == shape[1] and len(contracting) == 1:
            other = replace(numbers.data, lhs_contracting_dimensions=(1 - contracting[0],))
            yield partial(set_property, op, "dot_dimension_numbers", DotAttr(other))


def dot_precision(module: ModuleOp) -> Iterator[Edit]:
    highest = PrecisionAttr(Precision.HIGHEST)
    for op in live(module, "dot_general"):
        if "precision_config" in op.properties:
            yield partial(set_property, op, "precision_config", ArrayAttr([highest, highest]))
            yield partial(op.properties.pop, "precision_config")


def iota_dimension(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, "iota"):
        dimension, type_ = op.properties["iota_dimension"], op.results[0].type
        assert isinstance(dimension, IntegerAttr) and isinstance(type_, TensorType), "verified"
        if (rank := len(type_.get_shape())) > 1:
            other = IntegerAttr((dimension.value.data + 1) % rank, i64)
            yield partial(set_property, op, "iota_dimension", other)


def slice_bounds(module: ModuleOp) -> Iterator[Edit]:
    """Shift a slice by one element in the first dimension that has room."""
    for op in live(module, "slice"):
        start, limit = op.properties["start_indices"], op.properties["limit_indices"]
        type_ = op.operands[0].type
        assert isinstance(start, DenseArrayBase) and isinstance(limit, DenseArrayBase), "verified"
        assert isinstance(type_, TensorType), "verified"
        starts, limits = list(start.get_values()), list(limit.get_values())
        for index, size in enumerate(type_.get_shape()):
            step = 1 if limits[index] < size else -1 if starts[index] > 0 else 0
            if step:
                starts[index] += step
                limits[index] += step
                yield partial(_set_bounds, op, starts, limits)
                break


def _set_bounds(op: Operation, starts: Sequence[int], limits: Sequence[int]) -> None:
    op.properties["start_indices"] = DenseArrayBase.from_list(i64, starts)
    op.properties["limit_indices"] = DenseArrayBase.from_list(i64, limits)


# Constants


def constants(module: ModuleOp, edit: Callable[[DenseAttr], bytes | None]) -> Iterator[Edit]:
    """Change the bits of the constants for which `edit` returns new ones."""
    for op in live(module, "constant"):
        value = op.properties["value"]
        if isinstance(value, DenseAttr) and (raw := edit(value)) is not None:
            yield partial(set_property, op, "value", DenseAttr(value.type, BytesAttr(raw)))


def lowest_bit(module: ModuleOp) -> Iterator[Edit]:
    return constants(module, lambda value: bytes([value.data.data[0] ^ 1]) + value.data.data[1:])


def sign_of_zero(module: ModuleOp) -> Iterator[Edit]:
    def negative(value: DenseAttr) -> bytes | None:
        raw = value.data.data
        is_zero = value.is_splat and isinstance(value.type.element_type, AnyFloat) and not any(raw)
        return raw[:-1] + b"\x80" if is_zero else None

    return constants(module, negative)


# Kinds of operations


def other_kind(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, *OTHER_KIND):
        yield partial(_become, op, OTHER_KIND[op.name.removeprefix("stablehlo.")])


def other_reduction(module: ModuleOp) -> Iterator[Edit]:
    for op in live(module, "reduce"):
        for inner in op.regions[0].block.ops:
            if (name := inner.name.removeprefix("stablehlo.")) in OTHER_BODY:
                yield partial(_become, inner, OTHER_BODY[name])


def _become(op: Operation, name: str) -> None:
    """Replace `op` by another operation with the same operands, attributes and results."""
    kind = make_context().get_op(f"stablehlo.{name}")
    other = kind.create(
        operands=op.operands,
        result_types=[result.type for result in op.results],
        attributes=op.attributes,
        properties=op.properties,
        location=op.location,
    )
    block = op.parent
    assert block is not None, "a live operation stands in a block"
    block.insert_op_before(other, op)
    for old, new in zip(op.results, other.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


# Loops and barriers


def loop_yields_swapped(module: ModuleOp) -> Iterator[Edit]:
    for loop, i, j in live_carries(module):
        terminator = loop.regions[1].block.last_op
        assert terminator is not None, "verified: a body has a terminator"
        if terminator.operands[i] is not terminator.operands[j]:
            yield partial(swap, terminator, i, j)


def loop_inits_swapped(module: ModuleOp) -> Iterator[Edit]:
    for loop, i, j in live_carries(module):
        if differ(loop.operands[i], loop.operands[j]):
            yield partial(swap, loop, i, j)


def live_carries(module: ModuleOp) -> Iterator[tuple[Operation, int, int]]:
    """Yield loops with two of their live carries that have the same type."""
    alive = live_values(module)
    for op in live(module, "while"):
        for i, j in combinations(range(len(op.results)), 2):
            if op.results[i].type == op.results[j].type and op.results[i] in alive and op.results[j] in alive:
                yield op, i, j


def barrier_permuted(module: ModuleOp) -> Iterator[Edit]:
    alive = live_values(module)
    for op in live_operations(module):
        if op.name in IDENTITIES:
            for i, j in swappable(op.operands[: len(op.results)]):
                if op.results[i] in alive or op.results[j] in alive:
                    yield partial(swap, op, i, j)


# Effects


def plant_effects(module: ModuleOp) -> None:
    """Insert two calls of unknown code at the start of the step."""
    block = main_block(module)
    for name in ("log_second", "log_first"):
        operation = (
            make_context()
            .get_op("stablehlo.custom_call")
            .create(
                operands=[block.args[0]],
                result_types=[block.args[0].type],
                properties={"call_target_name": StringAttr(name), "has_side_effect": IntegerAttr(1, 1)},
            )
        )
        first = block.first_op
        assert first is not None, "verified: a function has a terminator"
        block.insert_op_before(operation, first)


def effects(module: ModuleOp) -> list[Operation]:
    return [op for op in main_block(module).ops if name_of(op) == "stablehlo.custom_call"]


def effect_cloned(module: ModuleOp) -> Iterator[Edit]:
    terminator = main_block(module).last_op
    assert terminator is not None, "verified: a function has a terminator"
    for op in effects(module):
        yield partial(main_block(module).insert_op_before, op.clone(), terminator)


def effect_dropped(module: ModuleOp) -> Iterator[Edit]:
    for op in effects(module):
        yield partial(_erase, op)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def effects_reordered(module: ModuleOp) -> Iterator[Edit]:
    first, second = effects(module)
    yield partial(_move_before, second, first)


def _move_before(op: Operation, other: Operation) -> None:
    block = op.parent
    assert block is not None, "effects stand in a block"
    op.detach()
    block.insert_op_before(op, other)


# The signature


def results_permuted(module: ModuleOp) -> Iterator[Edit]:
    terminator = main_block(module).last_op
    assert terminator is not None, "verified: a function has a terminator"
    for i, j in swappable(terminator.operands):
        yield partial(swap, terminator, i, j)


def donation_lost(module: ModuleOp) -> Iterator[Edit]:
    function = functions(module)["main"]
    if function.arg_attrs is None:
        return
    attributes = list(function.arg_attrs.data)
    for index, each in enumerate(attributes):
        if "tf.aliasing_output" in each.data:
            left = {name: value for name, value in each.data.items() if name != "tf.aliasing_output"}
            other = [*attributes[:index], DictionaryAttr(left), *attributes[index + 1 :]]
            yield partial(set_property, function, "arg_attrs", ArrayAttr(other))


BUGS = (
    Bug("operands swapped", operands_swapped),
    Bug("operands of a copy swapped", operands_of_a_copy_swapped),
    Bug("a copy reads another layer's input", copy_of_another_layer),
    Bug("an operation skipped", operation_skipped),
    Bug("another result of the same operation", other_result),
    Bug("the step's key in place of the dropout's", step_key_for_derived_key),
    Bug("a constant in place of the dropout's key", constant_for_derived_key),
    Bug("another direction of a comparison", compare_direction),
    Bug("another dimension of a contraction", dot_dimensions),
    Bug("another precision of a contraction", dot_precision),
    Bug("another dimension of an iota", iota_dimension),
    Bug("other bounds of a slice", slice_bounds),
    Bug("the lowest bit of a constant", lowest_bit),
    Bug("the sign of a zero", sign_of_zero),
    Bug("another kind of operation", other_kind),
    Bug("another body of a reduction", other_reduction),
    Bug("what a loop carries swapped", loop_yields_swapped),
    Bug("what a loop starts from swapped", loop_inits_swapped),
    Bug("a barrier that permutes its values", barrier_permuted),
    Bug("an effect cloned", effect_cloned, plant_effects),
    Bug("an effect dropped", effect_dropped, plant_effects),
    Bug("effects reordered", effects_reordered, plant_effects),
    Bug("results permuted", results_permuted),
    Bug("a donation lost", donation_lost),
)
