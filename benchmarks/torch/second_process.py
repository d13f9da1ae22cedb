"""Measure the disk cache of plans: the time of a plan in a first process, and in a second process with the same step.

    python -m recompute.benchmarks.torch.second_process             # the table of docs/measured/torch.md
    python -m recompute.benchmarks.torch.second_process --only unet --budget 50%

The two processes run one after the other with the same cache directory, which is empty at first. "plan" is the time of
import, search, export and proof (`GraphReport.seconds`). "first step" is the CPU time of compilation and one step. The
exit status is 1 if the second process repeats the search, or if results differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.parsers import add_only, benchmark_parser, matching, report_faults

MODELS = ("gpt6 dropout", "unet", "resnet50")
HEAD = ("model", "plan, first", "plan, second", "ratio", "first step, first", "first step, second")


def one_step(name: str, budget: str) -> dict[str, Any]:
    """Compile a model, run one step, and return its times and sums of its results."""
    import torch

    import recompute.torch as rt
    from recompute.benchmarks.torch.model_cases import make
    from recompute.benchmarks.torch.training_step import training_step

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    model, inputs = make(name)
    start = time.process_time()
    step = rt.compile(model, budget=budget, fullgraph=True)
    outcome = training_step(model, step, inputs)
    seconds = time.process_time() - start
    (graph,) = step.report().graphs
    sums = {key: tensor.double().sum().item() for key, tensor in sorted(outcome.tensors.items())}
    return {"plan": graph.seconds, "step": seconds, "stored": graph.is_stored, "peak": graph.peak_bytes, "sums": sums}


def run_in_new_process(name: str, budget: str, cache: str) -> dict[str, Any]:
    """Run `one_step` in a new process with the given cache directory."""
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "recompute.benchmarks.torch.second_process", "--step", name, "--budget", budget]
    environment = {**os.environ, "RECOMPUTE_CACHE_DIR": cache, "PYTHONPATH": path}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> int:
    """Print a table row for each model, with the times of the first and the second process."""
    parser = benchmark_parser(__doc__)
    add_only(parser)
    parser.add_argument("--budget", default="60%", help="the budget (default: 60%%)")
    parser.add_argument("--step", metavar="MODEL", help="run one step here, and print its times as JSON")
    options = parser.parse_args()
    if options.step:
        print(json.dumps(one_step(options.step, options.budget)))
        return 0
    faults: list[str] = []
    print(table_head(HEAD), flush=True)
    for name in matching(MODELS, options.only):
        with TemporaryDirectory() as cache:
            first, second = (run_in_new_process(name, options.budget, cache) for _ in range(2))
        ratio = second["plan"] / first["plan"]
        times = (f"{each:.2f} s" for each in (first["plan"], second["plan"]))
        steps = (f"{each['step']:.1f} s" for each in (first, second))
        print(table_row((name, *times, f"{ratio:.2f}", *steps)), flush=True)
        if not second["stored"] or first["stored"]:
            faults.append(f"missed: {name}: the second process did not read the plan from the cache")
        if any(first[key] != second[key] for key in ("peak", "sums")):
            faults.append(f"missed: {name}: the results of the second process differ")
    return report_faults(faults)


if __name__ == "__main__":
    sys.exit(main())
