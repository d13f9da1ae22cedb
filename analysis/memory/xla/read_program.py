"""Convert an MLIR block to the program of the XLA:CPU model.

XLA folds small values that are computed only from constants, so that they use no memory. It turns splats into
broadcasts, and ascending ranges into iotas. Values that are computed from these broadcasts and iotas are computed at
run time, before all other operations; equal values are computed once. A kernel that can fuse such a value computes the
value itself. For all other kernels, the value is stored from the start of the step to its last reader.
"""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ....dialects.constants.dense import DenseAttr, to_numpy
from ....mlir_io.repeated_operations import key_of
from ....planning.graph import NO_MAKER
from ....rules.buffers import DENSE_VIEWS, element_bytes, viewed_operand
from ....rules.fusion import FUSIBLE
from ....support.diagnostics import Refusal
from ....support.operations import name_of
from ....support.type_guards import is_tensor
from ...step.graph_of import Key, region_key
from ...step.order import Order, captured_values, constants_only
from ...step.views import element_type_of, rank_of, shape_of, value_bytes
from .program import Columns, Kernel, SourceProgram, WindowShape
from .traits import (
    REQUIRED_LAYOUTS,
    Trait,
    Traits,
    divides_cheaply,
    does_nothing,
    is_mask_as_numbers,
    needs_transposed_copy,
    traits_of,
)


@dataclass(frozen=True)
class SplatNumber:
    """A constant whose elements are all the same number. Constants with the same number are equal."""

    key: Hashable
    literal: DenseAttr | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Computed:
    """A value that is computed at run time. Values with the same computation are equal."""

    key: Hashable


@dataclass
class FromConstants:
    """Classifies the values that are computed from constants.

    Operations whose operands all come from constants must be added in program order.
    """

    classes: dict[SSAValue, SplatNumber | Computed] = field(default_factory=dict[SSAValue, "SplatNumber | Computed"])

    def add(self, op: Operation) -> None:
        if len(op.results) == 1 and not op.regions and (classified := self._classify(op)) is not None:
            self.classes[op.results[0]] = classified

    def equality_key(self, value: SSAValue) -> tuple[Hashable, Attribute] | None:
        """Return a key that is the same for all values that XLA computes once; None for values that use no memory."""
        classified = self.classes.get(value)
        if classified is None or not is_tensor(value.type) or not value.type.get_shape():
            return None
        return classified, value.type

    def is_one_number(self, value: SSAValue) -> bool:
        return isinstance(self.classes.get(value), SplatNumber)

    def passed_through_operand(self, op: Operation) -> SSAValue | None:
        """Return the operand that the operation returns unchanged, such as `x` in `x + 0` or in a maximum with minus
        infinity."""
        neutral = _NEUTRAL.get(name_of(op))
        if neutral is None:
            return None
        left, right = op.operands
        if self._is(right, neutral):
            return left
        return right if name_of(op) not in _ONE_SIDED and self._is(left, neutral) else None

    def _is(self, value: SSAValue, number: float) -> bool:
        splat = self.classes.get(value)
        if not isinstance(splat, SplatNumber) or not isinstance(splat.literal, DenseAttr):
            return False
        array = to_numpy(splat.literal)
        return bool((array == number).all())

    def _classify(self, op: Operation) -> SplatNumber | Computed | None:
        name = name_of(op)
        read = [self.classes.get(operand) for operand in op.operands]
        if name == "stablehlo.constant":
            return _literal(op.properties["value"])
        if (
            read
            and all(isinstance(operand, SplatNumber) for operand in read)
            and (name in FUSIBLE or name in DENSE_VIEWS)
        ):
            if name == "stablehlo.broadcast_in_dim" or name in DENSE_VIEWS:
                return read[0]
            return SplatNumber((name, element_type_of(op.results[0]), *read))
        runs = name == "stablehlo.iota" or any(self.equality_key(operand) for operand in op.operands)
        if not runs:
            return None
        properties = tuple(sorted(op.properties.items()))
        inputs = [classified or operand for classified, operand in zip(read, op.operands, strict=True)]
        return Computed((name, properties, op.results[0].type, *inputs))


_NEUTRAL = {
    "stablehlo.add": 0.0,
    "stablehlo.subtract": 0.0,
    "stablehlo.multiply": 1.0,
    "stablehlo.divide": 1.0,
    "stablehlo.maximum": float("-inf"),
    "stablehlo.minimum": float("inf"),
}
_ONE_SIDED = frozenset({"stablehlo.subtract", "stablehlo.divide"})


def _literal(value: Attribute) -> SplatNumber | None:
    if isinstance(value, DenseAttr) and (value.is_splat or not value.type.get_shape()):
        return SplatNumber((value.data, value.type.element_type), value)
    return None


POOL = "stablehlo.select_and_scatter"
_INDEX_BYTES = 4
"""Bytes of an element index. XLA stores such indices in s32."""


