"""Run ten models within five budgets each, and check the peaks and the bit-equality of the results.

    python -m recompute.benchmarks.torch.model_budgets                       # the table of docs/measured/torch.md
    python -m recompute.benchmarks.torch.model_budgets --only 'gpt*' --json lines.json

Results: peaks in MB, and FLOPs as multiples of the eager step's, in docs/measured/torch.md. Time: about 15 minutes.

The budgets of a model are evenly spaced from the peak of `budget="min"` (included) to the peak of the plain step
(excluded). Peaks are measured for one step in program order. They include gradients and saved random states, and
exclude weights, buffers and inputs. The table goes to standard output, and progress to standard error.

The exit status is 1 if a budget is exceeded or refused, if the error of a predicted peak exceeds 0.5 %, or if a result
differs from eager mode (`NO`). The table shows `traced` if a result differs from eager mode, but not from the model as
Dynamo traces it, since that difference comes from PyTorch's tracing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from recompute.benchmarks.harness.command_line import (
    add_json,
    add_only,
    benchmark_parser,
    report_missed,
    report_progress,
    selected,
)
from recompute.benchmarks.harness.row_printer import print_rows
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.model_cases import make
from recompute.benchmarks.torch.refusals import describe_error
from recompute.benchmarks.torch.training_step import Outcome, meter_step, training_step

MODELS = (
    "gpt6 dropout",
    "gpt6",
    "gpt6 sdpa",
    "resnet50",
    "unet",
    "vit",
    "lstm",
    "moe",
    "bert",
    "llama",
)
BUDGETS = 5
LARGEST_ERROR = 0.005
"""The largest allowed error of a predicted peak, as a share of the measured peak."""
HEAD = ("model", "budget MB", "measured MB", "predicted", "FLOPs x", "copies", "loss", "gradients", "buffers", "RNG")
KINDS = ("loss", "grad ", "buffer ", "random state")
"""The prefixes of result names, in the order of the last columns."""


@dataclass(frozen=True)
class ModelBudgetRow:
    """The measurement of one model within one budget.

    Attributes:
        budget_bytes: The budget, excluding weights, buffers and inputs.
        peak_bytes: The measured peak.
        predicted_bytes: The peak that the report predicts.
        flops_ratio: The measured FLOPs, as a multiple of the eager step's.
        copies: The number of recomputed operations.
        differences: The results that are not bit-equal to those of eager mode.
        as_traced: Whether all results are bit-equal to those of `torch.compile(model, backend="eager")`. Some models
            compute different values when they are traced.
        error: The exception, if the step fails.
    """

    model: str
    budget_bytes: int
    peak_bytes: int = 0
    predicted_bytes: int = 0
    flops_ratio: float = 0.0
    copies: int = 0
    differences: list[str] = field(default_factory=list)
    as_traced: bool = False
    error: str = ""

    @property
    def prediction_error(self) -> float:
        """The error of the predicted peak, as a share of the measured peak."""
        return self.predicted_bytes / self.peak_bytes - 1 if self.peak_bytes else 0.0

    def faults(self) -> list[str]:
        """Return a message for each requirement that the measurement violates."""
        if self.error:
            return [self.error]
        faults = (
            [f"differs from eager: {', '.join(self.differences[:3])}"]
            if self.differences and not self.as_traced
            else []
        )
        if self.peak_bytes > self.budget_bytes:
            faults.append(
                f"the peak of {self.peak_bytes} bytes exceeds the budget by {self.peak_bytes - self.budget_bytes} bytes"
            )
        if abs(self.prediction_error) > LARGEST_ERROR:
            faults.append(f"the error of the predicted peak is {100 * self.prediction_error:+.2f} %")
        return faults

    def cells(self) -> list[str]:
        """Return the cells of the table row, in the order of `HEAD`."""
        if self.error:
            return [self.model, f"{self.budget_bytes / 1e6:.3f}", self.error[:100].replace("|", "/"), *[""] * 7]
        differs = "traced" if self.as_traced else "NO"
        equal = [differs if any(d.startswith(kind) for d in self.differences) else "equal" for kind in KINDS]
        return [
            self.model,
            f"{self.budget_bytes / 1e6:.3f}",
            f"{self.peak_bytes / 1e6:.3f}",
            f"{100 * self.prediction_error:+.2f} %",
            f"{self.flops_ratio:.4f}",
            str(self.copies),
            *equal,
        ]


def rows_of(name: str, count: int) -> Iterator[ModelBudgetRow]:
    """Yield the measurement of a model within each budget, in order of increasing budgets."""
    model, inputs = make(name)
    eager = training_step(model, model, inputs)
    eager_flops = meter_step(model, model, inputs).flops
    report_progress(f"{name}: min ...")
    model, inputs = make(name)
    step = compile_within(model, "min")
    training_step(model, step, inputs)
    (lowest,) = step.report().graphs
    width = lowest.plain_bytes - lowest.peak_bytes
    for index in range(count):
        budget = lowest.peak_bytes + width * index // count
        report_progress(f"{name}: {budget} bytes ...")
        try:
            yield measure_within(name, budget, lowest.input_bytes, eager, eager_flops)
        except Exception as error:
            yield ModelBudgetRow(name, budget, error=describe_error(error))


def measure_within(name: str, budget: int, input_bytes: int, eager: Outcome, eager_flops: int) -> ModelBudgetRow:
    """Measure a model within a budget. `input_bytes`: the bytes of the graph's weights, buffers and inputs."""
    model, inputs = make(name)
    step = compile_within(model, budget + input_bytes)
    outcome = training_step(model, step, inputs)
    differences = eager.differences(outcome)
    cost = meter_step(model, step, inputs)
    (graph,) = step.report().graphs
    if graph.reason:
        raise RuntimeError(f"the graph was left to PyTorch: {graph.reason}")
    ratio = cost.flops / eager_flops
    as_traced = bool(differences) and not outcome.differences(outcome_as_traced(name))
    return ModelBudgetRow(name, budget, cost.peak_bytes, graph.peak_bytes, ratio, graph.copies, differences, as_traced)


@cache
def outcome_as_traced(name: str) -> Outcome:
    """Return the outcome of the model if Dynamo traces it, but its operations run as in eager mode."""
    torch._dynamo.reset()
    model, inputs = make(name)
    return training_step(model, torch.compile(model, backend="eager"), inputs)


def compile_within(model: torch.nn.Module, budget: int | str) -> Any:
    """Compile the model with `recompute.torch` within a budget in bytes, or within `min`."""
    import recompute.torch as rt

    torch._dynamo.reset()
    return rt.compile(model, budget=budget, fullgraph=True)


def main() -> int:
    """Print a table row for each model and budget, and return 1 if a requirement is violated."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", MODELS)
    count = "the number of budgets of each model (default: %(default)s)"
    parser.add_argument("--count", type=int, default=BUDGETS, metavar="COUNT", help=count)
    add_json(parser)
    options = parser.parse_args()
    configure_torch()
    measured = (row for name in selected(MODELS, options.only) for row in rows_of(name, options.count))
    rows = print_rows(HEAD, measured, ModelBudgetRow.cells, options.json)
    return report_missed([f"{row.model}, {row.budget_bytes} bytes: {fault}" for row in rows for fault in row.faults()])


if __name__ == "__main__":
    sys.exit(main())
