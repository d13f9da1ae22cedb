"""Format the rows of the benchmark as a table, with peaks and FLOPs as multiples of the eager step's."""

from __future__ import annotations

from collections.abc import Sequence

from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.torch.form_rows import FormRow
from recompute.benchmarks.torch.refusals import is_refusal

HEAD = ("form", "peak MB", "of eager", "FLOPs x", "of budget", "compile s", "step ms", "equal to eager")
SHOWN = 3
"""The number of differing tensors that a row names."""


def table(rows: Sequence[FormRow]) -> str:
    """Return the rows of one model as a Markdown table, with ratios relative to the first row."""
    lines = [f"### {rows[0].case}", "", table_head(HEAD)]
    return "\n".join([*lines, *(table_row(cells(measured, rows[0])) for measured in rows)])


def cells(row: FormRow, eager: FormRow) -> list[str]:
    """Return the cells of a row, in the order of `HEAD`."""
    if row.error:
        return [row.form, "-", "-", "-", "-", "-", "-", row.error[:100].replace("|", "/")]
    return [
        row.form,
        f"{row.peak_bytes / 1e6:.2f}",
        f"{row.peak_bytes / eager.peak_bytes:.3f}",
        f"{row.flops / eager.flops:.4f}",
        f"{row.peak_bytes / row.budget_bytes:.4f}" if row.budget_bytes else "",
        f"{row.compile_seconds:.1f}",
        f"{row.step_seconds * 1e3:.0f}",
        equality(row.differences),
    ]


def equality(differences: Sequence[str]) -> str:
    """Return `yes`, or the number of differing tensors and the names of the first ones."""
    if not differences:
        return "yes"
    first = ", ".join(differences[:SHOWN])
    return f"NO, {len(differences)}: {first}"


def missed(rows: Sequence[FormRow]) -> list[str]:
    """Return a message for each variant of `recompute.torch` that fails, differs from eager, or exceeds its budget."""
    lines: list[str] = []
    for row in rows:
        if row.budget_bytes is None:
            continue
        if row.error:
            if not is_refusal(row.error):
                lines.append(f"{row.case}, {row.form}: {row.error}")
        elif row.differences:
            lines.append(f"{row.case}, {row.form}: {equality(row.differences)}")
        elif row.peak_bytes > row.budget_bytes:
            lines.append(f"{row.case}, {row.form}: {row.peak_bytes} bytes exceed the budget of {row.budget_bytes}")
    return lines
