"""Measure how the CPU time of every stage grows with the number of operations, as an exponent (1 is linear).

    python -m recompute.benchmarks.compile_time.growth  # all kinds of steps, 1,000 to 100,000 operations
    python -m recompute.benchmarks.compile_time.growth chain marks --sizes 1000 10000

Results: CPU seconds and exponents; docs/compile_time.md summarizes them. Time: about 20 minutes.

Each stage runs separately on the output of the previous stages, with the garbage collector configured as in the tools.
The exit status is 1 if an exponent is above its limit.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.memory.timeline import eager_timeline, timeline
from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.benchmarks.compile_time.long_steps import KINDS, Kind, blocks_for, long_step
from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.growth_exponent import growth_exponent
from recompute.benchmarks.harness.processes import cpu_seconds, with_cpu_seconds
from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.garbage import rare_collections
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline import inline
from recompute.transforms.inline_gradient import inline_gradient
from recompute.transforms.inline_segments import inline_segments
from recompute.transforms.lower import lower
from recompute.transforms.stagger import stagger
from recompute.transforms.verify import verify

SIZES = (1_000, 10_000, 100_000)
BAR = 1.2
"""The largest allowed exponent."""
NOISE = 0.02
"""The smallest meaningful measurement in seconds, given the resolution of the clock."""

Stage = Callable[[ModuleOp], object]


def _flatten(module: ModuleOp) -> None:
    inline(module)
    inline_gradient(module)
    inline_segments(module)


def _phases(module: ModuleOp) -> None:
    phases(functions_of(module)[0])


def _timeline(module: ModuleOp) -> None:
    timeline(functions_of(module)[0])


def _eager(module: ModuleOp) -> None:
    function = functions_of(module)[0]
    classified = phases(function)
    assert classified is not None, "every step has a gradient"
    eager_timeline(function, classified)


def stages(selection: Selection, original: ModuleOp) -> Iterator[tuple[str, Stage]]:
    """Yield the stages with their names, in the order in which they run on the parsed module."""
    yield "verify", verify_module
    yield "flatten", _flatten
    yield "phases", _phases
    yield "mark", lambda module: mark(module, selection)
    yield "clone", clone
    yield "cse", cse
    yield "verify copies", verify
    yield "timeline", _timeline
    yield "eager timeline", _eager
    yield "xla timeline", lambda module: xla_timeline(functions_of(module)[0])
    yield "lower", lambda module: lower(module, "stablehlo")
    yield "stagger", stagger
    yield "proof", lambda module: _demand_proof(bool(prove(original, module)))
    yield "print", lambda module: print_module(module, debuginfo=True)


def _demand_proof(proved: bool) -> None:
    assert proved, "the rewritten step must be proved equal to the original"


def measure(kind: Kind, operations: int) -> dict[str, float]:
    """Return the CPU seconds of each stage; the last entry is the total of the pass `recompute`."""
    blocks = blocks_for(operations)
    text, seconds = long_step(kind, blocks), dict[str, float]()
    module, seconds["parse"] = with_cpu_seconds(lambda: parse_module(text, "step.mlir"))
    original, whole = module.clone(), module.clone()
    selection = kind.select(blocks)
    for name, stage in stages(selection, original):
        gc.collect()
        seconds[name] = cpu_seconds(partial(stage, module))
    gc.collect()
    seconds["recompute"] = cpu_seconds(lambda: rewrite_in_place(whole, RecomputeOptions(selection)))
    return seconds


def report(name: str, sizes: Sequence[int]) -> bool:
    """Print the measurements of one kind of step, and return whether every exponent is within its limit."""
    measured = [measure(KINDS[name], size) for size in sizes]
    successive = list(pairwise(zip(sizes, measured, strict=True)))
    print(f"\n{name:16}" + "".join(f"{size:>11,}" for size in sizes) + "   exponents")
    fits = True
    for stage in measured[0]:
        exponents = [
            growth_exponent((smaller, larger), (max(before[stage], NOISE), max(after[stage], NOISE)))
            for (smaller, before), (larger, after) in successive
        ]
        seconds = "".join(f"{entry[stage]:10.2f}s" for entry in measured)
        missed = max(exponents, default=0) > BAR
        print(f"{stage:16}{seconds}   " + " ".join(f"{value:5.2f}" for value in exponents) + ("  <-- above" * missed))
        fits = fits and not missed
    sys.stdout.flush()
    return fits


@rare_collections()
def main() -> int:
    """Print seconds and exponents for each kind of step, and return 1 if an exponent is above its limit."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "kind", KINDS)
    sizes = f"the numbers of operations of the steps (default: {' '.join(map(str, SIZES))})"
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="COUNT", help=sizes)
    options = parser.parse_args()
    return not all([report(name, options.sizes) for name in options.names or KINDS])


if __name__ == "__main__":
    sys.exit(main())
