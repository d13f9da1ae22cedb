"""How the functions read before they were inlined: for each operation, what its operands were there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

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

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        end = self.block.last_op
        assert isinstance(end, ReturnOp), "what was inlined ends with a return"
        return tuple(end.operands)


class Templates:
    """Those of a module that is not changed meanwhile."""

    def __init__(self, module: ModuleOp):
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._made = dict[str, Template]()

    def of(self, name: str) -> Template:
        if name not in self._made:
            self._made[name] = Template(self._functions[name])
        return self._made[name]


def strip(op: Operation) -> None:
    """Take off what we write on operations."""
    for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
        del op.attributes[name]


def bare_attributes(op: Operation) -> dict[str, object]:
    return {name: value for name, value in op.attributes.items() if not name.startswith(Names.PREFIX)}


def same_kind(one: Operation, other: Operation) -> bool:
    """Whether both compute the same from their operands."""
    return (
        name_of(one) == name_of(other)
        and one.properties == other.properties
        and bare_attributes(one) == bare_attributes(other)
        and tuple(one.result_types) == tuple(other.result_types)
        and len(one.operands) == len(other.operands)
        and len(one.regions) == len(other.regions)
    )


def same_body(one: Block, other: Block) -> bool:
    """Whether two bodies are the same, names and locations aside; xDSL's comparison leaves out the types of results."""
    return one.is_structurally_equivalent(other) and all(
        tuple(mine.result_types) == tuple(theirs.result_types)
        for mine, theirs in zip(one.walk(), other.walk(), strict=True)
    )
