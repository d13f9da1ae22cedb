"""Build the reports on joint graphs that the partitioner has split."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from ....dialects.torch import FLOPS
from ..reports.compile_report import GraphReport
from .joint_graph_step import JointStep
from .rewritten_step import RewrittenStep


def report_of(step: JointStep, rewritten: RewrittenStep) -> GraphReport:
    """Return the report on a rewritten graph. If the rewrite changes nothing, its remarks give the reason."""
    result = rewritten.result
    return replace(
        report_unchanged(step),
        peak_bytes=rewritten.peak_bytes + step.tangent_bytes,
        copies=result.copies,
        flops=_flops(result.module),
        remarks=rewritten.remarks,
        rewritten=result.module,
        optimality=rewritten.optimality,
        is_stored=rewritten.is_stored,
    )


def report_unchanged(step: JointStep) -> GraphReport:
    """Return the report on an unchanged graph."""
    peak = step.peak.temporary_bytes + step.tangent_bytes
    flops = _flops(step.module)
    return GraphReport(
        plain_bytes=peak,
        peak_bytes=peak,
        input_bytes=step.peak.argument_bytes - step.tangent_bytes,
        plain_flops=flops,
        flops=flops,
        module=step.module,
    )


def _flops(module: ModuleOp) -> int:
    counts = (op.attributes.get(FLOPS) for op in module.walk())
    return sum(count.value.data for count in counts if isinstance(count, IntegerAttr))
