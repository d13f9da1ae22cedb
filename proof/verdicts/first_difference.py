"""Find the first difference between two terms, to explain why a proof failed.

Only messages use the result: an error here can mislead a reader, but cannot change a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.ir import Operation

from ...support.diagnostics import UNKNOWN
from ...support.operations import name_of
from ..expressions.terms import Attributes, Head, Kind, OpenRegion, Side, Terms
from .loop_difference import WHILE, loop_difference
from .operation_positions import describe_position, with_position

MAX_TEXT_LENGTH = 60
BEFORE: Side = 0
AFTER: Side = 1
_LOOP_KINDS: frozenset[Kind] = frozenset({"loop", "history", "rows"})
"""The kinds of terms that contain the body of a loop."""
_OPERATION_KINDS: frozenset[Kind] = frozenset({"operation", "effect", "risk", "result"})
"""The kinds of terms that are an operation or one of its results."""


@dataclass(frozen=True)
class Difference:
    """The first difference between two programs.

    Attributes:
        path: Descriptions of the operands and regions that lead from the compared value to the difference.
        before: Description of the differing term in the original program.
        after: Description of the differing term in the rewritten program.
        is_named: Whether the path ends at operations of both programs, which the descriptions name.
        loops: Description of the difference between two loops if the path ends at loops, else "". `with_loops` sets it.
        loop_pair: The two loops at which the path ends, until `with_loops` describes them; else None.
    """

    path: tuple[str, ...]
    before: str
    after: str
    is_named: bool = field(default=False, compare=False)
    loops: str = ""
    loop_pair: tuple[Operation, Operation] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        where = f"{self.path[-1]}: " if self.path else ""
        if self.loops.startswith("the loops"):  # This text names both loops.
            return f"{where}{self.loops}"
        return f"{where}before {self.before}, after {self.after}{f'; {self.loops}' if self.loops else ''}"

    def with_loops(self) -> Difference:
        """Return the difference with `loops` set, which requires a pass over both programs."""
        return self if self.loop_pair is None else replace(self, loops=loop_difference(*self.loop_pair), loop_pair=None)


@dataclass(frozen=True)
class _Pair:
    """Two terms that should be equal.

    `step`: names the operand or region result of `parent` that the two terms represent.
    """

    before: int
    after: int
    step: str = ""
    parent: _Pair | None = None

    def path(self) -> tuple[str, ...]:
        steps: list[str] = []
        pair: _Pair | None = self
        while pair is not None:
            steps.append(pair.step)
            pair = pair.parent
        return tuple(step for step in reversed(steps) if step)


def first_difference(terms: Terms, before: int, after: int) -> Difference:
    """Return the first difference between two unequal terms. The search is depth-first, operands before regions.

    The search treats corresponding arguments of two regions as equal and visits each pair of terms once.
    """
    start = _Pair(before, after)
    visited = {(before, after)}
    pending = [start]
    last_regions = start
    while pending:
        pair = pending.pop()
        if (texts := _difference_here(terms, pair)) is not None:
            return Difference(pair.path(), *texts, _is_named(terms, pair), loop_pair=_loop_pair(terms, pair))
        region_pairs = _region_pairs(terms, pair, visited)
        last_regions = pair if region_pairs else last_regions
        unvisited = [
            step for step in _operand_pairs(terms, pair) + region_pairs if (step.before, step.after) not in visited
        ]
        visited.update((step.before, step.after) for step in unvisited)
        pending.extend(step for step in reversed(unvisited) if step.before != step.after)
    return Difference(last_regions.path(), "one region", "another")


def _is_named(terms: Terms, pair: _Pair) -> bool:
    """Return whether both terms are known operations or results of known operations."""
    sides: tuple[tuple[Side, int], ...] = ((BEFORE, pair.before), (AFTER, pair.after))
    return all(
        _head(terms, number).kind in _OPERATION_KINDS and _origin(terms, side, number) is not None
        for side, number in sides
    )


def _loop_pair(terms: Terms, pair: _Pair) -> tuple[Operation, Operation] | None:
    """Return the two loops that the terms represent or are results of; None if one of them is not a loop."""
    loops = _origin(terms, BEFORE, pair.before), _origin(terms, AFTER, pair.after)
    if loops[0] is None or loops[1] is None or not name_of(loops[0]) == name_of(loops[1]) == WHILE:
        return None
    return loops[0], loops[1]


def _origin(terms: Terms, side: Side, number: int) -> Operation | None:
    """Return the operation that computes a term; None if it is unknown."""
    if _head(terms, number).kind == "result":
        number = terms.terms[number][1][0]
    origin = terms.origins[side].get(number)
    if origin is not None and name_of(origin) == _head(terms, number).name:
        return origin
    return _similar_origin(terms, side, number) or origin


def _similar_origin(terms: Terms, side: Side, number: int) -> Operation | None:
    """Return the operation from which a term in a loop body most likely comes; None if there is none.

    The rules for loops (tier 2) make new terms from the terms of operations. Such a term has the head of the operation,
    and operands with the same heads. If several operations have this head and such operands, return the first one in
    the original program, and the last one in the rewritten program, where copies come last.
    """

    def heads(term: int) -> list[int]:
        return [terms.terms[part][0] for part in (term, *terms.terms[term][1])]

    if _head(terms, number).kind not in _OPERATION_KINDS:
        return None
    name, origins = _head(terms, number).name, terms.origins[side]
    same_head = [term for term in origins if terms.terms[term][0] == terms.terms[number][0]]
    candidates = [term for term in same_head if name_of(origins[term]) == name]
    similar = [term for term in candidates if heads(term) == heads(number)] or candidates
    return origins[similar[-side]] if similar else None


def _difference_here(terms: Terms, pair: _Pair) -> tuple[str, str] | None:
    """Return a description of each term if the terms themselves differ, or None if only their operands or regions can
    differ."""
    a, b = _head(terms, pair.before), _head(terms, pair.after)
    counts = len(_operands(terms, BEFORE, pair.before)), len(_operands(terms, AFTER, pair.after))
    facts = [(head.kind, head.name, head.numbers, head.attributes, head.properties, head.types) for head in (a, b)]
    # A body may capture a different number of values if an operation in it differs; the difference is then in the body.
    is_same_size = counts[0] == counts[1] or bool(_open_bodies(terms, pair))
    if facts[0] == facts[1] and is_same_size and len(a.bodies) == len(b.bodies):
        return None
    # A description may search a whole block for a position, so it is made only if the terms differ.
    before, after = describe(terms, BEFORE, pair.before), describe(terms, AFTER, pair.after)
    if facts[0][:3] != facts[1][:3]:
        return before, after
    if a.attributes != b.attributes:
        texts = first_attribute(terms, a.attributes, b.attributes)
        return f"{before} with {texts[0]}", f"{after} with {texts[1]}"
    if a.properties != b.properties:
        name = min(set(a.properties) ^ set(b.properties))
        texts = [f"{name} as {'a property' if name in head.properties else 'an attribute'}" for head in (a, b)]
        return f"{before} with {texts[0]}", f"{after} with {texts[1]}"
    if a.types != b.types:
        texts = _where_they_differ(_types(terms, a), _types(terms, b))
        return f"{before} of type {texts[0]}", f"{after} of type {texts[1]}"
    return (
        f"{before} (operands: {counts[0]}, regions: {len(a.bodies)})",
        f"{after} (operands: {counts[1]}, regions: {len(b.bodies)})",
    )


def describe(terms: Terms, side: Side, number: int) -> str:
    """Return a description of a term for a message, with the source position of its operation if it is known."""
    head = _head(terms, number)
    operands = terms.terms[number][1]
    match head.kind:
        case "endless":
            return describe(terms, side, operands[0])
        case "operation" | "effect" | "risk":
            origin = _origin(terms, side, number)
            return head.name if origin is None else with_position(origin, head.name)
        case "result":
            whole = describe(terms, side, operands[0])
            return whole if _head(terms, operands[0]).kind == "attributed" else f"result {head.numbers[0]} of {whole}"
        case "parameter":
            return f"argument {head.name}"
        case "variable":
            index = terms.argument_indices.get(number)
            return "an argument of the region" if index is None else f"argument {index} of the region"
        case "state":
            return "no effect"
        case "attributed":
            return f"attributes of a {head.name}"
        case "loop":
            return f"the result of {_loop_name(terms, side, number)}"
        case "history":
            return f"a value that {_loop_name(terms, side, number)} carries"
        case "index":
            return "an index"
        case "pattern" | "until":
            origin = terms.origins[side].get(number)
            return (
                "an operation in a loop" if origin is None else f"{with_position(origin, name_of(origin))}, in a loop,"
            )
        case "rows":
            return f"a stack that {_loop_name(terms, side, number)} writes"
        case "branch":
            return "the result of a conditional"
        case "devices":
            return "the devices"
        case "part" | "whole":
            return f"the {head.kind} laid out as <{head.name}>"


def _loop_name(terms: Terms, side: Side, number: int) -> str:
    origin = terms.origins[side].get(number)
    return "a loop" if origin is None else f"the loop at {describe_position(origin) or UNKNOWN}"


def _head(terms: Terms, number: int) -> Head:
    return terms.heads[terms.terms[number][0]]


def _operands(terms: Terms, side: Side, number: int) -> tuple[int, ...]:
    """Return the operands of a term without its captures, which are compared where the regions use them."""
    operands = terms.terms[number][1]
    if (op := terms.origins[side].get(number)) is None:
        return operands
    state = 1 if _head(terms, number).kind == "effect" else 0
    return operands[: state + len(op.operands)]


def _operand_pairs(terms: Terms, pair: _Pair) -> list[_Pair]:
    before, after = _operands(terms, BEFORE, pair.before), _operands(terms, AFTER, pair.after)
    head = _head(terms, pair.before)
    return [_Pair(a, b, _step(head, index), pair) for index, (a, b) in enumerate(zip(before, after, strict=False))]


def _step(head: Head, index: int) -> str:
    """Return a description of the operand at `index` for the path in a message; empty if it would tell a reader
    nothing."""
    match head.kind:
        case "operation":
            return f"{head.name} operand {index}"
        case "effect":
            return f"{head.name} operand {index - 1}" if index else f"the effects before {head.name}"
        case _:
            return ""


def _region_pairs(terms: Terms, pair: _Pair, visited: set[tuple[int, int]]) -> list[_Pair]:
    """Return the pairs of region results to compare. Mark pairs of region arguments as visited, so that they are
    treated as equal.
    """
    name = _head(terms, pair.before).name
    pairs: list[_Pair] = []
    insides = terms.open_regions[BEFORE].get(pair.before, ()), terms.open_regions[AFTER].get(pair.after, ())
    if bodies := _open_bodies(terms, pair):
        insides = bodies
    for region, (before, after) in enumerate(zip(*insides, strict=False)):
        if (len(before.arguments), len(before.roots)) != (len(after.arguments), len(after.roots)):
            continue
        visited.update(zip(before.arguments, after.arguments, strict=True))
        last = len(before.roots) - 1
        for index, (a, b) in enumerate(zip(before.roots, after.roots, strict=True)):
            root = "the effects" if index == last else f"result {index}"
            pairs.append(_Pair(a, b, f"{root} of region {region} of {name}" if name else "", pair))
    return pairs


def _open_bodies(terms: Terms, pair: _Pair) -> tuple[tuple[OpenRegion, ...], tuple[OpenRegion, ...]] | tuple[()]:
    """Return the regions of two terms of loops (tier 2) that have different bodies; empty for other terms."""
    a, b = _head(terms, pair.before), _head(terms, pair.after)
    if a.kind != b.kind or a.kind not in _LOOP_KINDS or a.bodies == b.bodies:
        return ()
    sides = [tuple(terms.open_bodies[body] for body in head.bodies if body in terms.open_bodies) for head in (a, b)]
    return (sides[0], sides[1]) if all(sides) else ()


def first_attribute(terms: Terms, before: Attributes, after: Attributes) -> tuple[str, str]:
    """Return the first attribute that differs, as a string for each program."""
    a, b = dict(before), dict(after)
    name = min(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    texts = [f"{name} = {terms.attributes.text(side[name])}" if name in side else f"no {name}" for side in (a, b)]
    return _where_they_differ(*texts)


def _types(terms: Terms, head: Head) -> str:
    return ", ".join(terms.attributes.text(number) for number in head.types)


def _where_they_differ(before: str, after: str) -> tuple[str, str]:
    """Shorten both strings to the text around the first character that differs."""
    shorter = min(len(before), len(after))
    same = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    start = max(0, same - MAX_TEXT_LENGTH // 2)
    return _truncate(before, start), _truncate(after, start)


def _truncate(text: str, start: int) -> str:
    end = start + MAX_TEXT_LENGTH
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
