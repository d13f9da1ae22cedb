"""PyTorch's joint graphs: one operation for each node of an FX graph, named after the node's target.

    %2 = "torch.aten.addmm.default"(%b, %x, %w) {torch.args = "%0, %1, %2", torch.node = "addmm"} : (…) -> tensor<…>

`torch.args` is the argument list of the call in Python's syntax, where `%i` is operand i. The list is compared as text,
so nothing here depends on schemas. `torch.node` is the name of the node. Copies inherit it. `torch.flops` is PyTorch's
FLOP count, which only products have. `torch.stored` is the size of the storage that the operation allocates, if it is
larger than the elements of the result.

A random operation is represented by two operations. `torch.draw` returns the state of the generator. The second one,
for example `torch.seeded.aten.native_dropout.default`, is a function of this state (operand 0) and of the operands in
its argument list.

An operation whose effects PyTorch orders by tokens is named like `torch.effect.lib.log.default`: operand 0 is the token
of the preceding effect, and result 0 is the token of its own effect.

Operations without a corresponding call:

    torch.read      the value of an argument before the step writes to it, in storage of its own
    torch.draw      the random state that the next operation draws from; the generator advances after it
    torch.get_attr  an attribute of the graph module, such as a lifted constant
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from . import aten

PREFIX = "torch."
ARGS, NODE, FLOPS, OF, STORED = "torch.args", "torch.node", "torch.flops", "torch.of", "torch.stored"
READ, DRAW, GET_ATTR = "torch.read", "torch.draw", "torch.get_attr"
SEEDED, EFFECT = "torch.seeded.", "torch.effect."
_FUNCTIONAL = frozenset(
    [f"{PREFIX}{name}" for name in f"{aten.PURE} {aten.VIEWS}".split()]
    + [f"{PREFIX}python.{name}.default" for name in aten.ON_SIZES.split()]
    + [GET_ATTR]
)
"""Operations that may be removed if their results are not read. Random operations are not among them, because they
advance the generator."""
_OPERAND = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|%(\d+)""")


@irdl_attr_definition
class NoneType(ParametrizedAttribute, TypeAttribute):
    """The type `!torch.none` of a result that an operation does not compute, such as the gradient of a frozen
    parameter."""

    name = "torch.none"


@dataclass(frozen=True)
class Operand:
    """The operand `%i` in an argument list."""

    index: int


@dataclass(frozen=True)
class TorchObject:
    """A named object of PyTorch: `torch.float32`, `torch.strided`, or `device('cpu')`, whose `kind` is `device`."""

    kind: str
    name: str


Argument: TypeAlias = (
    "bool | int | float | complex | str | Operand | TorchObject | list[Argument] | tuple[Argument, ...] | None"
)


@dataclass(frozen=True)
class Arguments:
    """A parsed argument list: positional arguments, and keyword arguments by name."""

    positional: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...]

    def operands(self) -> Iterator[int]:
        """Yield the indices of the operands in their order in the list, with repetitions."""
        for argument in (*self.positional, *(value for _, value in self.keywords)):
            yield from _operands(argument)


def _operands(argument: Argument) -> Iterator[int]:
    if isinstance(argument, Operand):
        yield argument.index
    elif isinstance(argument, list | tuple):
        for part in argument:
            yield from _operands(part)


_EXPECTED = "expected the arguments of one call, such as '%0, [1], keepdim=True'"


@lru_cache(maxsize=10_000)
def parse_arguments(text: str) -> Arguments:
    """Parse an argument list. Raises `ValueError` if the text is not a valid argument list."""
    call = _OPERAND.sub(lambda match: match[1] or f"_{match[2]}", text)
    try:
        tree = ast.parse(f"f({call})", mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"'{text}' is not a valid argument list: {error.msg}; {_EXPECTED}") from error
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.func.id != "f":
        raise ValueError(f"'{text}' is not a valid argument list; {_EXPECTED}")
    keywords = tuple((keyword.arg or "**", _argument(keyword.value)) for keyword in tree.keywords)
    return Arguments(tuple(map(_argument, tree.args)), keywords)


def _argument(tree: ast.expr) -> Argument:
    match tree:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand) if type(value := _argument(operand)) in (int, float):
            return -cast(float, value)
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.Name(id=name) if name[:1] == "_" and name[1:].isdecimal():
            return Operand(int(name[1:]))
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return TorchObject("torch", name)
        case ast.Call(func=ast.Name(id="device"), args=[ast.Constant(value=str() as name)], keywords=[]):
            return TorchObject("device", name)
        case ast.Call(func=ast.Name(id="complex"), args=[real, imaginary], keywords=[]):
            parts = _argument(real), _argument(imaginary)
            if not all(isinstance(part, float) for part in parts):
                text = ast.unparse(tree)
                raise ValueError(f"'{text}' is not a valid argument: both parts must be numbers with a decimal point")
            return complex(*cast(tuple[float, float], parts))
        case ast.List(elts=parts):
            return list(map(_argument, parts))
        case ast.Tuple(elts=parts):
            return tuple(map(_argument, parts))
        case _:
            raise ValueError(
                f"'{ast.unparse(tree)}' is not a valid argument: expected a literal, an operand such as %0, a list, "
                "or an object such as torch.float32"
            )


