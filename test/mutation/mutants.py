"""Mutants of a source file: single small changes of its syntax tree that a programmer could make by mistake."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

Edit = Callable[[], object]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
DROPPED = (ast.AugAssign, ast.Continue, ast.Raise)


@dataclass(frozen=True)
class Mutant:
    """Change number `variant` of node number `node` of a file. `line` and `what` describe it to readers."""

    node: int
    variant: int
    line: int
    what: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a file, always in the same order."""
    for index, node in enumerate(ast.walk(ast.parse(source))):
        for variant, (what, line, _) in enumerate(_changes(node)):
            yield Mutant(index, variant, line, what)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Return the syntax tree of the mutant, with the line numbers of the source."""
    tree = ast.parse(source)
    node = list(ast.walk(tree))[mutant.node]
    list(_changes(node))[mutant.variant][2]()
    return ast.fix_missing_locations(tree)


def _changes(node: ast.AST) -> Iterator[tuple[str, int, Edit]]:
    """Yield the possible changes of a node: description, line and edit."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            other = COMPARISONS[type(op)]
            yield f"{_short(node)}: {other.__name__}", node.lineno, lambda: node.ops.__setitem__(0, other())
        case ast.BoolOp(op=op):
            other = ast.Or if isinstance(op, ast.And) else ast.And
            yield f"{_short(node)}: {other.__name__}", node.lineno, lambda: setattr(node, "op", other())
        case ast.BinOp(op=ast.Add() | ast.Sub() as op):
            other = ast.Sub if isinstance(op, ast.Add) else ast.Add
            yield f"{_short(node)}: {other.__name__}", node.lineno, lambda: setattr(node, "op", other())
        case ast.If() | ast.IfExp():
            yield f"not ({_short(node.test)})", node.lineno, lambda: setattr(node, "test", _negated(node.test))
        case ast.comprehension(ifs=[test, *_]):
            yield f"not ({_short(test)})", test.lineno, lambda: node.ifs.__setitem__(0, _negated(test))
        case ast.Constant(value=bool(value)):
            yield f"{value}: {not value}", node.lineno, lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield f"{value}: {value + 1}", node.lineno, lambda: setattr(node, "value", value + 1)
        case ast.Module():
            yield from _shorter_tables(node)
        case _:
            pass
    yield from _dropped(node)


def _dropped(node: ast.AST) -> Iterator[tuple[str, int, Edit]]:
    for field in ("body", "orelse"):
        # Of a lambda and an `a if b else c` these are expressions.
        result = getattr(node, field, None)
        body = cast(list[ast.stmt], result) if isinstance(result, list) else []
        for index, statement in enumerate(body):
            is_call = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
            if is_call or isinstance(statement, DROPPED):
                yield f"dropped {_short(statement)}", statement.lineno, _put(body, index, ast.Pass())


def _shorter_tables(module: ast.Module) -> Iterator[tuple[str, int, Edit]]:
    """Yield the removals of entries from module-level tables: dictionaries, sets, tuples, and words of long strings."""
    for statement in module.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        for node in ast.walk(statement.value):
            match node:
                case ast.Dict(keys=keys, values=values) if len(keys) > 1:
                    for at, key in enumerate(keys):
                        words = _short(key) if key is not None else _short(values[at])
                        yield f"no {words}", values[at].lineno, _without(at, keys, values)
                case ast.Tuple(elts=entries) | ast.Set(elts=entries) if len(entries) > 1:
                    for at, entry in enumerate(entries):
                        yield f"no {_short(entry)}", entry.lineno, _without(at, entries)
                case ast.Constant(value=str(text)) if len(text.split()) > 1:
                    for word in text.split():
                        rest = " ".join(actual for actual in text.split() if actual != word)
                        yield f"no {word}", node.lineno, _set_value(node, rest)
                case _:
                    pass


def _put(body: list[ast.stmt], index: int, statement: ast.stmt) -> Edit:
    return lambda: body.__setitem__(index, statement)


def _without(index: int, *lists: list[ast.expr] | list[ast.expr | None]) -> Edit:
    return lambda: [entries.pop(index) for entries in lists]


def _set_value(node: ast.Constant, value: str) -> Edit:
    return lambda: setattr(node, "value", value)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
