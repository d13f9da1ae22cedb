"""Compare the CPU time of all stages with an earlier checkout and with XLA's compiler, in alternating runs.

    git worktree add /tmp/before/recompute <commit>
    python -m recompute.benchmarks.compile_time.speed --against /tmp/before

Results: ratios of CPU seconds and of peak memory, printed only. Time: about 5 minutes.

The step is a 12-layer GPT with dropout and Adam in plain JAX. Each figure is the minimum of all rounds, since other
load only adds time. A printed ratio below 1 means that this checkout is faster than the earlier one. Without
`--against`, only the ratio to XLA's compile time is printed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from recompute.benchmarks.compile_time.gpt_step import add_width, gpt_step
from recompute.benchmarks.harness.command_line import add_rounds, benchmark_parser, report_progress
from recompute.benchmarks.harness.paths import ROOT
from recompute.benchmarks.harness.processes import ProcessCost, cpu_seconds, run_python
from recompute.examples.export import as_text

WHOLE_RUN = "import sys; from recompute.tools.recompute_opt import main; sys.exit(main(sys.argv[1:]))"
PARSE = """
import gc, sys
from time import process_time
from recompute.mlir_io.parser import parse_module
text = open(sys.argv[1]).read()
gc.disable()
times = []
for _ in range(3):
    start = process_time(); parse_module(text); times.append(process_time() - start)
print(min(times))
"""
VERSION = """
import sys
try:
    from recompute.tools.start import opt as main
except ImportError:
    from recompute.tools.recompute_opt import main
sys.argv[1:] = ["--version"]
sys.exit(main())
"""


def write_step(path: Path, width: int) -> float:
    """Write the GPT step as MLIR, and return the CPU seconds that XLA needs to compile it."""
    step = gpt_step(width)
    path.write_text(as_text(step))
    return cpu_seconds(step.lower().compile)


def measure(parent: Path, step: Path) -> dict[str, float]:
    """Run the checkout `parent/recompute` on a step, and return its figures: the peak memory in bytes, and all other
    figures in CPU seconds."""

    def run(code: str, *arguments: str) -> ProcessCost:
        return run_python(("-c", code, *arguments), parent, {"PYTHONPATH": str(parent)})

    whole = run(WHOLE_RUN, str(step), "-p", "recompute", "--print-debuginfo", "-o", os.devnull)
    return {
        "whole run": whole.cpu_seconds,
        "peak of memory": whole.peak_bytes,
        "parse": float(run(PARSE, str(step)).output),
        "--version": run(VERSION).cpu_seconds,
    }


def smallest(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the minimum of each figure over all runs of a checkout."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    """Run both checkouts alternately, and print the ratios of the minima."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="the folder that contains an earlier checkout named `recompute`"
    )
    add_rounds(parser, 3)
    add_width(parser)
    options = parser.parse_args()
    now, before = list[dict[str, float]](), list[dict[str, float]]()
    with tempfile.TemporaryDirectory() as folder:
        here, step = Path(folder) / "now", Path(folder) / "step.mlir"
        here.mkdir()
        (here / "recompute").symlink_to(ROOT)
        compile_seconds = write_step(step, options.width)
        report_progress(f"{step.read_text().count(' = ')} operations")
        for index in range(options.rounds):
            if options.against is not None:
                before.append(measure(options.against, step))
            now.append(measure(here, step))
            report_progress(f"round {index + 1} of {options.rounds}")
    figures = smallest(now)
    print(f"whole run / XLA's compile time: {figures['whole run'] / compile_seconds:.2f}")
    for name, earlier in smallest(before).items() if before else ():
        print(f"{name}, now / before: {figures[name] / earlier:.2f}")


if __name__ == "__main__":
    main()
