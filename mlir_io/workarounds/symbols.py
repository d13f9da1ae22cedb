"""A workaround for symbols: the lookup continues outside unregistered operations, and symbol tables can be cached.

xDSL treats every unregistered operation as a symbol table, and stops the lookup there. Therefore, xDSL does not find
the function of a `func.call @f` in the region of an unregistered operation. The workaround continues the lookup outside
the operation. xDSL also walks the whole table for each symbol; `cached_symbols` caches the tables while a module is
verified.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnregisteredOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import SymbolOpInterface, SymbolTable

_xdsl_look_up_symbol = SymbolTable.lookup_symbol

Symbols = dict[str, Operation]
_CACHED_TABLES: ContextVar[dict[Operation, Symbols] | None] = ContextVar("cached symbol tables", default=None)


@contextmanager
def cached_symbols() -> Generator[None, None, None]:
    """Cache symbol tables inside the `with` block, in which no symbol may be added, removed or renamed."""
    token = _CACHED_TABLES.set({})
    try:
        yield
    finally:
        _CACHED_TABLES.reset(token)


def repair_symbols() -> None:
    """Apply the workaround for symbols.

    This function never raises. If xDSL's internals are not as expected, it prints a warning to standard error.
    """
    try:
        if not looks_around_unknown_operations():
            SymbolTable.lookup_symbol = staticmethod(_look_up_symbol)
    except Exception as error:
        print(f"recompute: workaround for xDSL's symbol tables not applied: {error}", file=sys.stderr)


def looks_around_unknown_operations() -> bool:
    function = FuncOp("f", ((), ()))
    inside = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block())])
    outer = UnregisteredOp.with_name("any.thing").create(regions=[Region(Block([inside]))])
    ModuleOp([function, outer])
    return SymbolTable.lookup_symbol(inside, "f") is function


def _look_up_symbol(op: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Look up a symbol in the enclosing unregistered operations, and then in the nearest registered symbol table.

    This replaces `SymbolTable.lookup_symbol`.
    """
    table = _nearest_table(op)
    while isinstance(table, UnregisteredOp) and (outer := table.parent_op()) is not None:
        if _is_like_a_table(table) and (symbol := _look_up_in(table, name)) is not None:
            return symbol
        table = _nearest_table(outer)
    return _look_up_in(op if table is None else table, name)


def _look_up_in(table: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Look up a name in a single symbol table as xDSL does, using the cached table if there is one."""
    tables = _CACHED_TABLES.get()
    if tables is None or not _is_like_a_table(table) or (isinstance(name, SymbolRefAttr) and name.nested_references):
        return _xdsl_look_up_symbol(table, name)
    if (symbols := tables.get(table)) is None:
        symbols = tables[table] = _symbols_of(table)
    return symbols.get(_text_of(name))


def _symbols_of(table: Operation) -> Symbols:
    """Return the operations of the table by symbol name. The first of two operations with the same name is used."""
    symbols: Symbols = {}
    for op in table.regions[0].block.ops:
        if (trait := op.get_trait(SymbolOpInterface)) is not None and (name := trait.get_sym_attr_name(op)) is not None:
            symbols.setdefault(name.data, op)
    return symbols


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
