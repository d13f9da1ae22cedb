"""Move the branches of a copied conditional into the gradient that reads them.

    %r:2 = case %c { loop; return %y, %s } {copy}
    %g   = case %c { return f(%r#1) }              ->      %g = case %c { loop {copy}; return f(%s) }

The residuals then stay inside the branch, where the compiler orders and fuses their operations with their readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.marks import is_copy
from ...dialects.names import Names
from ...dialects.stablehlo.branches import CaseOp, IfOp
from ...support.operations import every_operation, terminator_of


def merge_copied_branches(module: ModuleOp) -> int:
    """Move the branches of each copied conditional into its gradient if nothing else reads its results. Return the
    number of moved conditionals."""
    # From the last to the first: a copy may be the predicate or an operand of a later one.
    copies = [op for op in reversed(every_operation(module)) if isinstance(op, CaseOp | IfOp) and is_copy(op)]
    merged = 0
    for copied in copies:
        if (gradient := _only_reader(copied)) is not None:
            _merge(copied, gradient)
            merged += 1
    return merged


def _only_reader(copied: Operation) -> Operation | None:
    """Return the conditional with the same predicate if only operations in its branches read the results; otherwise
    None."""
    block = copied.parent
    assert block is not None, "a conditional is in a block"
    readers = {use.operation for result in copied.results for use in result.uses}
    around = {block.find_ancestor_op_in_block(reader) for reader in readers}
    if len(around) != 1:
        return None
    (gradient,) = around
    if gradient is None or gradient in readers or type(gradient) is not type(copied):
        return None
    has_same_predicate = gradient.operands[0] is copied.operands[0] and len(gradient.regions) == len(copied.regions)
    return gradient if has_same_predicate and all(map(_is_movable, _pairs(copied, gradient))) else None


def _pairs(copied: Operation, gradient: Operation) -> Sequence[tuple[Block, Block]]:
    return [(own.block, other.block) for own, other in zip(copied.regions, gradient.regions, strict=True)]


def _is_movable(pair: tuple[Block, Block]) -> bool:
    return all(block.last_op is not None and not block.args for block in pair)


def _merge(copied: Operation, gradient: Operation) -> None:
    marks = {name: copied.attributes[name] for name in (Names.COPY, Names.SEGMENT) if name in copied.attributes}
    for branch, target in _pairs(copied, gradient):
        last, first = terminator_of(branch), target.first_op
        assert first is not None, "the block has a terminator"
        yielded = tuple(last.operands)
        for op in [op for op in branch.ops if op is not last]:
            op.detach()
            op.attributes |= marks
            Rewriter.insert_op(op, InsertPoint.before(first))
        for result, value in zip(copied.results, yielded, strict=True):
            _replace_in(target, result, value)
    Rewriter.erase_op(copied)


def _replace_in(block: Block, old: SSAValue, new: SSAValue) -> None:
    old.replace_uses_with_if(new, lambda use: block.find_ancestor_op_in_block(use.operation) is not None)
