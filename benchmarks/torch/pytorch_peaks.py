"""Measure the cost of `recompute.torch` at the peak that each of PyTorch's own memory controls reaches.

    python -m recompute.benchmarks.torch.pytorch_peaks
    python -m recompute.benchmarks.torch.pytorch_peaks --only resnet50

Results: peaks in MB, and FLOPs as multiples of the eager step's, in docs/measured/torch.md. Time: about 5 minutes.

The GPT with 6 layers is compiled within the peak of each of PyTorch's variants, such as `torch.utils.checkpoint` around
each block. Every model is compiled within the peaks of `BARS`. A peak is the largest total size of live storages during
one step in program order. FLOPs are those of matrix products, convolutions and attention, as multiples of the eager
step's. The exit status is 1 if a step exceeds its peak, needs more FLOPs than PyTorch's step at that peak or than the
limit in `BARS`, or differs from eager mode.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from recompute.benchmarks.harness.command_line import add_only, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.form_rows import FormRow, measure_form
from recompute.benchmarks.torch.model_forms import ModelForm, baselines, compile_within_budget

BARS = {
    "gpt6 dropout": ((26.98, 1.001), (12.71, 1.118)),
    "gpt12 dropout": ((15.2, 1.175),),
    "resnet50": ((11.0, 1.05),),
}
"""Pairs of a peak in MB and the largest allowed FLOPs at that peak, as a multiple of the eager step's FLOPs."""
HEAD = ("peak of", "MB", "PyTorch's FLOPs x", "ours MB", "ours FLOPs x", "equal to eager")
COMPARED = "gpt6 dropout"
"""The model that is also compiled within the peaks of PyTorch's variants."""


def measure_at(name: str, peak_bytes: int, eager: FormRow, outcome: Any) -> FormRow:
    """Measure `recompute.torch` with the given peak as its budget."""
    form = ModelForm("ours", compile_within_budget, (peak_bytes + 0.5) / eager.peak_bytes)
    row, _ = measure_form(name, form, outcome, eager.peak_bytes)
    return row


def faults_of(row: FormRow, most: float, peak_bytes: int, eager: FormRow) -> Iterator[str]:
    """Yield a message for each unmet requirement. `most`: the largest allowed FLOPs, as a multiple of the eager
    step's."""
    if row.error:
        yield row.error
        return
    if row.differences:
        yield f"differs from eager: {', '.join(row.differences[:3])}"
    if row.peak_bytes > peak_bytes:
        yield f"the peak of {row.peak_bytes} bytes exceeds the budget by {row.peak_bytes - peak_bytes} bytes"
    if row.flops / eager.flops > most + 5e-5:
        yield f"{row.flops / eager.flops:.4f} × the eager FLOPs, above the limit of {most:.4f}"


def print_comparison(name: str, of_torch: bool) -> Iterator[str]:
    """Print the table of a model, and yield a message for each requirement that is not met.

    Args:
        name: The name of the model.
        of_torch: Whether to compile the model within the peaks of PyTorch's variants, in addition to those of `BARS`.
    """
    print(f"\n### {name}\n")
    print(table_head(HEAD))
    first, *others = baselines()
    eager, outcome = measure_form(name, first, None, 0)
    points = [(form.name, *peak_of(name, form, outcome, eager)) for form in others] if of_torch else []
    points += [("a bar", int(megabytes * 1e6), most) for megabytes, most in BARS.get(name, ())]
    for label, peak_bytes, most in points:
        if not peak_bytes:
            print(table_row((label, "fails", "", "", "", "")), flush=True)
            continue
        own_row = measure_at(name, peak_bytes, eager, outcome)
        result = (
            f"{own_row.peak_bytes / 1e6:.2f}",
            f"{own_row.flops / eager.flops:.4f}",
            "no" if own_row.differences else "yes",
        )
        cells = result if not own_row.error else ("", own_row.error[:90].replace("|", "/"), "")
        print(table_row((label, f"{peak_bytes / 1e6:.2f}", f"{most:.4f}", *cells)), flush=True)
        yield from (f"{name}, {label}: {fault}" for fault in faults_of(own_row, most, peak_bytes, eager))


def peak_of(name: str, form: ModelForm, outcome: Any, eager: FormRow) -> tuple[int, float]:
    """Return the peak and the relative FLOPs of one of PyTorch's variants, or zeros if it fails."""
    row, _ = measure_form(name, form, outcome, 0)
    return (0, 0.0) if row.error else (row.peak_bytes, row.flops / eager.flops)


def main() -> int:
    """Print the table of each model, and return 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", BARS)
    options = parser.parse_args()
    configure_torch()
    faults: list[str] = []
    for name in selected(BARS, options.only):
        faults += print_comparison(name, of_torch=name == COMPARED)
    return report_missed(faults)


if __name__ == "__main__":
    sys.exit(main())
