"""Append carries to loops, and remove dead carries.

Each function records in `replaced` the values that replace the results of erased loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.order import read_values
from ...dialects.dead_code import drop_dead_code, is_erasable
from ...dialects.stablehlo.control import WhileOp
from ...rules.effects import why_impure
from ...support.operations import terminator_of

Replaced = dict[SSAValue, SSAValue]
"""Maps results of erased loops to their replacements."""


def append_carries(loop: WhileOp, initial: Sequence[SSAValue], replaced: Replaced) -> WhileOp:
    """Append carries with the given initial values. The body yields them unchanged. Return the new loop."""
    if not initial:
        return loop
    for region in (loop.cond, loop.body):
        for value in initial:
            argument = region.block.insert_arg(value.type, len(region.block.args))
            argument.name_hint = value.name_hint
    last = terminator_of(loop.body.block)
    last.operands = [*last.operands, *loop.body.block.args[len(loop.operands) :]]
    return _rebuild(loop, [*loop.operands, *initial], range(len(loop.operands)), replaced)


def drop_dead_carries_of(loop: WhileOp, replaced: Replaced) -> None:
    """Remove the dead carries of a loop and of its nested loops.

    A carry is dead if no condition, used result or effect depends on it.
    """
    carried = -1
    # Removing a carry of a nested loop may remove the last use of a carry of the loop itself.
    while carried != (carried := _carry_count(loop)):
        loop = _remove_dead_carries(loop, replaced)
        drop_dead_carries(loop.body.block, replaced)


def drop_dead_carries(block: Block, replaced: Replaced) -> None:
    """Remove the dead carries of all loops in the block and in its branches.

    Loops are processed from the last to the first, because later loops may read results of earlier ones.
    """
    for loop in reversed(list(_loops_in(block))):
        drop_dead_carries_of(loop, replaced)


def _carry_count(loop: WhileOp) -> int:
    return len(loop.operands) + sum([_carry_count(inner) for inner in _loops_in(loop.body.block)])


def _loops_in(block: Block) -> Iterator[WhileOp]:
    """Yield the loops of the block and of its branches, except for loops nested in loops."""
    for op in block.ops:
        if isinstance(op, WhileOp):
            yield op
        else:
            for region in op.regions:
                for inner in region.blocks:
                    yield from _loops_in(inner)


def _remove_dead_carries(loop: WhileOp, replaced: Replaced) -> WhileOp:
    needed = _needed_carries(loop)
    carries = [index for index in range(len(loop.operands)) if index in needed]
    if len(carries) == len(loop.operands):
        return loop
    last = terminator_of(loop.body.block)
    last.operands = [last.operands[index] for index in carries]
    drop_dead_code(loop.body)
    for region in (loop.cond, loop.body):
        for argument in reversed(region.block.args):
            if argument.index not in needed:
                region.block.erase_arg(argument)
    return _rebuild(loop, [loop.operands[index] for index in carries], carries, replaced)


def _rebuild(loop: WhileOp, operands: Sequence[SSAValue], carries: Sequence[int], replaced: Replaced) -> WhileOp:
    """Rebuild the loop with its regions and new operands.

    The results of the new loop replace the results of the old loop at the indices in `carries`.
    """
    cond, body = [loop.detach_region(region) for region in list(loop.regions)]
    new = WhileOp(operands, cond, body)
    new.attributes, new.location = dict(loop.attributes), loop.location
    new.properties.update(loop.properties)
    Rewriter.insert_op(new, InsertPoint.before(loop))
    for index, result in zip(carries, new.results, strict=False):
        result.name_hint = loop.results[index].name_hint
        loop.results[index].replace_all_uses_with(result)
        replaced[loop.results[index]] = result
    Rewriter.erase_op(loop)
    return new


def _needed_carries(loop: WhileOp) -> set[int]:
    """Return the indices of the needed carries.

    A carry is needed if the condition reads it, if its result is read, or if another needed carry or an operation that
    must not be erased depends on it.
    """
    block = loop.body.block
    last = terminator_of(loop.body.block)
    needed = {argument.index for argument in loop.cond.block.args if any(argument.uses)}
    needed |= {result.index for result in loop.results if any(result.uses)}
    dependencies: dict[SSAValue, frozenset[int]] = {argument: frozenset({argument.index}) for argument in block.args}
    for op in block.ops:
        read = frozenset[int]().union(*(dependencies.get(value, frozenset()) for value in read_values(op)))
        dependencies.update(dict.fromkeys(op.results, read))
        if op is not last and (why_impure(op) is not None or not is_erasable(op)):
            needed |= read
    pending = list(needed)
    while pending:
        more = dependencies.get(last.operands[pending.pop()], frozenset[int]()) - needed
        needed |= more
        pending.extend(more)
    return needed
