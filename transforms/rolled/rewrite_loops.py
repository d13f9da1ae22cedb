"""Rewrite the pairs of loops that share stacks: cut them, or save some of their carries, as a `LoopChooser` determines.

The loops of a function are rewritten one pair after the other, outer loops before inner ones. A rewrite replaces its
loops, so the choice for a pair is requested only after the preceding pairs have been rewritten.
`search/local_choices/recompute_loops.py` defines the chooser.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...analysis.copies.loop_chunks import Chunks, SavedCarries, Slots
from ...analysis.copies.loop_cuts import CutOf, LoopCut, MayRepeat, loops_left_uncut
from ...analysis.explain.executed_flops import runs_of
from ...analysis.step.crossings import Crossings
from ...analysis.step.order import functions_of, single_block
from ...analysis.step.stacks import LoopPair
from ...dialects.dead_code import drop_dead_code
from ...support.operations import operations_in
from ...support.remarks import Remark
from ..plans.apply_plan import FreeNumbers
from .apply_cut import apply_cut
from .carries import Replaced, drop_dead_carries
from .chunks import save_in_chunks
from .joined_branches import join_branches, split_branches
from .loop_remarks import (
    remark_on_cut,
    remark_on_saved_carries,
    remark_on_uncut,
    remarks_on_cuts_not_worthwhile,
    remarks_on_unrepeated,
)
from .loop_replacement import erase_loop
from .slots import save_in_slots


@dataclass(frozen=True)
class LoopRecomputation:
    """The recomputation in the loops of a module.

    Attributes:
        copies: The number of copies that were inserted.
        extra_flops: The FLOPs of the copies over all iterations, including the iterations of enclosing loops.
        remarks: Remarks on loops that were cut, and on loops that were left unchanged.
        replaced: The replacement of each result of an erased loop.
    """

    copies: int
    extra_flops: int
    remarks: tuple[Remark, ...]
    replaced: Replaced = field(default_factory=Replaced)


NO_LOOP_RECOMPUTATION = LoopRecomputation(0, 0, ())


class LoopChooser(Protocol):
    """Chooses how the loops of a function are rewritten."""

    @property
    def may_repeat(self) -> MayRepeat:
        """A predicate that tells whether an operation may be recomputed."""
        ...

    @property
    def saves_carries(self) -> bool:
        """Whether loops that remain after the cuts save their carries."""
        ...

    def cut_of(self, pair: LoopPair) -> LoopCut:
        """Return the cut of a pair of loops. If the loops are not cut, the field `why_not` gives the reason."""
        ...

    def recomputed_whole(self, pairs: Iterable[LoopPair]) -> frozenset[Operation]:
        """Return the writing loops, among the pairs of a block, that are recomputed as a whole instead of being cut."""
        ...

    def saved_carries_of(self, pair: LoopPair, block: Block) -> SavedCarries | None:
        """Return the carries to save for a pair of loops of the block; None if the pair has no stacks to drop."""
        ...


def rewrite_loops(
    module: ModuleOp, chooser_of: Callable[[Block], LoopChooser], outputs: bool = False
) -> LoopRecomputation:
    """Rewrite the pairs of loops with shared stacks as chosen, outer loops before inner ones.

    Args:
        module: The module, which is changed in place.
        chooser_of: Returns the chooser for the loops of a function, given its block.
        outputs: Whether values that a forward loop also reads may be recomputed.

    Raises:
        Refusal: A function has several blocks.
    """
    rewriter = _LoopRewriter(outputs, FreeNumbers.free_in(module))
    for function in functions_of(module):
        rewriter.rewrite_function(function, chooser_of)
    return LoopRecomputation(rewriter.copies, rewriter.extra_flops, tuple(rewriter.remarks), rewriter.replaced)


@dataclass
class _LoopRewriter:
    """Rewrites the loops of functions, and accumulates the fields of `LoopRecomputation`."""

    outputs: bool
    numbers: FreeNumbers
    copies: int = 0
    extra_flops: int = 0
    remarks: list[Remark] = field(default_factory=list[Remark])
    replaced: Replaced = field(default_factory=Replaced)

    def rewrite_function(self, function: FuncOp, chooser_of: Callable[[Block], LoopChooser]) -> None:
        block = single_block(function)
        crossings = Crossings(block, self.outputs)
        chooser = chooser_of(block)
        self._cut_block(block, crossings, chooser)
        if chooser.saves_carries:
            drop_dead_code(function.body)
            self._save_carries(block, crossings, chooser)
        drop_dead_code(function.body)
        if self.copies:
            drop_dead_carries(block, self.replaced)

    def _cut_block(self, block: Block, crossings: Crossings, chooser: LoopChooser) -> None:
        """Cut the loops of the block, then the loops of nested blocks. While nested blocks are cut, each forward branch
        is joined with its gradient branch."""
        self.remarks.extend(remark_on_uncut(op, reason) for op, reason in loops_left_uncut(block, crossings))
        pairs = partial(crossings.loop_pairs, block)
        whole = chooser.recomputed_whole(pairs())
        self.remarks.extend(remarks_on_cuts_not_worthwhile(pairs(), chooser.may_repeat, chooser.cut_of, whole))
        while (cut := _next_cut(pairs(), chooser.cut_of, whole)) is not None:
            self.remarks.extend((remark_on_cut(cut), *remarks_on_unrepeated(cut)))
            self.extra_flops += cut.extra_flops * runs_of(cut.pair.writer.op)
            self.copies += apply_cut(cut, self.numbers, self.replaced)
        joined_branches = list(join_branches(block, crossings))
        copies_before = self.copies
        for inner in reversed(_nested_blocks(operations_in(block))):
            self._cut_block(inner, crossings, chooser)
        for joined in reversed(joined_branches):
            split_branches(joined, self.copies > copies_before, self.replaced)

    def _save_carries(self, block: Block, crossings: Crossings, chooser: LoopChooser) -> None:
        """Replace the stacks of the remaining loop pairs with the carries that the chooser selects."""
        for saved in self._pairs_with_saved_carries(block, crossings, chooser):
            self.extra_flops += saved.extra_flops * runs_of(saved.pair.writer.op)
            if isinstance(saved, Chunks):
                self.copies += save_in_chunks(saved, self.numbers, self.replaced)
            else:
                assert isinstance(saved, Slots), "saved carries are chunks or slots"
                self.copies += save_in_slots(saved, self.numbers, self.replaced)
            erase_loop(saved.pair.reader)  # The reader comes first, since it reads results of the writer.
            erase_loop(saved.pair.writer)

    def _pairs_with_saved_carries(
        self, block: Block, crossings: Crossings, chooser: LoopChooser
    ) -> Iterator[SavedCarries]:
        """Yield the carries to save for each pair of loops for which the chooser selects any, outer loops first.

        The caller must replace each pair before it requests the next one. Loops that the replacement creates are
        skipped.
        """
        visited, pending = set[Operation](), [block]
        while pending:
            block = pending.pop()
            unpaired = {op for op in block.ops if op not in visited}
            while (saved := _next_saved_carries(block, crossings, unpaired, chooser)) is not None:
                pair = saved.pair
                unpaired.discard(pair.writer.op)
                if saved.why_not is not None:
                    self.remarks.append(remark_on_uncut(pair.writer.op, saved.why_not))
                else:
                    self.remarks.append(remark_on_saved_carries(saved))
                    unpaired.discard(pair.reader.op)
                    yield saved
            pending.extend(_nested_blocks(unpaired))


def _next_saved_carries(
    block: Block, crossings: Crossings, unpaired: Collection[Operation], chooser: LoopChooser
) -> SavedCarries | None:
    pairs = (pair for pair in crossings.loop_pairs(block) if {pair.writer.op, pair.reader.op} <= set(unpaired))
    candidates = (chooser.saved_carries_of(pair, block) for pair in pairs)
    return next((saved for saved in candidates if saved is not None), None)


def _nested_blocks(operations: Iterable[Operation]) -> list[Block]:
    return [block for op in operations for region in op.regions for block in region.blocks]


def _next_cut(pairs: Iterable[LoopPair], cut_of: CutOf, whole: Collection[Operation]) -> LoopCut | None:
    """Return the first worthwhile cut among the loop pairs; None if there is none. A cut replaces its loops, so the
    caller lists the pairs anew after each cut.
    """
    cuts = (cut_of(pair) for pair in pairs if pair.writer.op not in whole)
    return next((cut for cut in cuts if cut.why_not is None), None)