class TorchOp(Operation):
    """An operation of a joint graph. Each operation name has its own class; see `operation_class`."""

    traits = traits_def()

    def verify_(self) -> None:
        if self.regions or self.successors:
            raise VerifyException("an operation of a joint graph must not have regions or successors")
        if not isinstance(self.attributes.get(NODE), StringAttr):
            raise VerifyException(f"'{NODE}' must be a string, the name of an FX node")
        for number in (FLOPS, STORED):
            if not isinstance(self.attributes.get(number, IntegerAttr(0, 64)), IntegerAttr):
                raise VerifyException(f"'{number}' must be an integer")
        _VERIFIERS.get(self.name, _verify_call)(self)


def _verify_call(op: Operation) -> None:
    is_prefixed = op.name.startswith((SEEDED, EFFECT))
    if len(op.name.split(".")) != 4 + is_prefixed:
        raise VerifyException(
            f"invalid operation name '{op.name}': expected the form torch.<namespace>.<operation>.<overload>"
        )
    text = op.attributes.get(ARGS)
    if not isinstance(text, StringAttr):
        raise VerifyException(f"'{ARGS}' must be a string that contains the argument list of the call")
    try:
        named = sorted(set(parse_arguments(text.data).operands()))
    except ValueError as error:
        raise VerifyException(f"'{ARGS}': {error}") from error
    if is_prefixed and not op.operands:
        raise VerifyException(
            f"{op.name} must have at least one operand: operand 0 is the state or the token that it reads"
        )
    expected = list(range(is_prefixed, len(op.operands)))
    if named != expected:
        raise VerifyException(
            f"'{ARGS}' refers to {_operands_text(named)}, but the call has {_operands_text(expected)}"
        )


def _operands_text(indices: list[int]) -> str:
    if not indices:
        return "no operands"
    return f"operand{'s' * (len(indices) > 1)} {', '.join(f'%{index}' for index in indices)}"


def _verify_read(op: Operation) -> None:
    if len(op.operands) != 1 or [result.type for result in op.results] != [op.operands[0].type]:
        raise VerifyException(f"{op.name} must have one operand, and one result of the same type")


def _verify_draw(op: Operation) -> None:
    if not _is_source_with_name(op):
        raise VerifyException(
            f"{op.name} must have no operands and one result, the state of the generator; '{OF}' must name the "
            "operation that draws from this state"
        )


def _verify_get_attr(op: Operation) -> None:
    if not _is_source_with_name(op):
        raise VerifyException(
            f"{op.name} must have no operands and one result; '{OF}' must contain the path of the attribute"
        )


def _is_source_with_name(op: Operation) -> bool:
    return not op.operands and len(op.results) == 1 and isinstance(op.attributes.get(OF), StringAttr)


_VERIFIERS = {READ: _verify_read, DRAW: _verify_draw, GET_ATTR: _verify_get_attr}
"""The verifiers of the operations without a corresponding call. All other operations are calls."""


@cache
def operation_class(name: str) -> type[TorchOp]:
    """Return the class of the operations called `name`, which must start with `torch.`."""
    assert name.startswith(PREFIX), f"the name {name} must start with {PREFIX}"
    traits = traits_def(Pure()) if name in _FUNCTIONAL else traits_def()
    return type("TorchOp", (TorchOp,), {"name": name, "traits": traits, "__module__": __name__})


def called_name(op: Operation) -> str:
    """Return the name of the called operation, such as `aten.mm.default`."""
    prefix = next((prefix for prefix in (SEEDED, EFFECT) if op.name.startswith(prefix)), PREFIX)
    return op.name.removeprefix(prefix)


def node_of(op: Operation) -> str:
    """Return the name of the node that an operation was imported from."""
    name = op.attributes[NODE]
    assert isinstance(name, StringAttr), "verified: an operation of PyTorch has the name of its node"
    return name.data


def arguments_of(op: Operation) -> Arguments:
    """Return the argument list of a call."""
    text = op.attributes[ARGS]
    assert isinstance(text, StringAttr), "verified: a call has an argument list"
    return parse_arguments(text.data)


TORCH = Dialect("torch", [], [NoneType])
