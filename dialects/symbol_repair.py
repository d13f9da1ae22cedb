"""Repairs how xDSL finds the function that is called from within an operation that it does not know.

xDSL takes every unknown operation for a symbol table and looks no further: `func.call @f` in the region of a
`"sdy.manual_computation"`, where JAX's `shard_map` puts nested functions, calls nothing. An unknown operation may be
a symbol table: what it does not define is looked up around it. Made only where a test of it fails.

xDSL goes through the whole table for each symbol: `symbols_remembered` keeps the names while a module is verified.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import SymbolOpInterface, SymbolTable

_xdsl_looks_up = SymbolTable.lookup_symbol

Symbols = dict[str, Operation]
_REMEMBERED: ContextVar[dict[Operation, Symbols] | None] = ContextVar("remembered symbols", default=None)


@contextmanager
def symbols_remembered() -> Generator[None, None, None]:
    """Inside, no operation with a symbol is added, removed or renamed: each table is gone through once."""
    token = _REMEMBERED.set({})
    try:
        yield
    finally:
        _REMEMBERED.reset(token)


def repair_symbols() -> None:
    """Repair what is broken, once. Never raises: where xDSL differs from what we know, it is left alone and said."""
    try:
        if not looks_around_unknown_operations():
            SymbolTable.lookup_symbol = staticmethod(_lookup)
    except Exception as error:
        print(f"recompute: xDSL's symbol tables are not repaired: {error}", file=sys.stderr)


def looks_around_unknown_operations() -> bool:
    function = FuncOp("f", ((), ()))
    inside = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block())])
    outer = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block([inside]))])
    ModuleOp([function, outer])
    return SymbolTable.lookup_symbol(inside, "f") is function


def _lookup(op: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Replaces the method of the same name: in the nearest table that has the symbol, up to the nearest known one."""
    table = _nearest_table(op)
    while isinstance(table, UnregisteredOp) and (around := table.parent_op()) is not None:
        if _is_like_a_table(table) and (found := _look_up_in(table, name)) is not None:
            return found
        table = _nearest_table(around)
    return _look_up_in(op if table is None else table, name)


def _look_up_in(table: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """As xDSL does; by the names that are remembered where there are any."""
    tables = _REMEMBERED.get()
    if tables is None or not _is_like_a_table(table) or (isinstance(name, SymbolRefAttr) and name.nested_references):
        return _xdsl_looks_up(table, name)
    if (symbols := tables.get(table)) is None:
        symbols = tables[table] = _symbols_of(table)
    return symbols.get(_text_of(name))


def _symbols_of(table: Operation) -> Symbols:
    """The operations of the table by their symbols; the first one where two have the same."""
    found: Symbols = {}
    for op in table.regions[0].block.ops:
        if (trait := op.get_trait(SymbolOpInterface)) is not None and (name := trait.get_sym_attr_name(op)) is not None:
            found.setdefault(name.data, op)
    return found


def _text_of(name: str | StringAttr | SymbolRefAttr) -> str:
    if isinstance(name, SymbolRefAttr):
        return name.root_reference.data
    return name.data if isinstance(name, StringAttr) else name


def _nearest_table(op: Operation | None) -> Operation | None:
    while op is not None and not op.has_trait(SymbolTable):
        op = op.parent_op()
    return op


def _is_like_a_table(op: Operation) -> bool:
    return len(op.regions) == 1 and len(op.regions[0].blocks) == 1
