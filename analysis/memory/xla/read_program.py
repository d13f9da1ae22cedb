"""From a block of IR to a `Program`."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field

from xdsl.dialects.builtin import bf16, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.diagnostics import Refusal
from ....dialects.guards import is_tensor
from ....planning.graph import OUTSIDE
from ....rules.names import name_of
from ....rules.storage import DENSE_VIEWS, element_bytes, viewed_operand
from ...step.alike_regions import Key, region_key
from ...step.constants import constants_only
from ...step.order import Order, captured_values
from ...step.storage import rank_of, value_bytes
from .constants import FromConstants
from .layouts import WANTED
from .program import POOL, Kernel, Pool, Program
from .traits import Trait, does_nothing, selecting, traits_of

# Their regions run with memory of their own; the regions of a reduction see scalars.
LOOPS_AND_BRANCHES = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case"})


def program_of(block: Block) -> Program:
    """An operation for each of the block's. Raises `Refusal` for dynamic shapes."""
    order = Order.of(block)
    reader = _Reader(order, constants_only(order))
    for op in order.operations:
        reader.add(op)
    return reader.program()


@dataclass
class _Reader:
    """Gives out the numbers."""

    order: Order
    constant: Set[SSAValue]
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    names: list[str] = field(default_factory=list[str])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    maker: list[int] = field(default_factory=list[int])
    sizes: list[int] = field(default_factory=list[int])
    ranks: list[int] = field(default_factory=list[int])
    root: list[int] = field(default_factory=list[int])
    reshapes: set[int] = field(default_factory=set[int])
    constants: set[int] = field(default_factory=set[int])
    broadcasts: set[int] = field(default_factory=set[int])
    from_constants: FromConstants = field(default_factory=FromConstants)
    splat_ids: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    splats: dict[int, int] = field(default_factory=dict[int, int])
    measured: dict[int, tuple[Attribute, int, int]] = field(default_factory=dict[int, tuple[Attribute, int, int]])
    """Bytes and rank of the types seen so far, by identity: a step has few, and many values of each."""

    def __post_init__(self) -> None:
        for argument in self.order.block.args:
            self._from_outside(argument)
        made = {id(result) for op in self.order.operations for result in op.results}
        for read in self.order.reads:
            for value in read:
                if id(value) not in made:
                    self._from_outside(value)

    def _from_outside(self, value: SSAValue) -> int:
        """What a captured reshape is the memory of comes from outside too."""
        if value in self.number:
            return self.number[value]
        source = _reshaped(value)
        root = None if source is None else self.root[self._from_outside(source)]
        self.number[value] = self._new_value(OUTSIDE, *self._measures(value, True), root)
        if _is_broadcast(value):
            self.broadcasts.add(self.number[value])
        return self.number[value]

    def _new_value(self, maker: int, size: int, rank: int, root: int | None = None) -> int:
        number = len(self.maker)
        self.maker.append(maker)
        self.sizes.append(size)
        self.ranks.append(rank)
        self.root.append(number if root is None else root)
        return number

    def add(self, op: Operation) -> None:
        number = len(self.names)
        if all(result in self.constant for result in op.results):
            self.from_constants.add(op)
        operands = [self.number[operand] for operand in selecting(op)]
        captured = [self.number[value] for value in self._read_by(op)] if op.regions else []
        source = (_reshaped(op.results[0]) or self.from_constants.left_alone(op)) if op.results else None
        if source is not None:
            self.reshapes.add(number)
        for result in op.results:
            free = result in self.constant or source is not None
            root = None if source is None else self.root[self.number[source]]
            made = self._new_value(number, *self._measures(result, free), root)
            self.number[result] = made
            alike = self.from_constants.alike(result) if result in self.constant else None
            if alike is not None and source is None:
                self.splats[made] = self.splat_ids.setdefault(alike, len(self.splat_ids))
                if self.from_constants.is_one_number(result):
                    operands = []
                    self.broadcasts.add(made)
            elif result in self.constant:
                self.constants.add(made)
            if _is_broadcast(result):
                self.broadcasts.add(made)
        self.names.append(name_of(op))
        self.operands.append(tuple(operands))
        self.reads.append(tuple(dict.fromkeys([*operands, *captured])))
        self.makes.append(tuple([self.number[result] for result in op.results]))

    def _measures(self, value: SSAValue, free: bool) -> tuple[int, int]:
        """Bytes and rank of a value. What has no memory of its own may be of unknown size."""
        type_ = value.type
        if (known := self.measured.get(id(type_))) is not None:
            return known[1:]
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

    def program(self) -> Program:
        operations, known = self.order.operations, dict[Key, tuple[Program, ...]]()
        bodies = {
            number: self._bodies_of(op, known)
            for number, op in enumerate(operations)
            if self.names[number] in LOOPS_AND_BRANCHES
        }
        loops = [one for one in bodies if self.names[one] == "stablehlo.while"]
        return Program(
            arguments=len(self.order.block.args),
            names=tuple(self.names),
            operands=tuple(self.operands),
            reads=tuple(self.reads),
            makes=tuple(self.makes),
            maker=tuple(self.maker),
            sizes=tuple(self.sizes),
            ranks=tuple(self.ranks),
            root=tuple(self.root),
            reshapes=frozenset(self.reshapes),
            constants=frozenset(self.constants),
            broadcasts=frozenset(self.broadcasts),
            bodies=bodies,
            iteration_bytes={one: _changed_bytes(operations[one]) for one in loops},
            kernels={number: _kernel(op) for number, op in enumerate(operations) if self.names[number] in WANTED},
            traits=tuple([self._traits(number) for number in range(len(operations))]),
            splats=self.splats,
            pools={number: _pool(op) for number, op in enumerate(operations) if self.names[number] == POOL},
        )

    def _traits(self, number: int) -> Trait:
        op = self.order.operations[number]
        if op.results and self.from_constants.is_one_number(op.results[0]):
            return Trait.FUSIBLE | Trait.LIBRARY
        return traits_of(op, self.constant)

    def _bodies_of(self, op: Operation, known: dict[Key, tuple[Program, ...]]) -> tuple[Program, ...]:
        """Of operations that are alike the same, so that whoever counts needs to look at one."""
        captured = captured_values(op)
        if any(_reshaped(value) is not None for value in captured):
            # What it is a reshape of counts too.
            return _programs(op)
        key = region_key(op, set(filter(_is_broadcast, captured)), frozenset())
        if key not in known:
            known[key] = _programs(op)
        return known[key]


