"""A step that was rewritten with a new plan, or with a plan from the disk cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from ....driver.api import rewrite
from ....driver.rewrites.rewritten import Rewritten
from ....options.recompute_options import RecomputeOptions
from ....planning.plan import Optimality
from ....support.diagnostics import Refusal
from ..program_order.module_peaks import Peak
from .plan_cache import StoredPlan


@dataclass(frozen=True)
class RewrittenStep:
    """A rewritten step. `JointStep.split` exports the graph that will run, and proves that it equals the original
    graph.

    Attributes:
        result: The result of the rewrite.
        peak: The peak of the rewritten step in program order.
        remarks: The messages of the rewrite's remarks.
        optimality: The plan's extra work and its lower bound; None if no bound is known.
        is_stored: Whether an earlier process made the plan.
    """

    result: Rewritten
    peak: Peak
    remarks: tuple[str, ...]
    optimality: Optimality | None
    is_stored: bool = False

    @classmethod
    def of(cls, module: ModuleOp, options: RecomputeOptions) -> RewrittenStep:
        """Plan and rewrite the step. Raises `Refusal`."""
        result = rewrite(module, replace(options, proof=False))
        optimalities = [plan.plan.optimality for plan in result.plans]
        remarks = tuple(remark.reason for remark in result.remarks)
        return cls(result, Peak.of(result.module), remarks, optimalities[0] if len(optimalities) == 1 else None)

    @classmethod
    def of_stored(cls, module: ModuleOp, options: RecomputeOptions, stored: StoredPlan) -> RewrittenStep | None:
        """Rewrite the step with a stored plan.

        Return None if the plan does not apply, or if the peak differs from the stored peak.
        """
        try:
            result = rewrite(module, replace(options, plan=stored.plan, budget=None, proof=False))
        except (Refusal, ValueError):
            return None
        peak = Peak.of(result.module)
        if peak.bytes_with_states != stored.peak_bytes:
            return None
        return cls(result, peak, stored.remarks, stored.optimality, is_stored=True)

    @property
    def peak_bytes(self) -> int:
        """The peak in program order, in bytes. It includes the generator states that copies restore, and excludes
        arguments."""
        return self.peak.bytes_with_states

    @property
    def stored_plan(self) -> StoredPlan:
        """The plan in the form that the disk cache stores for later processes."""
        return StoredPlan(self.result.plan_text, self.peak_bytes, self.remarks, self.optimality)
