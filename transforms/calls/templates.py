"""Define templates, and compare inlined operations with them. A template is a function before inlining."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.cloning import clone_of
from ...dialects.names import Names
from ...support.operations import name_of


@dataclass(frozen=True)
class CallTemplate:
    """A function before inlining.

    All properties except `locations` refer to `bare`, a clone without the attributes of this dialect.
    """

    function: FuncOp

    @cached_property
    def bare(self) -> FuncOp:
        bare = clone_of(self.function)
        for op in bare.walk():
            strip_operation(op)
        return bare

    @cached_property
    def is_marked(self) -> bool:
        """Whether any operation of the function has attributes of this dialect."""
        return any(name.startswith(Names.PREFIX) for op in self.function.walk() for name in op.attributes)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations in pre-order, to which the index of an `Origin` refers."""
        return tuple(self.bare.walk())

    @cached_property
    def index(self) -> dict[Operation, int]:
        return {op: index for index, op in enumerate(self.operations)}

    @cached_property
    def locations(self) -> tuple[Operation, ...]:
        """The operations of the original function in pre-order. They have the locations that `bare` lacks."""
        return tuple(self.function.walk())

    @property
    def block(self) -> Block:
        return self.bare.body.block

    @cached_property
    def length(self) -> int:
        """The number of operations in the block."""
        return len(self.block.ops)

    @property
    def returned(self) -> tuple[SSAValue, ...]:
        end = self.block.last_op
        assert isinstance(end, ReturnOp), "an inlined function ends with a return"
        return tuple(end.operands)


@dataclass(frozen=True)
class CallPart:
    """A part of a function.

    Attributes:
        whole: The name of the function.
        arguments: The index, in the function, of each argument of the part.
        returned: The index, in the function, of each result of the part; None for a value that the function does not
            return.
    """

    whole: str
    arguments: tuple[int, ...]
    returned: tuple[int | None, ...]


Parts = dict[str, CallPart]
"""The parts of functions, by the name of the function that represents each part."""


class Templates:
    """The templates of a module. The module must not change."""

    def __init__(self, module: ModuleOp):
        self._functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self._templates = dict[str, CallTemplate]()
        self.parts = Parts()

    def of(self, name: str) -> CallTemplate:
        """Return the template of the function with this name."""
        if name not in self._templates:
            self._templates[name] = CallTemplate(self._functions[name])
        return self._templates[name]


def strip_operation(op: Operation) -> None:
    """Remove the attributes of this dialect from an operation."""
    for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
        del op.attributes[name]


def bare_attributes(op: Operation) -> dict[str, Attribute]:
    return {name: value for name, value in op.attributes.items() if not name.startswith(Names.PREFIX)}


def part_called(op: Operation, template_op: Operation, parts: Parts) -> CallPart | None:
    """Return the part of a function that `op` calls if `template_op` calls the whole function; otherwise None."""
    if not parts or type(op) is not CallOp or type(template_op) is not CallOp:
        return None
    part = parts.get(op.callee.string_value())
    return part if part is not None and part.whole == template_op.callee.string_value() else None


def same_kind(op: Operation, template_op: Operation, parts: Parts) -> bool:
    """Return whether `op` is the same operation as `template_op`, up to its operands, or a call of a part of the
    function that `template_op` calls."""
    if name_of(op) != name_of(template_op) or bare_attributes(op) != template_op.attributes:
        return False
    return part_called(op, template_op, parts) is not None or (
        op.properties == template_op.properties
        and [result.type for result in op.results] == [result.type for result in template_op.results]
        and len(op.operands) == len(template_op.operands)
        and len(op.regions) == len(template_op.regions)
    )


def operand_pairs(op: Operation, template_op: Operation, parts: Parts) -> list[tuple[int, SSAValue]]:
    """Return, for each operand of `op`, its index and the corresponding operand of `template_op`."""
    part = part_called(op, template_op, parts)
    return list(
        enumerate(template_op.operands if part is None else (template_op.operands[index] for index in part.arguments))
    )


def result_pairs(op: Operation, template_op: Operation, parts: Parts) -> list[tuple[SSAValue, SSAValue]]:
    """Return pairs of a result of `op` and the corresponding result of `template_op`. Results without a counterpart are
    left out."""
    part = part_called(op, template_op, parts)
    if part is None:
        return list(zip(op.results, template_op.results, strict=True))
    pairs = zip(op.results, part.returned, strict=True)
    return [(result, template_op.results[index]) for result, index in pairs if index is not None]


def same_body(block: Block, other: Block) -> bool:
    """Return whether two bodies are equal up to names and locations.

    xDSL's comparison ignores result types, so they are compared here.
    """
    return block.is_structurally_equivalent(other) and all(
        tuple(op.result_types) == tuple(other_op.result_types)
        for op, other_op in zip(block.walk(), other.walk(), strict=True)
    )
