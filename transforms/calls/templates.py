"""Templates: the functions before inlining, against which inlined operations are matched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.names import Names
from ...support.operations import name_of


@dataclass(frozen=True)
class CallTemplate:
    """A function before inlining, and a clone without recompute attributes (`bare`) for comparisons."""

    function: FuncOp

    @cached_property
    def bare(self) -> FuncOp:
        bare = self.function.clone()
        for op in bare.walk():
            strip(op)
        return bare

    @cached_property
    def is_marked(self) -> bool:
        """Whether operations of the function carry recompute attributes."""
        return any(name.startswith(Names.PREFIX) for op in self.function.walk() for name in op.attributes)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in `walk` order: the index of an origin is an index into them."""
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
        """Number of operations in the block."""
        return len(self.block.ops)

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        end = self.block.last_op
        assert isinstance(end, ReturnOp), "an inlined function ends with a return"
        return tuple(end.operands)


@dataclass(frozen=True)
class CallPart:
    """A part of the function `whole`: the indices of its arguments and results there, None for new results."""

    whole: str
    arguments: tuple[int, ...]
    returned: tuple[int | None, ...]


Parts = dict[str, CallPart]
"""Parts by their function names."""


class Templates:
    """The templates of a module, which must not change."""

    def __init__(self, module: ModuleOp):
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._templates = dict[str, CallTemplate]()
        self.parts = Parts()

    def of(self, name: str) -> CallTemplate:
        if name not in self._templates:
            self._templates[name] = CallTemplate(self._functions[name])
        return self._templates[name]


def strip(op: Operation) -> None:
    """Remove the recompute attributes of an operation."""
    for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
        del op.attributes[name]


def bare_attributes(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.attributes.items() if not name.startswith(Names.PREFIX)}


def part_called(op: Operation, was: Operation, parts: Parts) -> CallPart | None:
    """Return the part that `op` calls where `was` calls the whole function, or None."""
    if not parts or not isinstance(op, CallOp) or not isinstance(was, CallOp):
        return None
    part = parts.get(op.callee.string_value())
    return part if part is not None and part.whole == was.callee.string_value() else None


def same_kind(op: Operation, was: Operation, parts: Parts) -> bool:
    """Return whether `op` computes the same as the bare operation `was`, or a part of it, from its operands."""
    if name_of(op) != name_of(was) or bare_attributes(op) != was.attributes:
        return False
    return part_called(op, was, parts) is not None or (
        op.properties == was.properties
        and tuple(op.result_types) == tuple(was.result_types)
        and len(op.operands) == len(was.operands)
        and len(op.regions) == len(was.regions)
    )


def operand_pairs(op: Operation, was: Operation, parts: Parts) -> list[tuple[int, SSAValue]]:
    """Return the index of each operand, and the operand of the template there."""
    part = part_called(op, was, parts)
    return list(enumerate(was.operands if part is None else (was.operands[index] for index in part.arguments)))


def result_pairs(op: Operation, was: Operation, parts: Parts) -> list[tuple[SSAValue, SSAValue]]:
    """Return each result with that of the template; results that the template lacks are left out."""
    part = part_called(op, was, parts)
    if part is None:
        return list(zip(op.results, was.results, strict=True))
    pairs = zip(op.results, part.returned, strict=True)
    return [(result, was.results[index]) for result, index in pairs if index is not None]


def same_body(block: Block, other: Block) -> bool:
    """Return whether two bodies are equal up to names and locations; xDSL's comparison ignores result types."""
    return block.is_structurally_equivalent(other) and all(
        tuple(op.result_types) == tuple(other_op.result_types)
        for op, other_op in zip(block.walk(), other.walk(), strict=True)
    )
