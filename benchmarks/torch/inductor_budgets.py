"""Check that the peak of a step compiled by Inductor is within the budget, as the allocator measures it.

    python -m recompute.benchmarks.torch.inductor_budgets  # the table of docs/measured/torch.md
    python -m recompute.benchmarks.torch.inductor_budgets --only 'pytorch *' --shares 0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2

Results: peaks in MB, and FLOPs as multiples of the plain step's, in docs/measured/torch.md. Time: about 10 minutes.

Budgets are shares of the peak of `torch.compile(model)`. Its results are the reference, because Inductor draws other
random numbers than eager mode, and rounds differently. Peaks are measured in the second step, by the allocator's events
on the CPU and by `torch.cuda.max_memory_allocated` on a GPU. They include the temporaries of kernels, and exclude
weights, buffers and inputs.

The exit status is 1 if a step exceeds its budget, if its final random state differs, or if a result differs by more
than rounding. A refused budget is not a failure. PyTorch's cache of compiled steps is disabled.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from recompute.benchmarks.harness.command_line import add_only, add_shares, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
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
    """ModelRun two steps, and return the first step's results, the second step's peak, and the wrapped model."""
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


def distance(outcome: Outcome, other: Outcome) -> float:
    """Return the largest relative distance of a result, ignoring the random state."""
    lines = [line for line in outcome.differences(other) if not line.startswith("random state")]
    return max((float(line.rpartition(": ")[2]) for line in lines), default=0.0)


def line_within(name: str, share: float, plain: Outcome, plain_bytes: int) -> tuple[tuple[Any, ...], str]:
    """Return the table row of a model within a budget, and its faults as one string."""
    import recompute.torch as rt

    budget = int(share * plain_bytes)
    megabytes = f"{budget / 1e6:.2f}"
    try:
        outcome, peak, step = measure(name, lambda model: rt.compile(model, budget=share, backend="inductor"))
    except Exception as error:
        if not is_refusal(error):
            return (name, f"{share:g}", megabytes, "", "", "", "", ""), describe_error(error)
        refused = f"refused, {lowest_stated_peak(str(error)) / 1e6:.2f}"
        return (name, f"{share:g}", megabytes, refused, "", "", "", ""), ""
    (graph,) = step.report().graphs
    state_is_equal = torch.equal(outcome.tensors["random state"], plain.tensors["random state"])
    difference = distance(plain, outcome)
    cells = (
        name,
        f"{share:g}",
        megabytes,
        f"{peak / 1e6:.2f}",
        len(graph.rounds),
        f"{1 + graph.extra_share:.4f}",
        f"{difference:.1e}",
        "equal" if state_is_equal else "NO",
    )
    faults = [
        *([f"{peak} bytes exceed the budget of {budget} bytes"] if peak > budget else []),
        *([] if state_is_equal else ["the final random state differs"]),
        *([f"a result differs by {difference:.1e}"] if difference > ROUNDING else []),
        *([graph.reason or graph.unmeasured] if graph.reason or graph.unmeasured else []),
    ]
    return cells, "; ".join(faults)


def checkpoint_line(name: str) -> tuple[Any, ...]:
    """Return the table row of a model with `torch.utils.checkpoint` around each block, compiled by Inductor."""
    case: ModelCase = CASES[name]
    try:
        _, peak, _ = measure(name, lambda model: torch.compile(checkpoint_blocks(ModelRun(model, case.blocks))))
    except Exception as error:
        return (name, "checkpoint", "", type(error).__name__, "", "", "", "")
    return (name, "checkpoint", "", f"{peak / 1e6:.2f}", "", "", "", "")


def main() -> int:
    """Print a table row for each model and budget, and return 1 if there are faults."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", CASES, default=MODELS)
    add_shares(parser, SHARES)
    options = parser.parse_args()
    configure_torch(reuse_compiled_steps=False)
    print(table_head(HEAD), flush=True)
    faults: list[str] = []
    for name in selected(CASES, options.only or MODELS):
        plain, plain_bytes, _ = measure(name, torch.compile)
        print(table_row((name, "torch.compile", "", f"{plain_bytes / 1e6:.2f}", "", "1.0000", "", "")), flush=True)
        print(table_row(checkpoint_line(name)), flush=True)
        for share in options.shares:
            cells, fault = line_within(name, share, plain, plain_bytes)
            print(table_row(cells), flush=True)
            faults += [f"{name}, budget {share:g}: {fault}"] if fault else []
    return report_missed(faults)


if __name__ == "__main__":
    sys.exit(main())
