"""Compare the CPU time of all stages with an earlier checkout and with XLA's compiler, in alternating runs.

    git worktree add /tmp/before/recompute <commit>
    python -m recompute.benchmarks.compile_time.speed --against /tmp/before

The step is a 12-layer GPT with dropout and Adam in plain JAX. The minimum of all rounds counts, since other load only
adds time. A printed ratio below 1 means that this checkout is faster than the earlier one. Without `--against`, only
the ratio to XLA's compile time is printed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.process_cost import ProcessCost, cpu_seconds, run_python
from recompute.examples.export import as_text
from recompute.examples.models import gpt
from recompute.examples.models.step import Step
from recompute.test.imports import ROOT

LAYERS = 12
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


def gpt_step(width: int) -> Step:
    """Return the training step of a GPT with `LAYERS` layers, batch 2, and 128 tokens of `width` features."""
    gpt.LAYERS = LAYERS
    gpt.SIZES["small"] = gpt.Config(batch=2, length=128, width=width, heads=width // 64, vocabulary=2048)
    return gpt.build("small", train=True)


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


FIGURES = ("whole run", "peak of memory", "parse", "--version")


def main() -> None:
    """Run both checkouts alternately, and print the ratios of the minima."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--against", type=Path, help="a folder that contains an earlier checkout named `recompute`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    now: dict[str, list[float]] = {name: [] for name in FIGURES}
    before: dict[str, list[float]] = {name: [] for name in FIGURES}
    with tempfile.TemporaryDirectory() as folder:
        here, step = Path(folder) / "now", Path(folder) / "step.mlir"
        here.mkdir()
        (here / "recompute").symlink_to(ROOT)
        compiling = write_step(step, options.width)
        print(f"{step.read_text().count(' = ')} operations", file=sys.stderr)
        for index in range(options.rounds):
            for parent, result in ((options.against, before), (here, now)):
                if parent is not None:
                    measure(parent, step, result)
            print(f"round {index + 1} of {options.rounds}", file=sys.stderr)
    print(f"whole run / XLA's compile time: {min(now['whole run']) / compiling:.2f}")
    for name in FIGURES if options.against else ():
        print(f"{name}, now / before: {min(now[name]) / min(before[name]):.2f}")


if __name__ == "__main__":
    main()
