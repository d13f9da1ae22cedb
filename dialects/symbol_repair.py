"""Repairs how xDSL finds the function that is called from within an operation that it does not know.

xDSL takes every unknown operation for a symbol table and looks no further: `func.call @f` in the region of a
`"sdy.manual_computation"`, where JAX's `shard_map` puts nested functions, calls nothing. An unknown operation may be
a symbol table: what it does not define is looked up around it. Made only where a test of it fails.
"""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import SymbolTable

_xdsl_looks_up = SymbolTable.lookup_symbol


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
        if _is_like_a_table(table) and (found := _xdsl_looks_up(table, name)) is not None:
            return found
        table = _nearest_table(around)
    return _xdsl_looks_up(op if table is None else table, name)


def _nearest_table(op: Operation | None) -> Operation | None:
    while op is not None and not op.has_trait(SymbolTable):
        op = op.parent_op()
    return op


def _is_like_a_table(op: Operation) -> bool:
    return len(op.regions) == 1 and len(op.regions[0].blocks) == 1
