"""recompute-loops: store fewer stacks in a loop, and recompute the other stacked values in the later loop that reads
them.

    %r:3 = stablehlo.while … do { …; %s1 = dynamic_update_slice %s, sin(tanh(%h)), %i }     forward pass of a scan
    …    = stablehlo.while … do { %x = dynamic_slice %r#2, 7 - %i; … }                      backward pass

becomes, for example, a first loop that stacks only `%h` and a second loop that recomputes `sin(tanh(%h))`. This rewrite
is a *cut*: it divides the values of an iteration into stored and recomputed ones. The stored stacks are the smallest
set from which the other values can be recomputed. `lax.scan` over layers has this form. The pass also cuts loops inside
loops, branches and per-device bodies. Sharding constraints on stacks are dropped if the slices already have the
required sharding (`rolled/stack_constraints.py`). Instead of stacks, a loop can save its *carries*, the values that one
iteration passes to the next, at intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ..analysis.copies.loop_chunks import Chunks, SavedCarries, Slots, saved_carries_of
from ..analysis.copies.loop_cut_curve import corner_within
from ..analysis.copies.loop_cuts import (
    CutOf,
    LoopCut,
    MayRepeat,
    loop_cut,
    loops_left_uncut,
    loops_recomputed_whole,
)
from ..analysis.explain.executed_flops import runs_of
from ..analysis.request.in_loops import repetition_predicate
from ..analysis.step.crossings import Crossings
from ..analysis.step.order import functions_of, single_block
from ..analysis.step.stacks import LoopPair
from ..dialects.dead_code import drop_dead_code
from ..options.loop_schedule import Loops, LoopSchedule, schedule_of
from ..options.pass_options import has_options
from ..options.selection import AUTO, BadSelection, Selection
from ..support.diagnostics import BadRequest, Refusal, Remark, tell
from ..support.operations import operations_in
from .per_device.split import device_steps_outlined
from .plans.apply_plan import FreeNumbers
from .rolled.apply_cut import apply_cut
from .rolled.carries import Replaced, drop_dead_carries
from .rolled.chunks import save_in_chunks
from .rolled.joined_branches import join_branches, split_branches
from .rolled.loop_remarks import (
    remark_on_cut,
    remark_on_saved_carries,
    remark_on_uncut,
    remarks_on_cuts_not_worthwhile,
    remarks_on_unrepeated,
)
from .rolled.loop_replacement import erase_loop
from .rolled.slots import save_in_slots
from .rolled.stack_constraints import drop_stack_constraints


@dataclass(frozen=True)
class LoopRecomputation:
    """The result of the pass.

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
    cutter = _Cutter(selection, schedule, repetition_predicate(module, selection), FreeNumbers.free_in(module))
    for function in functions_of(module):
        cutter.cut_function(function)
    return LoopRecomputation(cutter.copies, cutter.extra_flops, tuple(cutter.remarks), cutter.replaced)


