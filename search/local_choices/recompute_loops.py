"""Choose the cuts and the saved carries of loops under a loop schedule, and rewrite the loops accordingly.

The schedule determines what is minimized: the bytes of the stacks, or the work within a limit on these bytes. With an
interval or a number of slots, the pairs of loops that were not cut save their carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from ...analysis.copies.loop_chunks import SavedCarries
from ...analysis.copies.loop_cuts import LoopCut, MayRepeat
from ...analysis.request.in_loops import repetition_predicate
from ...analysis.step.stacks import LoopPair
from ...options.loop_schedule import Loops, LoopSchedule, schedule_of
from ...options.selection import AUTO, Selection
from ...transforms.rolled.rewrite_loops import NO_LOOP_RECOMPUTATION, LoopRecomputation, rewrite_loops
from ...transforms.rolled.stack_constraints import drop_stack_constraints
from .carries_to_save import saved_carries_of
from .loop_cut_curve import corner_within
from .min_loop_cut import loop_cut, loops_recomputed_whole


@dataclass(frozen=True)
class ScheduledChooser:
    """Chooses how the loops of a function are rewritten, by a loop schedule.

    Attributes:
        selection: The selection of operations that may be recomputed.
        schedule: The loop schedule.
        may_repeat: A predicate that tells whether an operation may be recomputed.
        price: The price of a byte in FLOPs, as in `loop_cut`.
    """

    selection: Selection
    schedule: LoopSchedule
    may_repeat: MayRepeat
    price: Fraction | None

    @property
    def saves_carries(self) -> bool:
        return self.schedule.kind != "cut"

    def cut_of(self, pair: LoopPair) -> LoopCut:
        return loop_cut(pair, self.may_repeat, self.price)

    def recomputed_whole(self, pairs: Iterable[LoopPair]) -> frozenset[Operation]:
        return loops_recomputed_whole(pairs, self.cut_of, self.selection)

    def saved_carries_of(self, pair: LoopPair, block: Block) -> SavedCarries | None:
        return saved_carries_of(pair, block, self.schedule, self.may_repeat)


def recompute_loops(
    module: ModuleOp, selection: Selection = AUTO, loops: Loops | LoopSchedule = True
) -> LoopRecomputation:
    """Cut every pair of loops with shared stacks, outer loops before inner ones.

    Args:
        module: The module, which is changed in place.
        selection: The selection of operations that may be recomputed.
        loops: The loop schedule, or `False` to leave loops unchanged. With "periodic(8)" or "periodic(auto)", pairs
            that were not cut save their carries at intervals of iterations.

    Raises:
        UnknownPolicy: The selection names a policy that does not exist.
        BadSchedule: `loops` is malformed.
        Refusal: A function has several blocks.
    """
    if (schedule := schedule_of(loops)).kind == "none":
        return NO_LOOP_RECOMPUTATION
    drop_stack_constraints(module)
    may_repeat = repetition_predicate(module, selection)

    def chooser_of(block: Block) -> ScheduledChooser:
        corner = corner_within(block, may_repeat, schedule)
        return ScheduledChooser(selection, schedule, may_repeat, corner.price if corner else None)

    return rewrite_loops(module, chooser_of, selection.outputs)
