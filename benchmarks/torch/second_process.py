"""Measure the disk cache of plans: the time of a plan in a first process, and in a second process with the same step.

    python -m recompute.benchmarks.torch.second_process             # the table of docs/measured/torch_plan_times.md
    python -m recompute.benchmarks.torch.second_process --only unet --budget 50%

Results: CPU seconds, in docs/measured/torch_plan_times.md. Time: about 1 minute.

The two processes run one after the other with the same cache directory, which is empty at first. "plan" is the time of
import, search, export and proof (`GraphReport.seconds`). "first step" is the CPU time of compilation and one step. The
exit status is 1 if the second process repeats the search, or if results differ.
"""

from __future__ import annotations

import json
import sys
from tempfile import TemporaryDirectory
from typing import Any

from recompute.benchmarks.harness.command_line import add_only, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.processes import json_from_module, with_cpu_seconds

MODELS = ("gpt6 dropout", "unet", "resnet50")
HEAD = ("model", "plan, first", "plan, second", "ratio", "first step, first", "first step, second")


def one_step(name: str, budget: str) -> dict[str, Any]:
    """Compile a model, run one step, and return its times and sums of its results."""
    import recompute.torch as rt
    from recompute.benchmarks.torch.configure import configure_torch
    from recompute.benchmarks.torch.model_cases import make
    from recompute.benchmarks.torch.training_step import Outcome, training_step

    configure_torch()
    model, inputs = make(name)

    def compile_and_run() -> tuple[Any, Outcome]:
        step = rt.compile(model, budget=budget, fullgraph=True)
        return step, training_step(model, step, inputs)

    (step, outcome), seconds = with_cpu_seconds(compile_and_run)
    (graph,) = step.report().graphs
    sums = {key: tensor.double().sum().item() for key, tensor in sorted(outcome.tensors.items())}
    return {"plan": graph.seconds, "step": seconds, "stored": graph.is_stored, "peak": graph.peak_bytes, "sums": sums}


def run_in_new_process(name: str, budget: str, cache: str) -> dict[str, Any]:
    """Run `one_step` in a new process with the given cache directory."""
    arguments = ("--step", name, "--budget", budget)
    environment = {"RECOMPUTE_CACHE_DIR": cache}
    return json_from_module("recompute.benchmarks.torch.second_process", *arguments, environment=environment)


def main() -> int:
    """Print a table row for each model, with the times of the first and the second process."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "model", MODELS)
    budget = "the peak within which the step is planned, as a share of the plain step's peak (default: 60%%)"
    parser.add_argument("--budget", default="60%", help=budget)
    step = "only run one step of this model in this process, and print its times in seconds as JSON"
    parser.add_argument("--step", metavar="MODEL", help=step)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(one_step(options.step, options.budget)))
        return 0
    faults: list[str] = []
    print(table_head(HEAD), flush=True)
    for name in selected(MODELS, options.only):
        with TemporaryDirectory() as cache:
            first, second = (run_in_new_process(name, options.budget, cache) for _ in range(2))
        ratio = second["plan"] / first["plan"]
        times = (f"{each:.2f} s" for each in (first["plan"], second["plan"]))
        steps = (f"{each['step']:.1f} s" for each in (first, second))
        print(table_row((name, *times, f"{ratio:.2f}", *steps)), flush=True)
        if not second["stored"] or first["stored"]:
            faults.append(f"{name}: the second process did not read the plan from the cache")
        if any(first[key] != second[key] for key in ("peak", "sums")):
            faults.append(f"{name}: the results of the second process differ")
    return report_missed(faults)


if __name__ == "__main__":
    sys.exit(main())
