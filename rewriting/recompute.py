"""recompute: run the whole pipeline, so that a framework's training step needs less memory.

take-marks -> inline -> inline-gradient -> inline-segments -> phase -> loops -> mark -> clone -> shard-kept -> cse ->
lower -> stagger -> verify; then calls are restored (`transforms/calls`)

    %1 = stablehlo.tanh %0                 %1 = stablehlo.tanh %0
    %9 = stablehlo.multiply %ct, %1   ->   %x, %ct1 = stablehlo.optimization_barrier %0, %ct
                                           %c = stablehlo.tanh %x {recompute.copy = 1, …}
                                           %9 = stablehlo.multiply %ct1, %c

If the original step has gradient regions, the rewritten step also has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.request.checkpoints import reported_where_stated
from ..analysis.request.misplaced_marks import misplaced_marks
from ..analysis.request.unprefixed_marks import unprefixed_marks
from ..analysis.step.order import functions_of
from ..dialects.context import RecomputeContext
from ..options.memory_model import ORDER
from ..options.option_facts import EntryPoint
from ..options.pass_options import has_options
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import Selection
from ..planning.plan_file import to_json
from ..search.checked_options import options_of_pass, read_plan
from ..search.choice.unchanged_steps import demand_effect_of_rewrite
from ..support.operations import name_of
from ..support.remarks import Remark, RemarkKind, tell
from .options_without_effect import options_without_effect, without_repeated
from .rewrite import rewrite_in_place
from .summary import summary_of

XLA_DIALECTS = ("stablehlo.", "chlo.", "mhlo.")
"""The prefixes of the operations of XLA's input dialects."""


@dataclass(frozen=True)
@has_options(Selection)
@has_options(RecomputeOptions, EntryPoint.RECOMPUTE_PASS)
class RecomputePass(ModulePass):
    """
    calls: restore the calls of unchanged functions, including copies of whole calls. With `target=none`, calls are
    restored only if this does not raise the peak. If false, all calls stay inlined.
    plan: a plan file, from an earlier run (`recompute-opt --emit-plan`) or another tool, to apply without a search.
    time_limit: seconds after which the search under a budget ends with the best plan so far. Ctrl-C has the same
    effect.
    strict: report an error, instead of a remark, if a step is left unchanged, or if a marked operation must not run
    twice.
    """

    name = "recompute"

    plan: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        options = options_of_pass(op, self)
        if self.plan:
            options = replace(options, plan=read_plan(op, self.plan))
        target_remarks = _remarks_on_target(op, options)
        without_effect = (*unprefixed_marks(op), *misplaced_marks(op), *options_without_effect(op, options))
        with reported_where_stated(op):
            outcome = rewrite_in_place(op, options)
        if options.strict:
            demand_effect_of_rewrite(op, outcome.copies, outcome.remarks)
        tell(
            ctx,
            (*without_effect, *without_repeated(outcome.remarks, without_effect), *outcome.recomputed, *target_remarks),
        )
        if isinstance(ctx, RecomputeContext):
            ctx.plans.append(to_json(outcome.plans))
            ctx.summaries.extend(summary_of(op, outcome))


def _remarks_on_target(module: ModuleOp, options: RecomputeOptions) -> tuple[Remark, ...]:
    """Return a remark that proposes `target=none`, if the target is `stablehlo` and the module contains no
    StableHLO."""
    if options.target != DEFAULT_OPTIONS.target or any(name_of(op).startswith(XLA_DIALECTS) for op in module.walk()):
        return ()
    counted = "" if options.memory_model == ORDER else "counts memory by the XLA:CPU model and "
    reason = (
        f"the module contains no StableHLO, but the target stablehlo {counted}delays copies by "
        "stablehlo.optimization_barrier; for an executor that runs operations in program order, use target=none"
    )
    function = next(iter(functions_of(module)), module)
    return (Remark(function, reason, RemarkKind.ANALYSIS),)
