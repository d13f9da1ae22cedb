"""What a `func.func` must have before anybody asks it for its type: xDSL takes it for granted."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.traits import IsTerminator
from xdsl.utils.hints import isa

from .diagnostics import Refusal


def verify_functions(module: ModuleOp) -> None:
    """Raise a `Refusal` at the first function without a type, or with other attributes or blocks than it says."""
    for op in module.walk():
        if isinstance(op, FuncOp) and (wrong := next(_mistakes(op), None)) is not None:
            raise Refusal(op, f"func.func: {wrong}")


def _mistakes(function: FuncOp) -> Iterator[str]:
    type_ = function.properties.get("function_type")
    if not isinstance(type_, FunctionType):
        yield "it needs 'function_type', a function type"
        return
    for name, what, types in (("arg_attrs", "argument", type_.inputs), ("res_attrs", "result", type_.outputs)):
        value = function.properties.get(name)
        if value is None:
            continue
        if not isa(value, ArrayAttr[DictionaryAttr]):
            yield f"'{name}' is a list of dictionaries"
        elif len(value.data) != len(types):
            yield f"'{name}' has {len(value.data)} dictionaries, one for each {what} would be {len(types)}"
    for block in function.body.blocks:
        last = block.last_op
        if last is None or not last.has_trait(IsTerminator, value_if_unregistered=True):
            yield "a block of it does not end with a terminator"
