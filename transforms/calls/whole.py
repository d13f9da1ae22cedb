"""Keep calls whose inlining would lose foreign attributes of the call or the callee.

    %1 = call @f(%0) {mhlo.frontend_attributes = {_xla_compute_type = "host"}}

`recompute` inlines such calls to decide, and then outlines them again with their attributes. Where this fails, the step
is rewritten again while the functions are marked `recompute.whole`, which the inliner skips.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp

from ...dialects.recompute import Names
from ...support.walk import every_operation
from .call_attributes import foreign_attributes


def is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def attributed(module: ModuleOp) -> dict[FuncOp, str]:
    """The private functions with foreign attributes, on them or on a call, and the names of the attributes."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and is_private(op)}
    attribute_names = dict[FuncOp, str]()
    for call in every_operation(module):
        callee = functions.get(call.callee.string_value()) if isinstance(call, CallOp) else None
        if callee is not None and (others := foreign_attributes(call.attributes, callee)):
            attribute_names.setdefault(callee, ", ".join(others))
    return attribute_names


@contextmanager
def kept_whole(module: ModuleOp) -> Generator[set[str]]:
    """Mark the unmarked ones of these functions within the context, and yield their names."""
    marked = {op.sym_name.data for op in attributed(module) if Names.WHOLE not in op.attributes}
    for function in _named(module, marked):
        function.attributes[Names.WHOLE] = UnitAttr()
    try:
        yield marked
    finally:
        remove_whole_marks(module, marked)


def remove_whole_marks(module: ModuleOp | None, names: set[str]) -> None:
    """Remove the marks from the functions of these names."""
    for function in _named(module, names) if module is not None else ():
        function.attributes.pop(Names.WHOLE, None)


def _named(module: ModuleOp, names: set[str]) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data in names]
