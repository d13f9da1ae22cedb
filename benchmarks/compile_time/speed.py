"""Compare the CPU time of all stages with an earlier checkout and with XLA's compiler, in alternating runs.

    git worktree add /tmp/before/recompute <commit>
    python -m recompute.benchmarks.compile_time.speed --against /tmp/before

Results: ratios of CPU seconds and of peak memory, printed only. Time: about 5 minutes.

The step is a 12-layer GPT with dropout and Adam in plain JAX. The minimum of all rounds counts, since other load only
adds time. A printed ratio below 1 means that this checkout is faster than the earlier one. Without `--against`, only
the ratio to XLA's compile time is printed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from recompute.benchmarks.compile_time.gpt_step import add_width, gpt_step
from recompute.benchmarks.harness.command_line import add_rounds, benchmark_parser, report_progress
from recompute.benchmarks.harness.paths import ROOT
from recompute.benchmarks.harness.processes import ProcessCost, cpu_seconds, run_python
from recompute.examples.export import as_text

FIGURES = ("whole run", "peak of memory", "parse", "--version")
"""The measurements of a checkout: CPU seconds, but bytes for the peak of memory."""
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


def measure(parent: Path, step: Path, result: dict[str, list[float]]) -> None:
    """Run the checkout `parent/recompute` on a step, and append each of `FIGURES` to its list in `result`."""

    def run(code: str, *arguments: str) -> ProcessCost:
        return run_python(("-c", code, *arguments), parent, {"PYTHONPATH": str(parent)})

    whole = run(WHOLE_RUN, str(step), "-p", "recompute", "--print-debuginfo", "-o", os.devnull)
    result["whole run"].append(whole.cpu_seconds)
    result["peak of memory"].append(whole.peak_bytes)
    result["parse"].append(float(run(PARSE, str(step)).output))
    result["--version"].append(run(VERSION).cpu_seconds)


def main() -> None:
    """Run both checkouts alternately, and print the ratios of the minima."""
    parser = benchmark_parser(__doc__)
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER", help="the folder that contains an earlier checkout named `recompute`"
    )
    add_rounds(parser, 3)
    add_width(parser)
    options = parser.parse_args()
    now: dict[str, list[float]] = {name: [] for name in FIGURES}
    before: dict[str, list[float]] = {name: [] for name in FIGURES}
    with tempfile.TemporaryDirectory() as folder:
        here, step = Path(folder) / "now", Path(folder) / "step.mlir"
        here.mkdir()
        (here / "recompute").symlink_to(ROOT)
        compile_seconds = write_step(step, options.width)
        report_progress(f"{step.read_text().count(' = ')} operations")
        for index in range(options.rounds):
            for parent, result in ((options.against, before), (here, now)):
                if parent is not None:
                    measure(parent, step, result)
            report_progress(f"round {index + 1} of {options.rounds}")
    print(f"whole run / XLA's compile time: {min(now['whole run']) / compile_seconds:.2f}")
    for name in FIGURES if options.against else ():
        print(f"{name}, now / before: {min(now[name]) / min(before[name]):.2f}")


if __name__ == "__main__":
    main()
