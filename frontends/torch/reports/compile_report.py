"""Reports on compiled graphs: peaks, work, the plan, and the reasons why parts are unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ....planning.plan import Optimality
from ....search.budget.refusal_text import budget_verdict
from ....support.counted import counted, counted_are
from ....support.units import format_bytes, format_percent, readable_bytes
from .warning import reason_of


@dataclass(frozen=True)
class Round:
    """A step that was compiled for a budget. Byte counts exclude inputs and weights.

    Attributes:
        words: A description of the plan, or of the setting of PyTorch's partitioner.
        planned_bytes: The step's peak in program order.
        peak_bytes: The measured peak of the compiled step.
        flops: The FLOPs of matrix products, convolutions and attention.
        fits: Whether the compiled step is within the budget; None for the budget `min`.
    """

    words: str
    planned_bytes: int
    peak_bytes: int
    flops: int
    fits: bool | None

    def __str__(self) -> str:
        planned, compiled = readable_bytes(self.planned_bytes), readable_bytes(self.peak_bytes)
        return f"{self.words}: {planned} in program order, {compiled} as compiled{budget_verdict(self.fits)}"


@dataclass(frozen=True)
class GraphReport:
    """The report on one joint graph.

    Byte counts exclude inputs and weights. They are computed in program order or measured.

    Attributes:
        reason: The reason that the graph is unchanged; empty if it was rewritten.
        plain_bytes: The peak of the plain step, including the gradients that it receives or returns.
        peak_bytes: The peak of the rewritten step.
        input_bytes: The bytes of inputs and weights.
        copies: The number of recomputed operations.
        plain_flops: The FLOPs of the plain step, as `torch.utils.flop_counter` counts them.
        flops: The FLOPs of the rewritten step.
        seconds: The time for import, search, export and proof.
        remarks: The remarks of the rewrite, one line each.
        module: The imported step; None if it could not be imported.
        rewritten: The rewritten step; None if PyTorch's partitioner splits the unchanged step.
        plan: Under Inductor with a budget, a description of the partition that runs.
        rounds: The steps that were compiled for the budget, except for the plain step.
        unmeasured: The reason that the peak of a step under Inductor is not measured; empty otherwise.
        optimality: The extra work of the plan according to the cost model, and a lower bound on it. No plan within the
            same budget in program order has less extra work than this bound. Both are in percent of the plain step's
            work; None if no bound is known.
        is_stored: Whether the plan is from the disk cache, in which an earlier process stored it.
    """

    reason: str = ""
    plain_bytes: int = 0
    peak_bytes: int = 0
    input_bytes: int = 0
    copies: int = 0
    plain_flops: int = 0
    flops: int = 0
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
    module: ModuleOp | None = None
    rewritten: ModuleOp | None = None
    plan: str = ""
    rounds: tuple[Round, ...] = ()
    unmeasured: str = ""
    optimality: Optimality | None = None
    is_stored: bool = False

    @property
    def extra_share(self) -> float:
        """The additional FLOPs, as a share of the plain step's FLOPs."""
        return self.flops / self.plain_flops - 1 if self.plain_flops else 0.0

    def __str__(self) -> str:
        if self.reason:
            return f"left to PyTorch's partitioner: {self.reason}"
        before, after = format_bytes(self.plain_bytes), format_bytes(self.peak_bytes)
        peaks = f"peak {before} -> {after} in addition to {format_bytes(self.input_bytes)} of inputs and weights"
        if self.plan:
            is_shared = not self.rounds and self.rewritten is not None
            peaks += (
                ", measured for another budget"
                if is_shared
                else f", measured in {counted(len(self.rounds), 'compilation')}"
            )
            peaks += f": {self.plan}"
        if self.unmeasured:
            peaks += f", in program order (not measured: {self.unmeasured})"
        proof = "" if self.plan and self.rewritten is None else "proved equal, "
        stored = "plan from the disk cache, " if self.is_stored else ""
        return (
            f"{peaks}; {counted_are(self.copies, 'operation')} recomputed, "
            f"{format_percent(100 * self.extra_share)} % more FLOPs"
            f"{self._bound}; {stored}{proof}{self.seconds:.1f} s"
        )

    @property
    def _bound(self) -> str:
        """A phrase on the plan's extra work and its lower bound; empty for a measured plan or an unknown bound."""
        optimality = self.optimality
        if optimality is None or self.plan:
            return ""
        work, bound = format_percent(optimality.percent), format_percent(optimality.bound_percent)
        return f" ({work} % more work, at least {bound} % within this budget)"


@dataclass(frozen=True)
class CompileReport:
    """The reports on all graphs, in the order of compilation. `print` shows one line for each graph.

    Attributes:
        graphs: The reports on the graphs with a backward pass.
        without_backward: The number of graphs that were compiled without a backward pass.
        breaks: The reasons that Dynamo left code to the Python interpreter since the backend was created, one line
            each.
        cached: The number of steps that were loaded from PyTorch's cache of compiled steps since the backend was
            created.
    """

    graphs: tuple[GraphReport, ...]
    without_backward: int = 0
    breaks: tuple[str, ...] = ()
    cached: int = 0

    @property
    def reason(self) -> str:
        """The reason why no graph with a backward pass was compiled; empty if one was compiled."""
        if self.graphs:
            return ""
        if self.without_backward:
            return (
                f"no graph has a backward pass: {self.without_backward} compiled without one, for inference or "
                "because the compiled function computes its gradients itself"
            )
        if self.cached:
            return (
                f"{counted(self.cached, 'compiled step')} came from PyTorch's cache, with the plan that an earlier "
                "process made for these options; TORCHINDUCTOR_AUTOGRAD_CACHE=0 makes a new plan"
            )
        if self.breaks:
            return f"nothing was compiled: {'; '.join(self.breaks)}"
        return "nothing with a backward pass has been compiled yet"

    def __str__(self) -> str:
        if not self.graphs:
            return self.reason
        lines = [f"graph {number}: {graph}" for number, graph in enumerate(self.graphs)]
        if len(lines) > 1:
            lines.append(
                f"{len(lines)} graphs: the peak of the whole step can exceed the peak of each graph; fullgraph=True "
                "demands a single graph"
            )
        return "\n".join(lines)


def report_of_fallback(error: Any) -> GraphReport:
    """Return the report on a graph that is left to PyTorch's partitioner because of an error."""
    return GraphReport(reason=reason_of(error))
