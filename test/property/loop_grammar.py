"""Grammar of `rewritten_loops.py`: random pairs of programs, the second of which is almost a rewrite of the first."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

from recompute.test.property.loop_pieces import SLIPS
from recompute.test.property.loop_writer import (
    COMPARED,
    INTEGERS,
    Expression,
    Loop,
    Program,
    Write,
    replaced,
)

UNARY = ("sine", "cosine", "negate", "tanh")
BINARY = ("add", "subtract", "multiply", "maximum")
COUNTER: Expression = ("i",)


def index(dice: Random, height: int) -> Expression:
    """Return an index expression: mostly one at which stacks are read and written, sometimes a similar one."""
    last: Expression = ("c", height - 1)
    match dice.randrange(9) if dice.random() < 0.85 else dice.randrange(9, 16):
        case 0 | 1 | 2 | 3 | 4:
            return COUNTER
        case 5 | 6 | 7:
            return ("sub", last, COUNTER)
        case 8:
            return ("sub", ("sub", ("c", height), COUNTER), ("c", 1))
        case 9:
            return ("add", COUNTER, ("c", dice.choice([-1, 1, 2])))
        case 10:
            return ("mul", COUNTER, ("c", dice.choice([-1, 0, 2, 64, 128])))
        case 11:
            return ("wrapped", index(dice, height), ("c", height))
        case 12:
            return ("narrow", index(dice, height))
        case 13:
            return (dice.choice(["min", "max"]), index(dice, height), ("c", dice.randrange(height)))
        case 14:
            return ("rem", COUNTER, ("c", dice.choice([1, 2, height])))
        case _:
            return ("c", dice.randrange(-1, height + 1))


def value(dice: Random, leaves: list[Expression], depth: int) -> Expression:
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(leaves)
    if dice.random() < 0.6:
        return (dice.choice(UNARY), value(dice, leaves, depth - 1))
    return (dice.choice(BINARY), value(dice, leaves, depth - 1), value(dice, leaves, depth - 1))


def counting(dice: Random, rows: int) -> dict[str, Any]:
    """Return start, end and step of a loop, mostly with as many iterations as there are rows."""
    match dice.randrange(25):
        case 0:
            return {"start": rows - 1, "end": -1, "step": -1}
        case 1:
            return {"start": 0, "end": 2 * rows, "step": 2}
        case 2:
            return {"start": 1, "end": rows + 1, "step": 1}
        case 3:
            return {"start": 0, "end": rows + dice.choice([-1, 1, -rows]), "step": 1}
        case _:
            return {"start": 0, "end": rows, "step": 1}


def program(dice: Random) -> Program:
    rows, less = dice.choice([1, 2, 3, 4, 4, 5, 6]), 0
    if rows > 1 and dice.random() < 0.1:  # The last two iterations of the first loop write the same place.
        less = 1
    heights = tuple(rows - less + (dice.choice([1, 2]) if dice.random() < 0.1 else 0) for _ in range(2))
    kind = dice.choice(("i32", "i64", "ui32")) if dice.random() < 0.9 else dice.choice(INTEGERS)
    leaves: list[Expression] = [("h",), ("h",), ("k",), ("x",), ("number", COUNTER), ("row", index(dice, rows))]
    stacks = dice.choice([1, 1, 2])
    if dice.random() < 0.1:  # What earlier iterations have stored.
        leaves.append(("slot", ("c", 0), index(dice, heights[0])))
    writes = [Write(k, index(dice, heights[k]), value(dice, leaves, 2)) for k in range(stacks)]
    if dice.random() < 0.1:
        writes.append(Write(0, index(dice, heights[0]), value(dice, leaves, 1)))
    carries: dict[str, Any] = {
        "carry": value(dice, leaves, 2),
        "other": value(dice, leaves, 1) if dice.random() < 0.6 else ("k",),
    }
    first = Loop(kind, **counting(dice, rows), **carries, writes=tuple(writes))
    other = kind if dice.random() < 0.95 else dice.choice(INTEGERS)
    reads: list[Expression] = [("slot", ("c", k), index(dice, heights[k])) for k in range(stacks)]
    ends = value(dice, [("h",), ("k",), *reads, *reads], 2)
    for read in reads:
        ends = ("add", ends, read)
    trips = rows - less if dice.random() < 0.9 else rows + dice.choice([-1, 1])
    second = Loop(
        other, **counting(dice, max(trips, 1)), carry=ends, other=dice.choice([("k",), ("h",), reads[0]]), writes=()
    )
    return Program(rows, heights[:stacks], dice.choice([0.0, 0.5]), (first, second), dice.random() < 0.1)


def inverse(place: Expression, read: Expression) -> Expression:
    """Return the iteration that reads the position `read`, assuming that numbers do not overflow."""
    match place:
        case ("sub", ("c", _) as last, ("i",)):
            return ("sub", last, read)
        case ("add", ("i",), ("c", by)) if isinstance(by, int):
            return ("sub", read, ("c", by))
        case _:
            return read


def stored_less(before: Program, dice: Random) -> Program:
    """Let the first loop store an operand of the stored value, or nothing, and let the second loop compute the rest."""
    first, second = before.loops
    writes, carry, other = list[Write](), second.carry, second.other
    for write in first.writes:
        kept, rest = _cut(write.value, dice)
        for read in sorted(
            {slot for slot in _slots((second.carry, second.other)) if slot[1] == ("c", write.stack)}, key=str
        ):
            at = inverse(write.place, read[2])
            again = replaced(rest, {("kept",): read, COUNTER: at})
            carry, other = replaced(carry, {read: again}), replaced(other, {read: again})
        writes.append(dataclasses.replace(write, value=kept))
    loops = dataclasses.replace(first, writes=tuple(writes)), dataclasses.replace(second, carry=carry, other=other)
    return dataclasses.replace(before, loops=loops)


def _cut(stored: Expression, dice: Random) -> tuple[Expression, Expression]:
    """Return the value to store, and an expression that computes the original from it, `("kept",)`."""
    if stored[0] in UNARY and dice.random() < 0.85:
        kept, rest = _cut(stored[1], dice)
        return kept, (stored[0], rest)
    if stored[0] in BINARY and ("h",) not in stored[2] and "h" not in str(stored[2]):
        kept, rest = _cut(stored[1], dice)
        return kept, (stored[0], rest, stored[2])
    if stored[0] in ("number", "row", "x"):
        return ("x",), stored
    return stored, ("kept",)


def _slots(expression: Expression) -> set[Expression]:
    if expression[0] == "slot":
        return {expression}
    parts: list[Expression] = [part for part in expression if isinstance(part, tuple)]
    return {slot for part in parts for slot in _slots(part)}


def reshaped(given: Program, dice: Random) -> Program:
    """Restructure the loops: `split`, `chunked`, `peeled`, or counted from zero by ones."""
    at = dice.randrange(2)
    kinds, loops = ["split", "chunked", "counted", "peeled", "parity"], list(given.loops)
    message: dict[str, Any] = {"pieces": dice.choices(kinds, [2, 4, 1, 0.3, 0.3])[0], "turned": dice.random() < 0.5}
    message |= {"slip": dice.choice(SLIPS) if dice.random() < 0.4 else "", "size": dice.choice([1, 2, 2, 3])}
    loops[at] = dataclasses.replace(loops[at], **message)
    return dataclasses.replace(given, loops=(loops[0], loops[1]))


def nudged(given: Program, dice: Random) -> Program:
    """Change one number of one loop."""
    at, field = (
        dice.randrange(2),
        dice.choice(["start", "end", "step", "kind", "heights", "begins", "swap", "carries", "direction"]),
    )
    loops = list(given.loops)
    match field:
        case "kind":
            loops[at] = dataclasses.replace(loops[at], kind=dice.choice(INTEGERS))
        case "heights":
            return dataclasses.replace(given, heights=tuple(height + 1 for height in given.heights))
        case "begins":
            return dataclasses.replace(given, begins=given.begins + 1)
        case "direction":
            loops[at] = dataclasses.replace(loops[at], direction=dice.choice(list(COMPARED)))
        case "carries":
            loops[at] = dataclasses.replace(loops[at], carry=loops[at].other, other=loops[at].carry)
        case "swap":
            writes = tuple(dataclasses.replace(w, stack=(w.stack + 1) % len(given.heights)) for w in loops[0].writes)
            loops[0] = dataclasses.replace(loops[0], writes=writes)
        case _:
            loops[at] = dataclasses.replace(loops[at], **{field: getattr(loops[at], field) + dice.choice([-1, 1])})
    return dataclasses.replace(given, loops=(loops[0], loops[1]))


def pair(seed: int) -> tuple[Program, Program]:
    dice = Random(seed)
    before = program(dice)
    after = stored_less(before, dice) if dice.random() < 0.95 else before
    if dice.random() < 0.3:
        after = reshaped(after, dice)
    if dice.random() < 0.15:
        after = nudged(after, dice)
    return (before, after) if dice.random() < 0.5 else (after, before)
