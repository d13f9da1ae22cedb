"""Check that the peak of a step compiled by Inductor is within the budget, as the allocator measures it.

    python -m recompute.benchmarks.torch.inductor_budgets  # the table of docs/measured/torch_inductor_budgets.md
    python -m recompute.benchmarks.torch.inductor_budgets --only 'pytorch *' --shares 0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2

Results: peaks in MB, and FLOPs as multiples of the plain step's, in docs/measured/torch_inductor_budgets.md. Time:
about 10 minutes.

Budgets are shares of the peak of `torch.compile(model)`. Its results are the reference, because Inductor draws
different random numbers from eager mode, and rounds differently. Peaks are measured in the second step, by the
allocator's events on the CPU and by `torch.cuda.max_memory_allocated` on a GPU. They include the temporaries of
kernels, and exclude weights, buffers and inputs.

The exit status is 1 if a step exceeds its budget, if its final random state differs, or if a result differs by more
than rounding. A refused budget is not a failure. PyTorch's cache of compiled steps is disabled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from recompute.benchmarks.harness.command_line import add_only, add_shares, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.row_printer import print_rows
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.model_cases import CASES, ModelCase, make
from recompute.benchmarks.torch.model_forms import ModelRun, checkpoint_blocks
from recompute.benchmarks.torch.refusals import describe_error, is_refusal, lowest_stated_peak
from recompute.benchmarks.torch.training_step import Outcome, training_step
from recompute.frontends.torch.inductor.allocator import allocator_peak

MODELS = ("gpt6", "gpt6 dropout", "unet", "resnet50")
SHARES = (0.8, 0.6, 0.4)
ROUNDING = 1e-4
"""The largest relative distance that counts as rounding, since fusion changes the order of additions."""
HEAD = ("model", "form", "budget MB", "measured MB", "compiles", "FLOPs x", "largest distance", "RNG")


def measure(name: str, wrap: Any) -> tuple[Outcome, int, Any]:
    """Run two steps, and return the first step's results, the second step's peak, and the wrapped model."""
    torch._dynamo.reset()
    model, inputs = make(name)
    device = inputs[0].device.type
    step = wrap(model)
    outcome = training_step(model, step, inputs)
    model.zero_grad(set_to_none=True)

    def whole_step() -> None:
        # Free the gradients inside of the measurement. PyTorch's profiler would count a block that is freed during a
        # later measurement, even if another tensor has its address by then.
        step(*inputs).backward()
        model.zero_grad(set_to_none=True)

    return outcome, allocator_peak(whole_step, device), step


@dataclass(frozen=True)
class InductorRow:
    """The measurement of a model that Inductor compiles. Values that do not apply are None.

    Attributes:
        model: The name of the model.
        form: The budget as a share of the plain peak, or the name of a variant without a budget.
        budget_bytes: The budget.
        peak_bytes: The measured peak, or the lowest peak that the refusal of the budget reports.
        is_refused: Whether the budget was refused.
        compilations: The number of compilations of the budget search.
        flops_ratio: The FLOPs, as a multiple of the plain step's.
        distance: The largest relative distance of a result from the plain step's result.
        state_is_equal: Whether the final random state equals the plain step's.
        error: The exception, if the step fails, or the reason why its peak is unknown.
    """

    model: str
    form: str
    budget_bytes: int | None = None
    peak_bytes: int | None = None
    is_refused: bool = False
    compilations: int | None = None
    flops_ratio: float | None = None
    distance: float | None = None
    state_is_equal: bool | None = None
    error: str = ""

    def cells(self) -> list[str]:
        """Return the cells of the table row, in the order of `HEAD`."""
        peak = self.error if self.peak_bytes is None else f"{self.peak_bytes / 1e6:.2f}"
        return [
            self.model,
            self.form,
            "" if self.budget_bytes is None else f"{self.budget_bytes / 1e6:.2f}",
            f"refused, {peak}" if self.is_refused else peak[:100].replace("|", "/"),
            "" if self.compilations is None else str(self.compilations),
            "" if self.flops_ratio is None else f"{self.flops_ratio:.4f}",
            "" if self.distance is None else f"{self.distance:.1e}",
            {None: "", True: "equal", False: "NO"}[self.state_is_equal],
        ]

    def faults(self) -> Iterator[str]:
        """Yield a message for each requirement that the measurement violates. Only budgets have requirements."""
        if self.budget_bytes is None or self.is_refused:
            return
        if self.error:
            yield self.error
        if self.peak_bytes is not None and self.peak_bytes > self.budget_bytes:
            yield f"{self.peak_bytes} bytes exceed the budget of {self.budget_bytes} bytes"
        if self.state_is_equal is False:
            yield "the final random state differs"
        if self.distance is not None and self.distance > ROUNDING:
            yield f"a result differs by {self.distance:.1e}"


def row_within(name: str, share: float, plain: Outcome, plain_bytes: int) -> InductorRow:
    """Measure a model within a budget.

    Args:
        name: The name of the model.
        share: The budget, as a share of the plain peak.
        plain: The results of the plain step.
        plain_bytes: The peak of the plain step.
    """
    import recompute.torch as rt

    row = InductorRow(name, f"{share:g}", int(share * plain_bytes))
    try:
        outcome, peak, step = measure(name, lambda model: rt.compile(model, budget=share, backend="inductor"))
    except Exception as error:
        if is_refusal(error):
            return replace(row, peak_bytes=lowest_stated_peak(str(error)), is_refused=True)
        return replace(row, error=describe_error(error))
    (graph,) = step.report().graphs
    return replace(
        row,
        peak_bytes=peak,
        compilations=len(graph.rounds),
        flops_ratio=1 + graph.extra_share,
        distance=plain.largest_distance(outcome),
        state_is_equal=outcome.has_state_of(plain),
        error=graph.reason or graph.unmeasured or "",
    )


def checkpoint_row(name: str) -> InductorRow:
    """Measure a model with `torch.utils.checkpoint` around each block, compiled by Inductor."""
    case: ModelCase = CASES[name]
    try:
        _, peak, _ = measure(name, lambda model: torch.compile(checkpoint_blocks(ModelRun(model, case.blocks))))
    except Exception as error:
        return InductorRow(name, "checkpoint", error=type(error).__name__)
    return InductorRow(name, "checkpoint", peak_bytes=peak)


def rows_of(name: str, shares: Sequence[float]) -> Iterator[InductorRow]:
    """Yield the rows of a model: the plain step, the step with `torch.utils.checkpoint`, and each budget."""
    plain, plain_bytes, _ = measure(name, torch.compile)
    yield InductorRow(name, "torch.compile", peak_bytes=plain_bytes, flops_ratio=1.0)
    yield checkpoint_row(name)
    for share in shares:
        yield row_within(name, share, plain, plain_bytes)


def main() -> int:
    """Print a table row for each model and budget, and return 1 if there are faults."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", CASES, default=MODELS)
    add_shares(parser, SHARES)
    options = parser.parse_args()
    configure_torch(reuse_compiled_steps=False)
    names = selected(CASES, options.only or MODELS)
    rows = print_rows(HEAD, (row for name in names for row in rows_of(name, options.shares)), InductorRow.cells)
    return report_missed([f"{row.model}, budget {row.form}: {fault}" for row in rows for fault in row.faults()])


if __name__ == "__main__":
    sys.exit(main())
