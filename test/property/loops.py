"""Check the proof on rewritten loops with random edits: an edit that is proved equal computes the same.

    python -m recompute.test.property.loops --count 6000 --seed 0

The script prints how many edits were rejected, and that each accepted one gave equal bits on two inputs. The exit
status is 1 if an accepted edit computes different results.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from recompute.dialects.constants.dense import DenseAttr, to_numpy
from recompute.dialects.context import make_context
from recompute.dialects.stablehlo.checks import shape_of
from recompute.dialects.stablehlo.control import WhileOp
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import function_named
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import Loops
from recompute.proof.prove import prove
from recompute.search.local_choices.recompute_loops import recompute_loops
from recompute.support.diagnostics import Refusal
from recompute.support.operations import every_operation
from recompute.test.property.loop_programs import lowered_steps
from recompute.transforms.inline import inline

Edit = Callable[[ModuleOp, random.Random], bool]
UNARY = ("stablehlo.sine", "stablehlo.cosine", "stablehlo.negate", "stablehlo.exponential")
BINARY = ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply")


WAYS: tuple[tuple[int, Loops], ...] = ((4, True), (24, "periodic(4)"), (24, "periodic(5)"))
"""How many layers, and what is asked of their loops."""


@cache
def programs() -> dict[str, tuple[ModuleOp, ModuleOp]]:
    """Return each step inlined, and the same step with its loops cut and in chunks."""
    result = dict[str, tuple[ModuleOp, ModuleOp]]()
    for layers, loops in WAYS:
        for name, text in lowered_steps(layers).items():
            before = parse_module(text, name, make_context())
            inline(before)
            after = before.clone()
            rolled = recompute_loops(after, loops=loops)
            assert rolled.copies and (
                loops is True or any("saves its carries" in str(remark) for remark in rolled.remarks)
            )
            result[f"{name}, {loops}"] = before, after
    return result


def loops_of(module: ModuleOp) -> list[WhileOp]:
    return [op for op in every_operation(module) if isinstance(op, WhileOp)]


def bodies(module: ModuleOp) -> list[Block]:
    return [region.block for loop in loops_of(module) for region in loop.regions]


def inner_operation(module: ModuleOp, dice: random.Random) -> Operation:
    return dice.choice([op for block in bodies(module) for op in block.ops])


def visible(op: Operation) -> list[SSAValue]:
    """Return the values that the operation could read: those that precede it in the blocks around it."""
    result, current = list[SSAValue](), op
    while (block := current.parent) is not None:
        result.extend(block.args)
        for other in block.ops:
            if other is current:
                break
            result.extend(other.results)
        holder = block.parent_op()
        if holder is None:
            break
        current = holder
    return result


def another_operand(module: ModuleOp, dice: random.Random) -> bool:
    """Replace an operand by another value of its type."""
    op = inner_operation(module, dice)
    if not op.operands:
        return False
    index = dice.randrange(len(op.operands))
    others = [
        value for value in visible(op) if value.type == op.operands[index].type and value is not op.operands[index]
    ]
    if not others:
        return False
    op.operands[index] = dice.choice(others)
    return True


def swapped_operands(module: ModuleOp, dice: random.Random) -> bool:
    op = inner_operation(module, dice)
    pairs = _alike([value.type for value in op.operands])
    return bool(pairs) and _swap(op, *dice.choice(pairs))


def swapped_yields(module: ModuleOp, dice: random.Random) -> bool:
    last = dice.choice(bodies(module)).last_op
    assert last is not None
    pairs = _alike([value.type for value in last.operands])
    return bool(pairs) and _swap(last, *dice.choice(pairs))


def swapped_starts(module: ModuleOp, dice: random.Random) -> bool:
    loop = dice.choice(loops_of(module))
    pairs = _alike([value.type for value in loop.operands])
    return bool(pairs) and _swap(loop, *dice.choice(pairs))


def _alike(types: Sequence[Any]) -> list[tuple[int, int]]:
    return [(i, j) for j, b in enumerate(types) for i, a in enumerate(types[:j]) if a == b]


def _swap(op: Operation, i: int, j: int) -> bool:
    if op.operands[i] is op.operands[j]:
        return False
    op.operands[i], op.operands[j] = op.operands[j], op.operands[i]
    return True


def another_number(module: ModuleOp, dice: random.Random) -> bool:
    """Change a constant in a loop, or an initial value of one, by one or negate it."""
    constants = [op for op in every_operation(module) if isinstance(op, ConstantOp) and _is_small(op)]
    op = dice.choice(constants)
    assert isinstance(op.value, DenseAttr)
    array, type_ = to_numpy(op.value), op.value.type
    changed = _near(array, dice)
    if np.array_equal(changed, array):
        return False
    op.properties["value"] = DenseAttr.from_numpy(changed.astype(array.dtype), type_.element_type)
    return True


def _near(array: Any, dice: random.Random) -> Any:
    if array.dtype == bool:
        return ~array
    return array + dice.choice([-1, 1]) if dice.random() < 0.8 else -array


def _is_small(op: ConstantOp) -> bool:
    return shape_of(op.output) == ()


def another_kind(module: ModuleOp, dice: random.Random) -> bool:
    """Replace an operation by another one with the same types."""
    op = inner_operation(module, dice)
    kinds = next((kinds for kinds in (UNARY, BINARY) if op.name in kinds), None)
    if kinds is None:
        return False
    name = dice.choice([kind for kind in kinds if kind != op.name])
    others = [operation for operation in every_operation(module) if operation.name == name]
    if not others:
        return False
    new = type(others[0]).create(operands=list(op.operands), result_types=[result.type for result in op.results])
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()
    return True


def another_slice(module: ModuleOp, dice: random.Random) -> bool:
    """Read or write a slice in another stack or at another index."""
    names = ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")
    op = dice.choice([op for block in bodies(module) for op in block.ops if op.name in names])
    index = dice.choice([0, 1 if op.name == names[0] else 2])
    others = [
        value for value in visible(op) if value.type == op.operands[index].type and value is not op.operands[index]
    ]
    if not others:
        return False
    op.operands[index] = dice.choice(others)
    return True


EDITS: tuple[Edit, ...] = (
    another_operand,
    another_operand,
    swapped_operands,
    swapped_yields,
    swapped_starts,
    another_number,
    another_kind,
    another_slice,
    another_slice,
)


def check(seed: int) -> str:
    """Edit one of the programs, and return `rejected`, `same`, `other` or `invalid`."""
    dice = random.Random(seed)
    before, after = dice.choice(list(programs().values()))
    edited, edit = after.clone(), dice.choice(EDITS)
    if not edit(edited, dice):
        return "invalid"
    try:
        edited.verify()
    except VerifyException:
        return "invalid"
    if not prove(before, edited):
        return "rejected"
    return "same" if computes_the_same(before, edited, seed) else "other"


def computes_the_same(before: ModuleOp, after: ModuleOp, seed: int) -> bool:
    for draw in range(2):
        try:
            if not compare(before, after, inputs_of(before, 2 * seed + draw)).equal:
                return False
        except Refusal:
            return False
    return True


def inputs_of(module: ModuleOp, seed: int) -> list[Any]:
    """Return random numbers around zero for every argument, which are all tensors of f32."""
    numbers = np.random.default_rng(seed)
    shapes = [shape_of(argument) for argument in function_named(module).body.block.args]
    return [numbers.normal(size=shape).astype(np.float32) for shape in shapes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many edits (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    given = parser.parse_args()
    verdicts = Counter[str]()
    for seed in range(given.seed, given.seed + given.count):
        verdict = check(seed)
        verdicts[verdict] += 1
        if verdict == "other":
            print(f"seed {seed}: proved equal, and is not")
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
