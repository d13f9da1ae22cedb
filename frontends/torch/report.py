"""What was done with each graph: peaks, work, the plan, and the reasons for what was left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from ...dialects.torch import FLOPS
from ...driver.api import Rewritten
from ...support.units import format_bytes
from .warning import reason_of


@dataclass(frozen=True)
class GraphReport:
    """The report on one joint graph. Bytes are of program order, and leave out inputs and weights.

    Attributes:
        reason: Why the graph was left alone; empty if it was rewritten.
        plain_bytes: The peak of the plain step, with the gradients that it returns and those that it is given.
        peak_bytes: The peak of the rewritten step.
        input_bytes: Bytes of inputs and weights.
        copies: The number of operations that run again.
        plain_flops: FLOPs of products of the plain step, as `torch.utils.flop_counter` counts them.
        flops: Those of the rewritten step.
        seconds: Time of import, search, export and proof.
        remarks: Remarks of the rewrite, one line each.
        module: The imported step; None if it could not be imported.
        rewritten: The rewritten step.
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

    @property
    def extra_share(self) -> float:
        """Additional FLOPs of products, as a share of the plain step's."""
        return self.flops / self.plain_flops - 1 if self.plain_flops else 0.0

    def __str__(self) -> str:
        if self.reason:
            return f"left to PyTorch's partitioner: {self.reason}"
        before, after = format_bytes(self.plain_bytes), format_bytes(self.peak_bytes)
        return (
            f"peak {before} -> {after} beside {format_bytes(self.input_bytes)} of inputs and weights; "
            f"{self.copies} operations run again, {100 * self.extra_share:.1f} % more FLOPs; "
            f"proved equal, {self.seconds:.1f} s"
        )


@dataclass(frozen=True)
class Report:
    """The reports of all graphs, in the order of compilation; `print` shows one line for each."""

    graphs: tuple[GraphReport, ...]

    def __str__(self) -> str:
        if not self.graphs:
            return "nothing with a backward pass has been compiled yet"
        lines = [f"graph {number}: {graph}" for number, graph in enumerate(self.graphs)]
        if len(lines) > 1:
            lines.append(f"{len(lines)} graphs: the peak of the step is not that of one of them (fullgraph=True)")
        return "\n".join(lines)


def report_of(module: ModuleOp, rewritten: Rewritten, tangent_bytes: int, seconds: float) -> GraphReport:
    """The report on a graph that was rewritten, or left as it is with the reason in its remarks.

    `tangent_bytes`: of the gradients of what the step returns, which are arguments and part of the peak.
    """
    ((before, after),) = rewritten.memory().values()
    return GraphReport(
        plain_bytes=before.peak_bytes + tangent_bytes,
        peak_bytes=after.peak_bytes + tangent_bytes,
        input_bytes=before.argument_bytes - tangent_bytes,
        copies=rewritten.copies,
        plain_flops=_flops(module),
        flops=_flops(rewritten.module),
        seconds=seconds,
        remarks=tuple(remark.reason for remark in rewritten.remarks),
        module=module,
        rewritten=rewritten.module,
    )


def plain_report(error: Any) -> GraphReport:
    """The report on a graph that was left to PyTorch's partitioner."""
    return GraphReport(reason=reason_of(error))


def _flops(module: ModuleOp) -> int:
    counts = (op.attributes.get(FLOPS) for op in module.walk())
    return sum(count.value.data for count in counts if isinstance(count, IntegerAttr))
