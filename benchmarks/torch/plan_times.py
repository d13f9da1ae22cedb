"""Measure the CPU seconds of each part of a plan (import, search, export, proof) and of the first step.

    python -m recompute.benchmarks.torch.plan_times                     # the table of docs/measured/torch_plan_times.md
    python -m recompute.benchmarks.torch.plan_times --only resnet50 --budget 50%

Results: CPU seconds, in docs/measured/torch_plan_times.md. Time: about 1 minute.

"plan and proof" is the time of the search, the rewrite, the export and the proof. "min_cut" and "ours" each give the
time of compilation and of one step in program order: with PyTorch's `min_cut`, and with `recompute.torch`. Times are
CPU seconds of one process, on which other processes have little effect. No plan is read from the disk cache. The exit
status is 1 if a time exceeds its limit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from recompute.benchmarks.harness.command_line import add_only, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.processes import cpu_seconds, with_cpu_seconds
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.model_cases import CASES, make
from recompute.benchmarks.torch.model_forms import ModelRun, baselines
from recompute.benchmarks.torch.training_step import training_step
from recompute.frontends.torch.partition import partitioner

MODELS = ("gpt6 dropout", "gpt12 dropout", "resnet50", "unet")
IMPORT_LIMIT, PLAN_LIMIT, STEP_LIMIT = 0.3, 2.5, 1.5
"""The limits of three times: the import in seconds per 1,000 nodes, plan and proof in seconds per 1,800 nodes, and the
first step as a multiple of the first step with `min_cut`."""
HEAD = ("model", "nodes", "import s", "per 1,000", "plan and proof s", "per 1,800", "min_cut s", "ours s", "ratio")


@dataclass
class Clock:
    """The CPU seconds of each part of a plan, and the number of nodes of its graph."""

    nodes: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def time_calls(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that the time of its calls is added to the given part."""

        def call(*args: Any, **keywords: Any) -> Any:
            result, seconds = with_cpu_seconds(lambda: function(*args, **keywords))
            self.seconds[part] = self.seconds.get(part, 0.0) + seconds
            return result

        return call


def first_step(name: str, wrap: Callable[[Any], Any]) -> float:
    """Compile a model, run one step, and return the CPU seconds of both together."""
    torch._dynamo.reset()
    model, inputs = make(name)
    return cpu_seconds(lambda: training_step(model, wrap(model), inputs))


def time_plan(name: str, budget: str) -> tuple[Clock, float]:
    """Return the times of the parts of a plan, and the CPU seconds of the first step."""
    import recompute.torch as rt

    clock, read = Clock(), partitioner.read_joint

    def read_and_count(joint: torch.fx.GraphModule, *args: Any, **keywords: Any) -> Any:
        clock.nodes = sum(node.op == "call_function" for node in joint.graph.nodes)
        return read(joint, *args, **keywords)

    partitioner.read_joint = clock.time_calls("import", read_and_count)
    whole = partitioner.Partitioner.partition
    partitioner.Partitioner.partition = clock.time_calls("plan", whole)
    try:
        seconds = first_step(name, lambda model: rt.compile(model, budget=budget, fullgraph=True))
    finally:
        partitioner.read_joint, partitioner.Partitioner.partition = read, whole
    return clock, seconds


def print_row(name: str, budget: str) -> Iterator[str]:
    """Measure a model, print its table row, and yield a message for each time that exceeds its limit."""
    by_min_cut = next(form for form in baselines() if form.name == "min_cut")
    min_cut_seconds = first_step(name, lambda model: by_min_cut.wrap(ModelRun(model, "")))
    clock, own_seconds = time_plan(name, budget)
    import_seconds, plan_seconds = clock.seconds["import"], clock.seconds["plan"]
    per_1000, per_1800 = 1000 * import_seconds / clock.nodes, 1800 * plan_seconds / clock.nodes
    ratio = own_seconds / min_cut_seconds
    seconds = (import_seconds, per_1000, plan_seconds, per_1800, min_cut_seconds, own_seconds, ratio)
    print(table_row((name, clock.nodes, *(f"{value:.2f}" for value in seconds))), flush=True)
    if per_1000 > IMPORT_LIMIT:
        yield f"{name}: the import takes {per_1000:.2f} s for 1,000 nodes, above the limit of {IMPORT_LIMIT} s"
    if per_1800 > PLAN_LIMIT:
        yield f"{name}: plan and proof take {per_1800:.2f} s for 1,800 nodes, above the limit of {PLAN_LIMIT} s"
    if ratio > STEP_LIMIT:
        yield f"{name}: the first step takes {ratio:.2f} × the time with min_cut, above the limit of {STEP_LIMIT}"


def main() -> int:
    """Print a table row for each model, and return 1 if a time exceeds its limit."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", CASES, default=MODELS)
    budget = "the peak within which the step is planned, as a share of the plain step's peak (default: 60%%)"
    parser.add_argument("--budget", default="60%", help=budget)
    options = parser.parse_args()
    os.environ["RECOMPUTE_CACHE_DIR"] = ""
    configure_torch()
    print(table_head(HEAD), flush=True)
    first_step("mlp batchnorm", lambda model: torch.compile(model, backend="aot_eager"))  # loads Dynamo
    names = selected(CASES, options.only or MODELS)
    return report_missed([line for name in names for line in print_row(name, options.budget)])


if __name__ == "__main__":
    sys.exit(main())
