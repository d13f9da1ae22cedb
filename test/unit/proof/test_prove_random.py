"""Soundness of the proof on random edits of random programs, judged by running both.

Values are numbers modulo a large prime. Every operation is a polynomial of its operands that depends on its name and
attributes, a loop runs its body three times, and an effect returns a number that stands for all effects so far. Two
programs that differ in any part that matters give different numbers, but for a chance of about 2^-60.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, f32, i64
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from recompute.analysis.verify.dominance import verify_dominance
from recompute.proof.prove import prove
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of

pytestmark = pytest.mark.slow

PRIME = 2**61 - 1
PROGRAMS, EDITED = 60, 10
TYPE = TensorType(f32, [4])
# name -> operands, results
KINDS = {
    "stablehlo.tanh": (1, 1),
    "stablehlo.sine": (1, 1),
    "stablehlo.add": (2, 1),
    "stablehlo.subtract": (2, 1),
    "stablehlo.rng_bit_generator": (1, 2),
    "stablehlo.optimization_barrier": (2, 2),
    "stablehlo.custom_call": (1, 1),
    "stablehlo.while": (2, 2),
    "func.call": (1, 1),
}
CONTEXT = Context(allow_unregistered=True)
Log = tuple[object, ...]


def test_proved_programs_compute_equal_results() -> None:
    verdicts = [check(seed) for seed in range(PROGRAMS * EDITED)]
    # Both verdicts are common, so that neither half of the statement is empty.
    assert verdicts.count(True) > len(verdicts) // 10
    assert verdicts.count(False) > len(verdicts) // 10


def check(seed: int) -> bool:
    """Return whether an edited program is proved equal to the original, and assert that then both give the same
    numbers."""
    choices = random.Random(seed)
    before = random_program(random.Random(seed // EDITED))
    after = before.clone()
    for _ in range(choices.randint(1, 3)):
        after = edited(after, choices)
    proved = prove(before, after).proved
    if proved:
        assert results_of(before) == results_of(after), f"seed {seed}:\n{before}\n{after}"
    return proved


# Running


@dataclass
class Run:
    """One run of a program, with a digest of the effects so far."""

    functions: dict[str, FuncOp]
    log: list[Log] = field(default_factory=list[Log])

    def block(self, block: Block, arguments: Sequence[int], around: dict[SSAValue, int]) -> list[int]:
        values = around | dict(zip(block.args, arguments, strict=True))
        *body, last = block.ops
        for op in body:
            values.update(zip(op.results, self.operation(op, values), strict=True))
        return [values[operand] for operand in last.operands]

    def operation(self, op: Operation, values: dict[SSAValue, int]) -> list[int]:
        operands = [values[operand] for operand in op.operands]
        what = name_of(op), str(op.attributes.get("n"))
        match what[0]:
            case "stablehlo.optimization_barrier":
                return operands
            case "func.call":
                return self.block(self.functions["helper"].body.block, operands, {})
            case "stablehlo.while":
                for _ in range(3):
                    operands = self.block(op.regions[0].block, operands, values)
                return operands
            case "stablehlo.custom_call":
                self.log.append((what, *operands))
                return [digest(*self.log)]
            case _:
                return [polynomial(operands, *what, index) for index in range(len(op.results))]


def results_of(module: ModuleOp) -> tuple[list[int], list[Log]]:
    run = Run(functions(module))
    return run.block(run.functions["main"].body.block, [digest("x"), digest("y")], {}), run.log


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def digest(*parts: object) -> int:
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:8], "big") % PRIME


def polynomial(operands: Sequence[int], *what: object) -> int:
    """Return a polynomial of the operands, with a separate coefficient for each, determined by `what`."""
    result = digest(*what)
    for index, operand in enumerate(operands):
        result = (result * (operand + digest(index, *what)) + digest("constant", index, *what)) % PRIME
    return result


# Writing programs


def random_program(choices: random.Random) -> ModuleOp:
    helper, main = (FuncOp(name, ([TYPE] * n, [TYPE])) for name, n in (("helper", 1), ("main", 2)))
    helper.properties["sym_visibility"] = FuncOp("_", ([], []), visibility="private").properties["sym_visibility"]
    kinds = [kind for kind in KINDS if kind != "func.call"]
    for function, allowed, length in ((helper, kinds, 3), (main, list(KINDS), 14)):
        block = function.body.block
        visible = fill(block, list(block.args), length, allowed, choices)
        block.add_op(ReturnOp(visible[-1]))
    return ModuleOp([main, helper])


def fill(
    block: Block, visible: list[SSAValue], length: int, kinds: Sequence[str], choices: random.Random, depth: int = 0
) -> list[SSAValue]:
    """Add random operations to the block, and return the values visible at its end."""
    for _ in range(length):
        name = choices.choice([kind for kind in kinds if depth < 2 or kind != "stablehlo.while"])
        operands = [choices.choice(visible[-6:]) for _ in range(KINDS[name][0])]
        regions: list[Region] = []
        if name == "stablehlo.while":
            body = Block(arg_types=[TYPE, TYPE])
            inner = fill(body, [*visible, *body.args], 3, kinds, choices, depth + 1)
            body.add_op(operation("stablehlo.return", [choices.choice(inner[-4:]) for _ in range(2)], 0))
            regions = [Region(body)]
        if name == "func.call":
            op: Operation = CallOp("helper", operands, [TYPE])
        else:
            attributes = {"n": IntegerAttr(choices.randrange(2), i64)}
            barrier = name == "stablehlo.optimization_barrier"
            op = operation(name, operands, KINDS[name][1], {} if barrier else attributes, regions)
        block.add_op(op)
        visible = [*visible, *op.results]
    return visible


def operation(
    name: str,
    operands: Sequence[SSAValue],
    results: int,
    attributes: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
) -> Operation:
    kind = CONTEXT.get_op(name)
    return kind.create(
        operands=operands, result_types=[TYPE] * results, attributes=dict(attributes or {}), regions=regions
    )


# Editing programs


def edited(module: ModuleOp, choices: random.Random) -> ModuleOp:
    """Return the module after one random edit, or unchanged if the edit would break dominance."""
    after = module.clone()
    ops = [op for op in after.walk() if op.operands]
    choices.choice(EDITS)(choices.choice(ops), choices)
    try:
        verify_dominance(after)
    except Refusal:
        return module
    return after


def swap_operands(op: Operation, choices: random.Random) -> None:
    op.operands = choices.sample(list(op.operands), len(op.operands))


def read_another(op: Operation, choices: random.Random) -> None:
    block = op.parent
    assert block is not None
    values = [*block.args, *(result for other in block.ops for result in other.results)]
    op.operands[choices.randrange(len(op.operands))] = choices.choice(values)


def change_attribute(op: Operation, choices: random.Random) -> None:
    if "n" in op.attributes:
        op.attributes["n"] = IntegerAttr(choices.randrange(2), i64)


def clone_for_some_readers(op: Operation, choices: random.Random) -> None:
    if not op.results:
        return
    copy = op.clone()
    Rewriter.insert_op(copy, InsertPoint.after(op))
    for old, new in zip(op.results, copy.results, strict=True):
        for use in list(old.uses):
            if choices.random() < 0.5:
                use.operation.operands[use.index] = new


def put_behind_a_barrier(op: Operation, choices: random.Random) -> None:
    barrier = operation("stablehlo.optimization_barrier", op.operands, len(op.operands))
    Rewriter.insert_op(barrier, InsertPoint.before(op))
    order = list(range(len(op.operands)))
    if choices.random() < 0.2:
        choices.shuffle(order)
    op.operands = [barrier.results[index] for index in order]


def move(op: Operation, choices: random.Random) -> None:
    block = op.parent
    assert block is not None
    if op.results:
        target = choices.choice([other for other in block.ops if other is not op])
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(target))


def erase_if_unread(op: Operation, choices: random.Random) -> None:
    if op.results and not any(list(result.uses) for result in op.results):
        op.detach()
        op.erase()


EDITS: tuple[Callable[[Operation, random.Random], None], ...] = (
    swap_operands,
    read_another,
    change_attribute,
    clone_for_some_readers,
    put_behind_a_barrier,
    move,
    erase_if_unread,
)
