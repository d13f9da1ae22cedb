"""recompute: the whole way, from a training step as a framework lowers it to the same step in less memory.

take-marks -> inline (functions, gradient regions, segments) -> mark (with the phases) -> clone -> shard-kept -> cse
-> verify -> lower -> stagger -> calls come back (`transforms/calls`)
A step with gradient regions comes back with gradient regions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..dialects.context import RecomputeContext, tell
from ..options.recompute_options import RecomputeOptions
from ..planning.objective import ATTEMPTS
from ..planning.plan_file import to_json
from ..rules.costs.cost import FLOPS
from ..search.budget.limit import asked_budget, demand_target
from ..search.carry_out import read_plan
from ..search.emit import replace_content
from ..search.recomputation import Recomputation
from ..search.recompute import recompute, recomputed_within
from ..support.diagnostics import Refusal
from ..support.timing import part
from .mark import MarkPass
from .verify import verify_input


@dataclass(frozen=True)
class RecomputePass(MarkPass):
    """Recompute segments of a training step: inline, mark, clone, clean up, verify, lower.

    What is recomputed is said as in recompute-mark.

    copies: at most so many copies of one operation, as in recompute-clone.
    target: `stablehlo` or `none`, as in recompute-lower.
    stagger: hold the forward pass back too, as in recompute-stagger.
    calls: functions in which nothing was changed are called again, and so are whole copies, but with the target none
    where that takes more memory; else all stays inlined.
    plan: a file that an earlier run wrote (`recompute-opt --emit-plan`), or somebody else; it replaces the policy.
    budget: `8GiB` of the device, `"50%"` of the step's temporaries, or `min`, at the least extra work; else an error.
    memory_model: what the budget counts, `order` (program order) or `xla`; as the target has it if nothing is said.
    strict: a step that stays as it is is an error.
    attempts: so many ways to cut and copy a step are tried on paper; the one that needs least is carried out.
    loops: what a loop stacks up for a later one is computed again there, as in recompute-loops; `"periodic(8)"` too.
    cost: what planners keep low: `flops`, `bytes`, `roofline`, `"roofline(h100)"`, or a file of costs; remarks say it.
    offload: `marked` moves what is marked `offload` to the host; with a budget `auto`, or `"25GB/s"`, chooses more.
    """

    name = "recompute"

    copies: int = 2
    target: str = "stablehlo"
    stagger: bool = True
    calls: bool = True
    plan: str = ""
    budget: str | int | float | None = None
    memory_model: str = ""
    strict: bool = False
    attempts: int = ATTEMPTS
    loops: bool | str = True
    cost: str = FLOPS
    offload: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        demand_target(op, self.target)
        done = self._done(op)
        if self.strict and not done.copies:
            raise Refusal(op, f"{done.remarks[-1].reason} (strict)")
        tell(ctx, done.remarks)
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(done.plans))

    def _done(self, module: ModuleOp) -> Recomputation:
        options = RecomputeOptions.of_pass(self)
        if options.budget is None:
            plan = read_plan(module, self.plan, options.selection) if self.plan else None
            return recompute(module, replace(options, plan=plan))
        budget = asked_budget(module, options.budget, options.memory_model, options.target, self.plan)
        with part("verify"):
            verify_input(module)
        found = recomputed_within(module, budget, options)
        if found.module is not None:
            replace_content(module, found.module)
        return found.outcome
