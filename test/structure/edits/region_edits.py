"""Edits of regions, blocks, and their arguments and terminators."""

from __future__ import annotations

from random import Random

from ..tree import Block, Operation, Program, Value
from .sites import Edits, blocks, copied, operations, pick, regions, values, visible

ENDS = """
    func.return stablehlo.return sdy.return scf.yield scf.condition linalg.yield tensor.yield recompute.yield foo.yield
    foo.end cf.br memref.alloca_scope.return
""".split()


def drop_region(program: Program, rng: Random) -> str | None:
    if (result := pick(rng, regions(program))) is None:
        return None
    op, index = result
    del op.regions[index]
    return f"region {index} of {op.name} dropped"


def add_region(program: Program, rng: Random) -> str | None:
    """Add a region: empty, with an empty block, or copied from another one."""
    if (op := pick(rng, operations(program))) is None:
        return None
    new: list[Block] = rng.choice([[], [Block()], [Block([Value("i32")])], [Block([], [Operation("foo.end")])]])
    if (result := pick(rng, regions(program))) is not None and rng.random() < 0.4:
        new = copied(result[0]).regions[result[1]]
    op.regions.insert(rng.randint(0, len(op.regions)), new)
    return f"a region more for {op.name}"


def swap_regions(program: Program, rng: Random) -> str | None:
    result = regions(program)
    if len(result) < 2:
        return None
    (first, i), (other, j) = rng.sample(result, 2)
    first.regions[i], other.regions[j] = other.regions[j], first.regions[i]
    return f"regions of {first.name} and {other.name} swapped"


def swap_own_regions(program: Program, rng: Random) -> str | None:
    if (op := pick(rng, [op for op in operations(program) if len(op.regions) > 1])) is None:
        return None
    op.regions.reverse()
    return f"regions of {op.name} reversed"


def empty_region(program: Program, rng: Random) -> str | None:
    """Remove all blocks of a region, all operations of its blocks, or all except the terminators."""
    if (result := pick(rng, regions(program))) is None:
        return None
    op, index = result
    kind = rng.choice(["blocks", "operations", "all but the terminator"])
    if kind == "blocks":
        op.regions[index] = []
    for block in op.regions[index]:
        block.operations = block.operations[-1:] if kind.startswith("all") else []
    return f"{kind} of a region of {op.name} dropped"


def split_block(program: Program, rng: Random) -> str | None:
    """Split a block in two, with or without a branch."""
    if (result := pick(rng, [region for region in regions(program) if region[0].regions[region[1]]])) is None:
        return None
    op, index = result
    block = rng.choice(op.regions[index])
    at = rng.randint(0, len(block.operations))
    second = Block([], block.operations[at:])
    block.operations = block.operations[:at]
    if rng.random() < 0.7:
        block.operations.append(Operation(rng.choice(["cf.br", "foo.br"]), successors=[second]))
    op.regions[index].insert(op.regions[index].index(block) + 1, second)
    return f"a block of {op.name} split"


def swap_blocks(program: Program, rng: Random) -> str | None:
    matches = [region for region in regions(program) if len(region[0].regions[region[1]]) > 1]
    if (pair := pick(rng, matches)) is None:
        return None
    op, index = pair
    rng.shuffle(op.regions[index])
    return f"blocks of {op.name} in another order"


def add_argument(program: Program, rng: Random) -> str | None:
    if (block := pick(rng, blocks(program))) is None:
        return None
    types = [value.type for value in values(program)] or ["i32"]
    block.arguments.insert(rng.randint(0, len(block.arguments)), Value(rng.choice(types)))
    return "an argument more for a block"


def drop_argument(program: Program, rng: Random) -> str | None:
    if (block := pick(rng, [block for block in blocks(program) if block.arguments])) is None:
        return None
    gone = block.arguments.pop(rng.randrange(len(block.arguments)))
    return f"an argument of type {gone.type} of a block dropped"


def swap_arguments(program: Program, rng: Random) -> str | None:
    if (block := pick(rng, [block for block in blocks(program) if len(block.arguments) > 1])) is None:
        return None
    i, j = rng.sample(range(len(block.arguments)), 2)
    block.arguments[i], block.arguments[j] = block.arguments[j], block.arguments[i]
    return f"arguments {i} and {j} of a block swapped"


def _last(program: Program, rng: Random) -> tuple[Block, Operation] | None:
    block = pick(rng, [block for block in blocks(program) if block is not program.body and block.operations])
    return None if block is None else (block, block.operations[-1])


def drop_end(program: Program, rng: Random) -> str | None:
    if (result := _last(program, rng)) is None:
        return None
    block, last = result
    block.operations.pop()
    return f"{last.name} at the end of a block dropped"


def rename_end(program: Program, rng: Random) -> str | None:
    if (result := _last(program, rng)) is None:
        return None
    before, result[1].name = result[1].name, rng.choice(ENDS)
    return f"{before} at the end of a block is now {result[1].name}"


def add_end(program: Program, rng: Random) -> str | None:
    """Add a terminator to a block that may already have one."""
    if (result := _last(program, rng)) is None:
        return None
    block, last = result
    seen = [*visible(program, last), *last.results]
    read = rng.sample(seen, min(len(seen), rng.randint(0, 2)))
    block.operations.append(Operation(rng.choice([*ENDS, last.name]), operands=read))
    return f"{block.operations[-1].name} added after {last.name}"


def end_attribute(program: Program, rng: Random) -> str | None:
    if (result := _last(program, rng)) is None:
        return None
    last = result[1]
    each = rng.choice([last.attributes, last.attributes, last.properties])
    each[rng.choice(["mhlo.sharding", "foo.end", "recompute.end"])] = rng.choice(['"a"', '"b"', "1 : i32"])
    return f"an attribute more for {last.name} at the end of a block"


def end_operands(program: Program, rng: Random) -> str | None:
    if (result := _last(program, rng)) is None:
        return None
    _, last = result
    if len(last.operands) > 1 and rng.random() < 0.5:
        rng.shuffle(last.operands)
        return f"operands of {last.name} in another order"
    seen = visible(program, last)
    if not (seen and last.operands):
        return None
    index = rng.randrange(len(last.operands))
    alike = [value for value in seen if value.type == last.operands[index].type]
    last.operands[index] = rng.choice(alike or seen)
    return f"operand {index} of {last.name} at the end of a block is another value"


def continue_after_end(program: Program, rng: Random) -> str | None:
    """Add an operation after the terminator."""
    if (result := _last(program, rng)) is None:
        return None
    block, last = result
    others = [op for op in operations(program) if op.name != "func.func"]
    block.operations.append(copied(rng.choice(others)))
    return f"{block.operations[-1].name} behind {last.name}"


EDITS: Edits = {
    "region drop": drop_region,
    "region add": add_region,
    "region swap": swap_regions,
    "region reverse": swap_own_regions,
    "region empty": empty_region,
    "block split": split_block,
    "block order": swap_blocks,
    "argument add": add_argument,
    "argument drop": drop_argument,
    "argument swap": swap_arguments,
    "terminator drop": drop_end,
    "terminator rename": rename_end,
    "terminator add": add_end,
    "terminator attribute": end_attribute,
    "terminator operands": end_operands,
    "terminator behind": continue_after_end,
}
