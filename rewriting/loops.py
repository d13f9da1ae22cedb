"""recompute-loops: store fewer stacks in a loop, and recompute the remaining stacked values in the later loop that
reads them.

    %r:3 = stablehlo.while … do { …; %s1 = dynamic_update_slice %s, sin(tanh(%h)), %i }     forward pass of a scan
    …    = stablehlo.while … do { %x = dynamic_slice %r#2, 7 - %i; … }                      backward pass

becomes, for example, a first loop that stacks only `%h` and a second loop that recomputes `sin(tanh(%h))`. This rewrite
is a *cut*: it divides the values of an iteration into stored and recomputed ones. The stored stacks are the smallest
set from which the remaining stacked values can be recomputed. `lax.scan` over layers has this form. The pass also cuts
loops inside loops, branches and per-device bodies. Sharding constraints on stacks are dropped if the slices already
have the required sharding (`transforms/rolled/stack_constraints.py`). Instead of stacks, a loop can save its *carries*,
the values that one iteration passes to the next, at intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..options.pass_options import has_options
from ..options.selection import BadSelection, Selection
from ..search.local_choices.recompute_loops import recompute_loops
from ..support.diagnostics import BadRequest, Refusal
from ..support.remarks import tell
from ..transforms.per_device.split import device_steps_outlined


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