def _programs(op: Operation) -> tuple[Program, ...]:
    return tuple([program_of(block) for region in op.regions for block in region.blocks])


def _reshaped(value: SSAValue) -> SSAValue | None:
    """What the value is a reshape of."""
    op = value.owner
    if not isinstance(op, Operation):
        return None
    return op.operands[0] if does_nothing(op) else viewed_operand(op) if name_of(op) in DENSE_VIEWS else None


def _is_broadcast(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and name_of(value.owner) == "stablehlo.broadcast_in_dim"


def _kernel(op: Operation) -> Kernel:
    (result,) = op.results
    return Kernel(
        transposed=tuple([list(wanted) != sorted(wanted) for wanted in WANTED[name_of(op)](op)]),
        wide=tuple([_bytes_in_f32(operand) if _is_bf16(operand) else 0 for operand in op.operands]),
        wide_result=_bytes_in_f32(result) if _is_bf16(result) else 0,
    )


def _pool(op: Operation) -> Pool:
    (operand, source, _), index = op.operands, element_bytes(i32)
    assert index is not None, "an integer has bytes"
    assert is_tensor(operand.type)
    element = element_bytes(operand.type.element_type)
    assert element is not None, "numbers have bytes"
    return Pool(rank_of(operand), value_bytes(operand) // element * index, value_bytes(source) // element * index)


def _is_bf16(value: SSAValue) -> bool:
    return is_tensor(value.type) and value.type.element_type == bf16


def _bytes_in_f32(value: SSAValue) -> int:
    wide, narrow = element_bytes(f32), element_bytes(bf16)
    assert wide is not None and narrow is not None, "both are numbers"
    return value_bytes(value) // narrow * wide


def _changed_bytes(loop: Operation) -> int:
    """A loop copies each carried value that an iteration changes."""
    body = loop.regions[1].blocks[0]
    assert body.last_op is not None, "a loop's body has a terminator"
    pairs = zip(body.args, body.last_op.operands, strict=True)
    return sum(value_bytes(argument) for argument, value in pairs if _updated(value) is not argument)


def _updated(value: SSAValue) -> SSAValue:
    """What is left when updates of a part, which are done in place, are looked through."""
    while isinstance(value.owner, Operation) and name_of(value.owner) == "stablehlo.dynamic_update_slice":
        value = value.owner.operands[0]
    return value