def kernel_of(op: Operation) -> Kernel:
    """Return the requirements of the kernel that computes a matrix product or a convolution."""
    (result,) = op.results
    return Kernel(
        transposed=needs_transposed_copy(op),
        wide=tuple([_bytes_in_f32(operand) if _is_bf16(operand) else 0 for operand in op.operands]),
        wide_result=_bytes_in_f32(result) if _is_bf16(result) else 0,
    )


def pool_of(op: Operation) -> WindowShape:
    """Return the sizes that the expansion of a windowed maximum's gradient needs."""
    operand, source, _ = op.operands
    return WindowShape(shape_of(operand), prod(shape_of(operand)) * _INDEX_BYTES, prod(shape_of(source)) * _INDEX_BYTES)


def _is_bf16(value: SSAValue) -> bool:
    return is_tensor(value.type) and value.type.element_type == bf16


def _bytes_in_f32(value: SSAValue) -> int:
    wide, narrow = element_bytes(f32), element_bytes(bf16)
    assert wide is not None and narrow is not None, "both are numbers"
    return value_bytes(value) // narrow * wide


_BROADCAST = "stablehlo.broadcast_in_dim"
_LOOP = "stablehlo.while"
# The regions of these operations need memory of their own, whereas the regions of a reduction only compute scalars.
LOOPS_AND_BRANCHES = frozenset({_LOOP, "stablehlo.if", "stablehlo.case"})


def program_of(block: Block, order: Order | None = None) -> SourceProgram:
    """Convert a block to a program of the XLA:CPU model.

    `order`: the order of the block, if it is already computed.

    Raises:
        Refusal: A value has a dynamic shape.
    """
    order = order or Order.of(block)
    reader = _ProgramReader(order, constants_only(order))
    for op in order.operations:
        reader.add(op)
    return reader.program()


