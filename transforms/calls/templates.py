"""How the functions read before they were inlined: for each operation, what its operands were there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.recompute import Names
from ...rules.names import name_of


@dataclass(frozen=True)
class Template:
    """A function as it came, and the same without what we write on operations (`bare`), to be compared with."""

    function: FuncOp

    @cached_property
    def bare(self) -> FuncOp:
        bare = self.function.clone()
        for op in bare.walk():
            strip(op)
        return bare

    @cached_property
    def is_marked(self) -> bool:
        """Whether somebody wrote on the operations of the function what is to happen to them."""
        return any(name.startswith(Names.PREFIX) for op in self.function.walk() for name in op.attributes)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """In the order of `walk`, so that the index of an origin finds its operation."""
        return tuple(self.bare.walk())

    @cached_property
    def index(self) -> dict[Operation, int]:
        return {op: index for index, op in enumerate(self.operations)}

    @cached_property
    def locations(self) -> tuple[Operation, ...]:
        return tuple(self.function.walk())

    @property
    def block(self) -> Block:
        return self.bare.body.block

    @cached_property
    def length(self) -> int:
        """How many operations stand in the block."""
        return len(self.block.ops)

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        end = self.block.last_op
        assert isinstance(end, ReturnOp), "what was inlined ends with a return"
        return tuple(end.operands)


@dataclass(frozen=True)
class Part:
    """A function of which a part is left: which arguments it has, and which results; None is not one of the whole."""

    whole: str
    arguments: tuple[int, ...]
    returned: tuple[int | None, ...]


Parts = dict[str, Part]
"""By the name of the part."""


class Templates:
    """Those of a module that is not changed meanwhile."""

    def __init__(self, module: ModuleOp):
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._made = dict[str, Template]()
        self.parts = Parts()

    def of(self, name: str) -> Template:
        if name not in self._made:
            self._made[name] = Template(self._functions[name])
        return self._made[name]


def strip(op: Operation) -> None:
    """Take off what we write on operations."""
    for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
        del op.attributes[name]


def bare_attributes(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.attributes.items() if not name.startswith(Names.PREFIX)}


def part_called(op: Operation, was: Operation, parts: Parts) -> Part | None:
    """The part of a function that is called where all of it was called."""
    if not parts or not isinstance(op, CallOp) or not isinstance(was, CallOp):
        return None
    part = parts.get(op.callee.string_value())
    return part if part is not None and part.whole == was.callee.string_value() else None


def same_kind(one: Operation, was: Operation, parts: Parts) -> bool:
    """Whether both compute the same from their operands, as far as the first one computes it. `was` is bare."""
    if name_of(one) != name_of(was) or bare_attributes(one) != was.attributes:
        return False
    return part_called(one, was, parts) is not None or (
        one.properties == was.properties
        and tuple(one.result_types) == tuple(was.result_types)
        and len(one.operands) == len(was.operands)
        and len(one.regions) == len(was.regions)
    )


def operand_pairs(op: Operation, was: Operation, parts: Parts) -> list[tuple[int, SSAValue]]:
    """The places of the operands, and what was read there."""
    part = part_called(op, was, parts)
    return list(enumerate(was.operands if part is None else (was.operands[index] for index in part.arguments)))


def result_pairs(op: Operation, was: Operation, parts: Parts) -> list[tuple[SSAValue, SSAValue]]:
    """Each result, and what it was; those that were no results are left out."""
    part = part_called(op, was, parts)
    if part is None:
        return list(zip(op.results, was.results, strict=True))
    pairs = zip(op.results, part.returned, strict=True)
    return [(result, was.results[index]) for result, index in pairs if index is not None]


def same_body(one: Block, other: Block) -> bool:
    """Whether two bodies are the same, names and locations aside; xDSL's comparison leaves out the types of results."""
    return one.is_structurally_equivalent(other) and all(
        tuple(mine.result_types) == tuple(theirs.result_types)
        for mine, theirs in zip(one.walk(), other.walk(), strict=True)
    )
