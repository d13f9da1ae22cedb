"""Report the effect of all passes on a module, in the remark at the end of a run and in the last line of a long run.

Example:

    step.mlir:1:1: remark: @main: peak 1.2 MiB -> 412.0 KiB of temporaries in program order (0.335); 57 operations
    of the result are copies, 12.1% more FLOPs; proved equal
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.explain.executed_flops import executed_flops, runs_of
from ...analysis.memory.timeline import peak_in_order
from ...analysis.step.marks import is_copy
from ...analysis.step.order import functions_of
from ...proof.verdicts.verdict import Proof
from ...support.diagnostics import DynamicShape
from ...support.operations import every_operation, operations_in
from ...support.remarks import Remark, RemarkKind, Topic
from ...support.units import format_bytes
from ...transforms.preparation.timelines import flat_copy


@dataclass(frozen=True)
class FunctionTotals:
    """The totals of one public function, with calls and regions inlined.

    Attributes:
        peak_bytes: The peak of temporaries in program order; None for dynamic shapes.
        copies: The number of copies of operations.
        copied_flops: The FLOPs of the copies, over all iterations of loops.
        flops: The FLOPs of all operations, over all iterations of loops.
    """

    peak_bytes: int | None
    copies: int
    copied_flops: int
    flops: int

    @classmethod
    def of(cls, function: FuncOp) -> FunctionTotals:
        """Return the totals of a function whose calls and regions are inlined."""
        copies = [op for op in every_operation(function) if is_copy(op)]
        try:
            copied_flops = sum(executed_flops(op) * runs_of(op) for op in copies if not _is_inside_copy(op))
            total = sum(executed_flops(op) for block in function.body.blocks for op in operations_in(block))
            return cls(peak_in_order(function), len(copies), copied_flops, total)
        except DynamicShape:
            return cls(None, len(copies), 0, 0)


def _is_inside_copy(op: Operation) -> bool:
    """Return whether an enclosing operation is a copy. The FLOPs of that copy include the FLOPs of `op`."""
    holder = op.parent_op()
    while holder is not None and not is_copy(holder):
        holder = holder.parent_op()
    return holder is not None


Totals = Mapping[str, FunctionTotals]


def totals_of(module: ModuleOp) -> Totals:
    """Return the totals of each public function, by function name."""
    return {function.sym_name.data: FunctionTotals.of(function) for function in functions_of(flat_copy(module))}


def gain_remarks(module: ModuleOp, before: Totals, after: Totals, proof: Proof | None) -> list[Remark]:
    """Return a remark for each function of the module whose peak or number of copies the passes have changed.

    Args:
        module: The module after the passes.
        before: The totals before the passes.
        after: The totals after the passes.
        proof: The proof that the result is equal; None if there is no proof.
    """
    functions = {function.sym_name.data: function for function in functions_of(module)}
    return [
        _remark(functions[name], before[name], after[name], proof)
        for name in functions
        if name in before and name in after and before[name] != after[name]
    ]


def brief_gain(module: ModuleOp, proof: Proof | None) -> str:
    """Return a phrase with the number of copies and the verdict of the proof; "" if there are no copies.

    The phrase omits the peaks, because computing them would take a tenth of the time of a run.
    """
    copies = sum(map(is_copy, every_operation(module)))
    return f"{_copies_text(copies)} (a call is counted as one); {_verdict(proof)}" if copies else ""


def _copies_text(copies: int) -> str:
    return f"{copies} operation{'s of the result are copies' if copies != 1 else ' of the result is a copy'}"


def _verdict(proof: Proof | None) -> str:
    return "proved equal" if proof is not None else "not proved: --no-proof"


def _remark(function: FuncOp, before: FunctionTotals, after: FunctionTotals, proof: Proof | None) -> Remark:
    amounts, parts = dict[str, int](), list[str]()
    if before.peak_bytes is None or after.peak_bytes is None:
        parts.append("the peak is unknown: shapes are dynamic")
    else:
        amounts |= {"peak_bytes_before": before.peak_bytes, "peak_bytes_after": after.peak_bytes}
        change = f"{format_bytes(before.peak_bytes)} -> {format_bytes(after.peak_bytes)} of temporaries"
        ratio = f" ({after.peak_bytes / before.peak_bytes:.3f})" if before.peak_bytes else ""
        parts.append(f"peak {change} in program order{ratio}")
    if copies := after.copies - before.copies:
        extra = after.copied_flops - before.copied_flops
        amounts |= {"operations": copies, "flops": extra}
        share = f", {extra / before.flops:.1%} more FLOPs" if before.flops else ""
        parts.append(f"{_copies_text(copies)}{share}")
    parts.append(_verdict(proof))
    reason = f"@{function.sym_name.data}: {'; '.join(parts)}"
    return Remark(function, reason, RemarkKind.PASSED, Topic.RECOMPUTED, amounts=tuple(amounts.items()))
