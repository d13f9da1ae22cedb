"""Two loops that hand on stacks, and a rewriting of them that is only nearly right: what is proved computes the same.

python -m recompute.test.property.rewritten_loops --count 5000 --seed 0

Unlike `loops.py`, which edits what JAX and the passes make, a grammar of its own (`loop_writer.py`): counters of every
integer type, steps and starts of any sign, indices that wrap, clamp, skip or repeat, stacks with two writers, that are
read where nothing was written, and loops split, chunked or with an iteration peeled off. The rewriting stores something
else in the first loop and computes the rest in the second one, as if indices and counters were numbers without an end.
Exit status 1: one was proved that computes something else.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import Counter
from random import Random

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from recompute.dialects.context import make_context
from recompute.dialects.diagnostics import Refusal
from recompute.dialects.parser import parse_module
from recompute.interpreters.execute_check import Pair
from recompute.interpreters.prove import prove
from recompute.test.property.loop_writer import (
    INTEGERS,
    Expression,
    Loop,
    Program,
    Write,
    replaced,
    written,
)

UNARY = ("sine", "cosine", "negate", "tanh")
BINARY = ("add", "subtract", "multiply", "maximum")
I: Expression = ("i",)


def index(dice: Random, height: int) -> Expression:
    """Mostly what a stack is read and written at, and sometimes something near to it."""
    last: Expression = ("c", height - 1)
    match dice.randrange(9) if dice.random() < 0.85 else dice.randrange(9, 16):
        case 0 | 1 | 2 | 3 | 4:
            return I
        case 5 | 6 | 7:
            return ("sub", last, I)
        case 8:
            return ("sub", ("sub", ("c", height), I), ("c", 1))
        case 9:
            return ("add", I, ("c", dice.choice([-1, 1, 2])))
        case 10:
            return ("mul", I, ("c", dice.choice([-1, 0, 2, 64, 128])))
        case 11:
            return ("wrapped", index(dice, height), ("c", height))
        case 12:
            return ("narrow", index(dice, height))
        case 13:
            return (dice.choice(["min", "max"]), index(dice, height), ("c", dice.randrange(height)))
        case 14:
            return ("rem", I, ("c", dice.choice([1, 2, height])))
        case _:
            return ("c", dice.randrange(-1, height + 1))


def value(dice: Random, leaves: list[Expression], depth: int) -> Expression:
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(leaves)
    if dice.random() < 0.6:
        return (dice.choice(UNARY), value(dice, leaves, depth - 1))
    return (dice.choice(BINARY), value(dice, leaves, depth - 1), value(dice, leaves, depth - 1))


def counting(dice: Random, rows: int) -> dict[str, int]:
    """Start, end and step: mostly as many iterations as there are rows."""
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
    rows = dice.choice([1, 2, 3, 4, 5])
    heights = tuple(rows + (dice.choice([-1, 1, 2]) if dice.random() < 0.15 and rows > 1 else 0) for _ in range(2))
    kind = dice.choice(("i32", "i64", "ui32")) if dice.random() < 0.9 else dice.choice(INTEGERS)
    leaves: list[Expression] = [("h",), ("h",), ("k",), ("x",), ("number", I), ("row", index(dice, rows))]
    stacks = dice.choice([1, 1, 2])
    writes = [Write(k, index(dice, heights[k]), value(dice, leaves, 2)) for k in range(stacks)]
    if dice.random() < 0.1:
        writes.append(Write(0, index(dice, heights[0]), value(dice, leaves, 1)))
    carries = {"carry": value(dice, leaves, 2), "other": value(dice, leaves, 1) if dice.random() < 0.6 else ("k",)}
    first = Loop(kind, **counting(dice, rows), **carries, writes=tuple(writes))
    other = kind if dice.random() < 0.95 else dice.choice(INTEGERS)
    reads: list[Expression] = [("slot", ("c", k), index(dice, heights[k])) for k in range(stacks)]
    ends = value(dice, [("h",), ("k",), *reads, *reads], 2)
    for read in reads:
        ends = ("add", ends, read)
    trips = rows if dice.random() < 0.9 else rows + dice.choice([-1, 1])
    second = Loop(
        other, **counting(dice, max(trips, 1)), carry=ends, other=dice.choice([("k",), ("h",), reads[0]]), writes=()
    )
    return Program(rows, heights[:stacks], dice.choice([0.0, 0.5]), (first, second), dice.random() < 0.1)


def inverse(place: Expression, read: Expression) -> Expression:
    """The iteration in which the place was `read`, if places were numbers without an end."""
    match place:
        case ("sub", ("c", _) as last, ("i",)):
            return ("sub", last, read)
        case ("add", ("i",), ("c", by)) if isinstance(by, int):
            return ("sub", read, ("c", by))
        case _:
            return read


def stored_less(before: Program, dice: Random) -> Program:
    """The first loop stores the operand of what it stored, or nothing, and the second one computes the rest."""
    first, second = before.loops
    writes, carry, other = list[Write](), second.carry, second.other
    for write in first.writes:
        kept, rest = _cut(write.value, dice)
        for read in sorted(
            {one for one in _slots((second.carry, second.other)) if one[1] == ("c", write.stack)}, key=str
        ):
            at = inverse(write.place, read[2])
            again = replaced(rest, {("kept",): read, I: at})
            carry, other = replaced(carry, {read: again}), replaced(other, {read: again})
        writes.append(dataclasses.replace(write, value=kept))
    loops = dataclasses.replace(first, writes=tuple(writes)), dataclasses.replace(second, carry=carry, other=other)
    return dataclasses.replace(before, loops=loops)


def _cut(stored: Expression, dice: Random) -> tuple[Expression, Expression]:
    """What to store, and the value from it, `("kept",)`."""
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
    return {slot for part in expression if isinstance(part, tuple) for slot in _slots(part)}


def reshaped(given: Program, dice: Random) -> Program:
    """The loops in other pieces: `split`, `chunked`, `peeled`, or counted from zero by ones."""
    at = dice.randrange(2)
    piece = dice.choice(["split", "chunked", "chunked", "counted", "counted", "peeled", "parity"])
    loops = list(given.loops)
    turned = dice.random() < 0.5
    loops[at] = dataclasses.replace(loops[at], pieces=piece, size=dice.choice([1, 2, 3]), turned=turned)
    return dataclasses.replace(given, loops=(loops[0], loops[1]))


def nudged(given: Program, dice: Random) -> Program:
    """One number of one loop is another one."""
    at, field = dice.randrange(2), dice.choice(["start", "end", "step", "kind", "heights", "begins", "swap", "carries"])
    loops = list(given.loops)
    match field:
        case "kind":
            loops[at] = dataclasses.replace(loops[at], kind=dice.choice(INTEGERS))
        case "heights":
            return dataclasses.replace(given, heights=tuple(one + 1 for one in given.heights))
        case "begins":
            return dataclasses.replace(given, begins=given.begins + 1)
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


def check(seed: int) -> str:
    """`same text`, `rejected`, `same`, `other`, `endless` or `invalid`."""
    programs = pair(seed)
    if not all(loop.ends() for one in programs for loop in one.loops):
        return "endless"
    texts = [written(one) for one in programs]
    if texts[0] == texts[1]:
        return "same text"
    try:
        before, after = map(module_of, texts)
    except (VerifyException, Refusal):
        return "invalid"
    proof = prove(before, after)
    if not proof:
        return "rejected"
    return f"same, tier {proof.tier}" if computes_the_same(before, after, seed) else "other"


def module_of(text: str) -> ModuleOp:
    module = parse_module(text, "loops.mlir", make_context())
    module.verify()
    return module


def computes_the_same(before: ModuleOp, after: ModuleOp, seed: int) -> bool:
    runs = Pair.of(before, after)
    shapes = [argument.type.get_shape() for argument in runs.before.function.body.block.args]  # type: ignore
    for draw in range(2):
        numbers = np.random.default_rng(2 * seed + draw)
        arrays = [numbers.normal(size=shape).astype(np.float32) for shape in shapes]
        if draw:
            arrays[0].flat[:3] = [-0.0, np.inf, np.nan]
        if not runs.compare(arrays).equal:
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many pairs (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args()
    verdicts = Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        verdict = check(seed)
        verdicts[verdict] += 1
        if verdict == "other":
            print(f"seed {seed}: proved equal, and is not", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
