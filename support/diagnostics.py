"""Errors with a source position: `file:line:col: error: cause and remedy`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from .locations import position_of_operation
from .operations import name_of

UNKNOWN = "<unknown>"


def position_of(op: Operation) -> str:
    """Return `file:line:col` of the operation, or of the nearest operation with a position.

    Enclosing operations are tried first, then the operations that follow in the same block, then nested operations.
    Returns `<unknown>` if none of these operations has a position.
    """
    for candidate in _by_distance(op):
        if (position := position_of_operation(candidate)) is not None:
            return ":".join(str(part) for part in position)
    return UNKNOWN


def place_of(op: Operation) -> str:
    """Return the place of the operation for a message.

    The place is `file:line:col` if `position_of` returns a position. Otherwise it is the function and the operation:
    `@step (stablehlo.tanh %y)`. The second form occurs in stock `xdsl-opt`, which parses text without positions.

    Modules and functions have no position in JAX's output. The place of a module or function is its symbol, because the
    position of an operation inside it would point to an unrelated line.
    """
    if isinstance(op, ModuleOp | FuncOp) and position_of_operation(op) is None and (symbol := _symbol_of_whole(op)):
        return symbol
    position = position_of(op)
    function = op
    while not isinstance(function, FuncOp):
        parent = function.parent_op()
        if parent is None:
            return position
        function = parent
    if position != UNKNOWN:
        return position
    names = " ".join(f"%{result.name_hint}" for result in op.results if result.name_hint)
    inside = "" if op is function else f" ({f'{name_of(op)} {names}'.rstrip()})"
    name = function.properties.get("sym_name")
    return f"@{name.data}{inside}" if isinstance(name, StringAttr) else position


def _symbol_of_whole(op: ModuleOp | FuncOp) -> str:
    """Return the symbol of a module, given the module or its function `main`. Return "" for any other function, and for
    a module without a symbol."""
    is_main = op.properties.get("sym_name") == StringAttr("main")
    module = op.parent_op() if isinstance(op, FuncOp) and is_main else op
    return module.sym_name.data if isinstance(module, ModuleOp) and module.sym_name is not None else ""


def _by_distance(op: Operation) -> Iterator[Operation]:
    """Yield the operation and its ancestors, then the operations that follow each of these, then the nested
    operations."""
    ancestors = [op]
    while (parent := ancestors[-1].parent_op()) is not None:
        ancestors.append(parent)
    yield from ancestors
    for ancestor in ancestors:
        # The position of the next function would be misleading, so stop at operations with regions.
        following = ancestor.next_op if ancestor.parent_op() is not None else None
        while following is not None and not following.regions:
            yield following
            following = following.next_op
    yield from (inner for inner in op.walk() if inner is not op)


class Refusal(PassFailedException):
    """An error that stops a pass because the request cannot be satisfied.

    `str()` gives one line with the position, the reason and the remedy.
    """

    def __init__(self, op: Operation, reason: str):
        self.operation = op
        self.reason = reason
        super().__init__(f"{place_of(op)}: error: {reason}")


class BadRequest(Refusal):
    """A refusal caused by the request rather than by the program, such as an invalid option or an unknown name.

    Tools report it at the input file, not at a line of the model.
    """


class InvalidOperation(Refusal):
    """A refusal because the verifier rejects an operation.

    Tools report it at the line of the input that contains the operation, and add the source position in the model.
    """


class DynamicShape(Refusal):
    """A refusal because the size of a dimension is not known at compile time."""


def strict_refusal(op: Operation, reason: str) -> Refusal:
    """Return the error that the option `strict` demands for an operation on which an option has no effect."""
    return Refusal(op, f"{reason} (strict)")