@dataclass
class _ProgramReader:
    """Numbers the operations and values of a block, and collects their columns.

    Values are keyed by id. This is safe because they live as long as the block.
    """

    order: Order
    constant: Set[SSAValue]
    number: dict[int, int] = field(default_factory=dict[int, int])
    columns: Columns = field(default_factory=Columns)
    reshapes: dict[int, int] = field(default_factory=dict[int, int])
    numbers: set[int] = field(default_factory=set[int])
    masks: set[int] = field(default_factory=set[int])
    broadcasts: set[int] = field(default_factory=set[int])
    from_constants: FromConstants = field(default_factory=FromConstants)
    alike: dict[int, int] = field(default_factory=dict[int, int])
    alike_numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    traits: dict[Key, Traits] = field(default_factory=dict[Key, Traits])
    spreads: dict[int, int] = field(default_factory=dict[int, int])
    spread_numbers: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    measured: dict[int, tuple[Attribute, int, int]] = field(default_factory=dict[int, tuple[Attribute, int, int]])
    """Bytes and rank by the id of a type, since a step has few types and many values of each."""

    def __post_init__(self) -> None:
        for argument in self.order.block.args:
            self._add_from_outside(argument)
        result_ids = {id(result) for op in self.order.operations for result in op.results}
        for read in self.order.reads:
            for value in read:
                if id(value) not in result_ids:
                    self._add_from_outside(value)

    def _add_from_outside(self, value: SSAValue) -> int:
        """Add a value from outside the block and, if it is a reshape, its operand; return the index of the value."""
        if id(value) in self.number:
            return self.number[id(value)]
        source = _reshape_operand(value)
        root = None if source is None else self.columns.root[self._add_from_outside(source)]
        self.number[id(value)] = number = self.columns.add_value(NO_MAKER, *self._measures(value, True), root)
        if _is_broadcast(value):
            self.broadcasts.add(number)
        return number

    def add(self, op: Operation) -> None:
        name = name_of(op)
        number = len(self.columns.names)
        results = op.results
        is_constant = all([result in self.constant for result in results])
        if is_constant:
            self.from_constants.add(op)
        is_number = is_constant and len(results) == 1 and self.from_constants.is_one_number(results[0])
        # The operand whose memory the result shares. A splat shares no memory, since it is created in its final shape.
        source = (
            None if is_number or not results else _viewed_operand(op) or self.from_constants.passed_through_operand(op)
        )
        operands = [self.number[id(operand)] for operand in op.operands]
        captured = [self.number[id(value)] for value in self._read_by(op)] if op.regions else []
        if source is not None:
            self.reshapes[number] = operands.index(self.number[id(source)])
        if is_number:
            self.numbers.add(number)
        if is_mask_as_numbers(op):
            self.masks.add(number)
        if source is None and name == _BROADCAST and not is_constant:
            self.spreads[number] = self._spread(op)
        makes = [self._make(number, result, source, is_constant) for result in results]
        if is_number or name == _BROADCAST:
            self.broadcasts.update(makes)
        traits = Trait.FUSIBLE | Trait.LIBRARY if is_number else self._traits(op)
        self.columns.add_operation(name, traits, operands, captured, makes)

    def _traits(self, op: Operation) -> Traits:
        if (alike := key_of(op)) is None:
            return traits_of(op, self.constant)
        # Apart from this flag, the traits do not depend on the operands.
        key = (alike, name_of(op) == "stablehlo.divide" and divides_cheaply(op, self.constant))
        if (traits := self.traits.get(key)) is None:
            traits = self.traits[key] = traits_of(op, self.constant)
        return traits

    def _spread(self, op: Operation) -> int:
        key = (op.operands[0].type, *op.properties.values(), op.results[0].type)
        return self.spread_numbers.setdefault(key, len(self.spread_numbers))

    def _make(self, maker: int, result: SSAValue, source: SSAValue | None, is_constant: bool) -> int:
        """Add a result and return its index.

        `source`: the operand whose memory the result shares; None if the result has its own memory.
        """
        root = None if source is None else self.columns.root[self.number[id(source)]]
        index = self.columns.add_value(maker, *self._measures(result, is_constant or source is not None), root)
        self.number[id(result)] = index
        if is_constant:
            alike = self.from_constants.equality_key(result) if source is None else None
            if alike is not None:
                self.alike[index] = self.alike_numbers.setdefault(alike, len(self.alike_numbers))
            else:
                self.columns.constants.add(index)
        return index

    def _measures(self, value: SSAValue, free: bool) -> tuple[int, int]:
        """Return the bytes and the rank of a value.

        A `free` value has no memory of its own, so its size may be unknown.
        """
        type_ = value.type
        if (entry := self.measured.get(id(type_))) is not None:
            return entry[1:]
        try:
            measures = value_bytes(value), rank_of(value)
        except Refusal:
            if not free:
                raise
            return 0, rank_of(value)
        self.measured[id(type_)] = (type_, *measures)
        return measures

    def _read_by(self, op: Operation) -> tuple[SSAValue, ...]:
        return self.order.reads[self.order.position[op]]

    def program(self) -> SourceProgram:
        operations = self.order.operations
        body_cache = dict[Key, tuple[SourceProgram, ...]]()
        bodies = {
            number: self._bodies_of(op, body_cache)
            for number, op in enumerate(operations)
            if self.columns.names[number] in LOOPS_AND_BRANCHES
        }
        loops = [body for body in bodies if self.columns.names[body] == _LOOP]
        return SourceProgram(
            arguments=len(self.order.block.args),
            reshapes=self.reshapes,
            numbers=frozenset(self.numbers),
            masks=frozenset(self.masks),
            **self.columns.fields(),
            broadcasts=frozenset(self.broadcasts),
            bodies=bodies,
            handed_on={loop: unchanged_carries(operations[loop]) for loop in loops},
            kernels={
                number: kernel_of(op)
                for number, op in enumerate(operations)
                if self.columns.names[number] in REQUIRED_LAYOUTS
            },
            alike=self.alike,
            pools={number: pool_of(op) for number, op in enumerate(operations) if self.columns.names[number] == POOL},
            spreads=self.spreads,
        )

    def _bodies_of(self, op: Operation, cache: dict[Key, tuple[SourceProgram, ...]]) -> tuple[SourceProgram, ...]:
        """Return the programs of the regions. Structurally equal operations share one list of programs, so that each
        program is analysed only once."""
        captured = captured_values(op)
        if any(_reshape_operand(value) is not None for value in captured):
            # The operands of captured reshapes matter too, and are not in the key.
            return _programs(op)
        key = region_key(op, set(filter(_is_broadcast, captured)), frozenset())
        if key not in cache:
            cache[key] = _programs(op)
        return cache[key]


def _programs(op: Operation) -> tuple[SourceProgram, ...]:
    return tuple([program_of(block) for region in op.regions for block in region.blocks])


def _reshape_operand(value: SSAValue) -> SSAValue | None:
    """Return the operand that the value reshapes; None if it is not a reshape."""
    return _viewed_operand(value.owner) if isinstance(value.owner, Operation) else None


def _viewed_operand(op: Operation) -> SSAValue | None:
    return op.operands[0] if does_nothing(op) else viewed_operand(op) if name_of(op) in DENSE_VIEWS else None


def _is_broadcast(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and name_of(value.owner) == _BROADCAST


def unchanged_carries(loop: Operation) -> frozenset[int]:
    """Return the indices of the carried values that neither the loop nor a loop nested in it changes."""
    body = loop.regions[1].blocks[0]
    assert body.last_op is not None, "a loop's body has a terminator"
    pairs = zip(body.args, body.last_op.operands, strict=True)
    return frozenset([index for index, (before, after) in enumerate(pairs) if _before_loops(after) is before])


def _before_loops(value: SSAValue) -> SSAValue:
    """Follow results of loops that carry a value unchanged back to the value before these loops."""
    while isinstance(value, OpResult) and name_of(value.op) == _LOOP and value.index in unchanged_carries(value.op):
        value = value.op.operands[value.index]
    return value