@dataclass
class _Cutter:
    """Cuts the loops of functions, and accumulates the fields of `LoopRecomputation`."""

    selection: Selection
    schedule: LoopSchedule
    may_repeat: MayRepeat
    numbers: FreeNumbers
    copies: int = 0
    extra_flops: int = 0
    remarks: list[Remark] = field(default_factory=list[Remark])
    replaced: Replaced = field(default_factory=Replaced)

    def cut_function(self, function: FuncOp) -> None:
        block = single_block(function)
        crossings = Crossings(block, self.selection.outputs)
        corner = corner_within(block, self.may_repeat, self.schedule)
        cut_of = partial(loop_cut, may_repeat=self.may_repeat, price=corner.price if corner else None)
        self._cut_block(block, crossings, cut_of)
        if self.schedule.kind != "cut":
            drop_dead_code(function.body)
            self._save_carries(block, crossings)
        drop_dead_code(function.body)
        if self.copies:
            drop_dead_carries(block, self.replaced)

    def _cut_block(self, block: Block, crossings: Crossings, cut_of: CutOf) -> None:
        """Cut the loops of the block, then the loops of nested blocks. While nested blocks are cut, each forward branch
        is joined with its gradient branch."""
        self.remarks.extend(remark_on_uncut(op, reason) for op, reason in loops_left_uncut(block, crossings))
        pairs = partial(crossings.loop_pairs, block)
        whole = loops_recomputed_whole(pairs(), cut_of, self.selection)
        self.remarks.extend(remarks_on_cuts_not_worthwhile(pairs(), self.may_repeat, cut_of, whole))
        while (cut := _next_cut(pairs(), cut_of, whole)) is not None:
            self.remarks.extend((remark_on_cut(cut), *remarks_on_unrepeated(cut)))
            self.extra_flops += cut.extra_flops * runs_of(cut.pair.writer.op)
            self.copies += apply_cut(cut, self.numbers, self.replaced)
        joined_branches = list(join_branches(block, crossings))
        copies_before = self.copies
        for inner in reversed(_nested_blocks(operations_in(block))):
            self._cut_block(inner, crossings, cut_of)
        for joined in reversed(joined_branches):
            split_branches(joined, self.copies > copies_before, self.replaced)

    def _save_carries(self, block: Block, crossings: Crossings) -> None:
        """For each remaining loop pair, replace the stacks by saved carries if the carries need fewer bytes."""
        for saved in self._pairs_with_saved_carries(block, crossings):
            self.extra_flops += saved.extra_flops * runs_of(saved.pair.writer.op)
            if isinstance(saved, Chunks):
                self.copies += save_in_chunks(saved, self.numbers, self.replaced)
            else:
                assert isinstance(saved, Slots), "saved carries are chunks or slots"
                self.copies += save_in_slots(saved, self.numbers, self.replaced)
            erase_loop(saved.pair.reader)  # The reader comes first, since it reads results of the writer.
            erase_loop(saved.pair.writer)

    def _pairs_with_saved_carries(self, block: Block, crossings: Crossings) -> Iterator[SavedCarries]:
        """Yield the saved carries of each pair of loops whose carries need fewer bytes than its stacks, outer loops
        first.

        The caller must replace each pair before it requests the next one. Loops that the replacement creates are
        skipped.
        """
        visited, pending = set[Operation](), [block]
        while pending:
            block = pending.pop()
            unpaired = {op for op in block.ops if op not in visited}
            while (saved := self._next_pair_with_saved_carries(block, crossings, unpaired)) is not None:
                pair = saved.pair
                unpaired.discard(pair.writer.op)
                reason = saved.why_not(self.may_repeat)
                if reason is not None:
                    self.remarks.append(remark_on_uncut(pair.writer.op, reason))
                else:
                    self.remarks.append(remark_on_saved_carries(saved))
                    unpaired.discard(pair.reader.op)
                    yield saved
            pending.extend(_nested_blocks(unpaired))

    def _next_pair_with_saved_carries(
        self, block: Block, crossings: Crossings, unpaired: Collection[Operation]
    ) -> SavedCarries | None:
        pairs = (pair for pair in crossings.loop_pairs(block) if {pair.writer.op, pair.reader.op} <= set(unpaired))
        candidates = (saved_carries_of(pair, block, self.schedule) for pair in pairs)
        return next((saved for saved in candidates if saved is not None), None)


def _nested_blocks(operations: Iterable[Operation]) -> list[Block]:
    return [block for op in operations for region in op.regions for block in region.blocks]


def _next_cut(pairs: Iterable[LoopPair], cut_of: CutOf, whole: Collection[Operation]) -> LoopCut | None:
    """Return the first worthwhile cut among the loop pairs; None if there is none. A cut replaces its loops, so the
    caller lists the pairs anew after each cut.
    """
    cuts = (cut_of(pair) for pair in pairs if pair.writer.op not in whole)
    return next((cut for cut in cuts if cut.why_not is None), None)


@dataclass(frozen=True)
@has_options(Selection)
class LoopsPass(ModulePass):
    """
    loops: `"keep(50%)"`, `"keep(2GiB)"`: store at most this share or size of the stacks, with the least work.
    `"periodic(8)"`: also save the carries every 8 iterations, and rerun one chunk of iterations at a time from there.
    `"periodic(auto)"`: choose the interval that stores the fewest bytes. `"binomial(4)"`, `"binomial(1GiB)"`: save
    carries in 4 slots, or in as many slots as fit, and refill the slots while the later loop runs; no rule of the proof
    covers this schedule.
    """

    name = "recompute-loops"

    loops: bool | str = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        selection = Selection.of(self)
        if selection.segment_budgets:
            raise Refusal(op, 'segment-budgets does not apply to loops: limit their stacks with loops="keep(30%)"')
        try:
            with device_steps_outlined(op):
                rolled = recompute_loops(op, selection, self.loops)
        except BadSelection as error:
            raise BadRequest(op, str(error)) from error
        tell(ctx, rolled.remarks)
