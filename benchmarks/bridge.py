"""Measure the time to convert a step between JAX and this compiler, and the time that `recompute.jax.jit` adds to XLA's
compilation.

    python -m recompute.benchmarks.bridge

The step is the 12-layer GPT of `speed.py`. All runs alternate in one process, and the minimum of several rounds counts;
only ratios are printed. The text route prints and parses on both sides; MLIR's verifier runs on both routes back.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from recompute import rewrite
from recompute.benchmarks.speed import gpt_step
from recompute.benchmarks.timing import cpu_seconds
from recompute.frontends.jax.bridge import read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.timing import TimedPart, time_parts


def lowered_step(width: int) -> tuple[Any, float]:
    """Return the step as JAX lowers it, and the CPU seconds that XLA needs to compile it."""
    lowered = gpt_step(width).lower()
    return lowered, cpu_seconds(lowered.compile)


def least(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Return the minimum seconds of each function; every round runs all of them."""
    return [min(times) for times in zip(*([cpu_seconds(work) for work in works] for _ in range(rounds)), strict=True)]


def main() -> None:
    """Time both directions of both routes, and print ratios of CPU seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    lowered, compiling = lowered_step(options.width)
    theirs = lowered.compiler_ir()
    module = rewrite(read(theirs)).module
    by_text, by_bridge = least(
        options.rounds, lambda: parse_module(lowered.as_text(debug_info=True)), lambda: read(theirs)
    )
    back_by_text, back_by_bridge = least(
        options.rounds,
        lambda: private.parse_mlir(print_module(module, debuginfo=True)),
        lambda: write(module, private.mlir_context()),
    )
    print(f"from JAX, text / bridge: {by_text / by_bridge:.1f}")
    print(f"to JAX, text / bridge: {back_by_text / back_by_bridge:.1f}")
    rewriting, stages = rewritten(theirs, max(2, options.rounds // 2))
    print(f"added / XLA's compile time, by text: {(rewriting + by_text + back_by_text) / compiling:.2f}")
    print(f"added / XLA's compile time, by the bridge: {(rewriting + by_bridge + back_by_bridge) / compiling:.2f}")
    print("of it, each / XLA's compile time:")
    for name, part in {"from JAX": by_bridge, "rewrite": rewriting, "to JAX": back_by_bridge}.items():
        print(f"  {name}: {part / compiling:.3f}")
    for name, part in stages.items():
        print(f"    {name}: {part / compiling:.3f}")


def rewritten(theirs: Any, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of the rewrite and the wall time of its parts, in the fastest round."""
    result: list[tuple[float, TimedPart]] = []
    for _ in range(rounds):
        module = read(theirs)
        with time_parts() as parts:
            took = cpu_seconds(lambda arguments=module: rewrite(arguments))
        result.append((took, parts))
    took, parts = min(result, key=lambda entry: entry[0])
    stages = {name: part.seconds for name, part in parts.parts.items()}
    return took, stages | {"rest": parts.rest_seconds}


if __name__ == "__main__":
    main()
