"""Rules for operations that only enclose others: barriers, groups, calls.

Their attributes remain: around each value as `attributed`, and around effects as a pair of marks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..balance import pieces
from ..edits.sites import copied
from ..tree import Block, Operation, Program, Value
from .names_and_order import callee_of, name_of
from .pure import blocks_run, is_pure

MOST_OPERATIONS = 5000
_SIGNATURE = frozenset("sym_name sym_visibility function_type arg_attrs res_attrs".split())


Step = Callable[[Operation], tuple[list[Operation], Sequence[Value]] | None]
"""What takes the place of an operation and of its results; `None` for an operation that stays."""


def rewrite(block: Block, step: Step) -> None:
    """Replace operations by those that `step` returns, and their results by its values, innermost first."""
    replaced: dict[Value, Value] = {}

    def visit(block: Block) -> None:
        listed: list[Operation] = []
        for op in block.operations:
            for inner in blocks_run(op):
                visit(inner)
            op.operands = [replaced.get(value, value) for value in op.operands]
            results = step(op)
            listed += [op] if results is None else results[0]
            if results is not None:
                replaced.update(zip(op.results, results[1], strict=True))
        block.operations = listed

    visit(block)
    # Values may be read before their definition where an unknown operation allows it.
    for op in [op for outer in block.operations for op in outer.walk()]:
        op.operands = [_final(value, replaced) for value in op.operands]


def _final(value: Value, replaced: Mapping[Value, Value]) -> Value:
    for _ in range(len(replaced) + 1):
        if value not in replaced:
            return value
        value = replaced[value]
    return value


def around(what: str, values: Sequence[Value], attributes: Mapping[str, str]) -> tuple[list[Operation], list[Value]]:
    """Return the values with attributes around each, if there are any."""
    if not attributes:
        return [], list(values)
    items = [
        Operation("attributed", [value], [Value(value.type)], {"what": what}, dict(attributes)) for value in values
    ]
    return items, [op.results[0] for op in items]


def marked(what: str, inside: list[Operation], attributes: Mapping[str, str]) -> list[Operation]:
    """Return effects between two marks that carry the attributes, if there are any."""
    if not attributes or all(map(is_pure, inside)):
        return inside
    start, end = (Operation(f"effects.{word}", [], [], {"what": what}, dict(attributes)) for word in ("start", "end"))
    return [start, *inside, end]


def attributes_of(op: Operation, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return attributes and properties, which are distinguished by name."""
    own = {f"property {key}": value for key, value in op.properties.items() if key not in without}
    return own | op.attributes


def without_barriers(program: Program) -> None:
    _rewrite_functions(program, _barrier)


def _rewrite_functions(program: Program, step: Step) -> None:
    """Rewrite the bodies of functions; other top-level operations stay unchanged."""
    for op in program.body.operations:
        for block in blocks_run(op):
            rewrite(block, step)


def _barrier(op: Operation) -> tuple[list[Operation], Sequence[Value]] | None:
    if op.name == "stablehlo.optimization_barrier":
        values = op.operands
    elif op.name == "recompute.depend" and op.operands and op.operands[-1].type == "!recompute.token":
        values = op.operands[:-1]
    else:
        return None
    if op.regions or [value.type for value in values] != [value.type for value in op.results]:
        return None
    return around("barrier", values, attributes_of(op))


def without_groups(program: Program) -> None:
    _rewrite_functions(program, _group)


def _group(op: Operation) -> tuple[list[Operation], Sequence[Value]] | None:
    if op.name not in ("recompute.segment", "recompute.gradient") or op.operands or len(op.regions) != 1:
        return None
    if len(op.regions[0]) != 1 or op.regions[0][0].arguments or not op.regions[0][0].operations:
        return None
    *inside, last = op.regions[0][0].operations
    if last.name != "recompute.yield" or [v.type for v in last.operands] != [v.type for v in op.results]:
        return None
    message = attributes_of(op) | {f"yield {key}": value for key, value in attributes_of(last).items()}
    wrapped, values = around("group", last.operands, message)
    return [*marked("group", inside, message), *wrapped], values


def without_calls(program: Program) -> None:
    """Inline each call, except calls in nested modules, of declarations, and recursive ones."""
    functions = {
        name_of(actual): actual for actual in program.functions() if actual.regions and len(actual.regions[0]) == 1
    }
    for function in program.functions():
        _Inliner(functions, (name_of(function),)).inline(function)


class _Inliner:
    def __init__(self, functions: Mapping[str, Operation], active: tuple[str, ...]):
        self._functions, self._active = functions, active

    def inline(self, op: Operation) -> None:
        for block in blocks_run(op):
            rewrite(block, self._call)

    def _call(self, call: Operation) -> tuple[list[Operation], Sequence[Value]] | None:
        name = callee_of(call) if call.name == "func.call" else None
        if name is None or name not in self._functions or name in self._active or len(self._active) > 12:
            return None
        function = copied(self._functions[name])
        block = function.regions[0][0]
        last = block.operations[-1] if block.operations else None
        if last is None or last.name != "func.return" or len(block.arguments) != len(call.operands):
            return None
        if [value.type for value in last.operands] != [value.type for value in call.results]:
            return None
        _Inliner(self._functions, (*self._active, name)).inline(function)
        return _opened(call, function, last)


def _opened(call: Operation, function: Operation, last: Operation) -> tuple[list[Operation], Sequence[Value]]:
    block = function.regions[0][0]
    message = {f"call {key}": value for key, value in attributes_of(call, frozenset({"callee"})).items()}
    message |= {f"function {key}": value for key, value in attributes_of(function, _SIGNATURE).items()}
    message |= {f"return {key}": value for key, value in attributes_of(last).items()}
    before, arguments = _each("argument", call.operands, function.properties.get("arg_attrs"))
    given = dict(zip(block.arguments, arguments, strict=True))
    inside = block.operations[:-1]
    for op in [inner for outer in (*inside, last) for inner in outer.walk()]:
        op.operands = [given.get(value, value) for value in op.operands]
    after, results = _each("result", last.operands, function.properties.get("res_attrs"))
    wrapped, results = around("call", results, message)
    every = message | {
        f"list {key}": function.properties[key] for key in ("arg_attrs", "res_attrs") if _says(function, key)
    }
    return [*before, *marked("call", inside, every), *after, *wrapped], results


def _says(function: Operation, key: str) -> bool:
    return any(piece != "{}" for piece in pieces(function.properties.get(key, "[]")[1:-1]))


def _each(what: str, values: Sequence[Value], listed: str | None) -> tuple[list[Operation], list[Value]]:
    """Return each value with the attributes of its position."""
    texts = pieces(listed[1:-1]) if listed else []
    items: list[Operation] = []
    matches: list[Value] = []
    for value, text in zip(values, [*texts, *["{}"] * (len(values) - len(texts))], strict=False):
        attributes = {"list": text} if text != "{}" else {}
        ops, (new,) = around(what, [value], attributes)
        items += ops
        matches.append(new)
    return items, matches
