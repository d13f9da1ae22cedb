"""Measure the time to convert a step between JAX and xDSL, and the time that `recompute.jax.jit` adds to compilation.

    python -m recompute.benchmarks.compile_time.bridge_time

The step is the 12-layer GPT of `speed.py`. All runs alternate in one process, and the minimum of several rounds counts.
Only ratios are printed. The text route prints and parses the module in both directions. On both routes, MLIR's verifier
runs on the way back to JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recompute import rewrite
from recompute.benchmarks.compile_time.speed import gpt_step
from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.process_cost import cpu_seconds
from recompute.frontends.jax.bridge import read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.timing import TimedPart, time_parts


def lowered_step(width: int) -> tuple[Any, float]:
    """Return the step lowered by JAX, and the CPU seconds that XLA needs to compile it."""
    lowered = gpt_step(width).lower()
    return lowered, cpu_seconds(lowered.compile)


def minimum_seconds(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Return the minimum CPU seconds of each function over all rounds. Each round runs all functions."""
    return [min(times) for times in zip(*([cpu_seconds(work) for work in works] for _ in range(rounds)), strict=True)]


def main() -> None:
    """Time both routes in both directions, and print ratios of CPU seconds."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=768)
    options = parser.parse_args()
    lowered, compiling = lowered_step(options.width)
    theirs = lowered.compiler_ir()
    module = rewrite(read(theirs)).module
    by_text, by_bridge = minimum_seconds(
        options.rounds, lambda: parse_module(lowered.as_text(debug_info=True)), lambda: read(theirs)
    )
    back_by_text, back_by_bridge = minimum_seconds(
        options.rounds,
        lambda: private.parse_mlir(print_module(module, debuginfo=True)),
        lambda: write(module, private.mlir_context()),
    )
    print(f"from JAX, text / bridge: {by_text / by_bridge:.1f}")
    print(f"to JAX, text / bridge: {back_by_text / back_by_bridge:.1f}")
    rewriting, stages = time_rewrite(theirs, max(2, options.rounds // 2))
    print(f"added / XLA's compile time, by text: {(rewriting + by_text + back_by_text) / compiling:.2f}")
    print(f"added / XLA's compile time, by the bridge: {(rewriting + by_bridge + back_by_bridge) / compiling:.2f}")
    print("parts of the added time / XLA's compile time:")
    for name, part in {"from JAX": by_bridge, "rewrite": rewriting, "to JAX": back_by_bridge}.items():
        print(f"  {name}: {part / compiling:.3f}")
    for name, part in stages.items():
        print(f"    {name}: {part / compiling:.3f}")


def time_rewrite(theirs: Any, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of the rewrite and the wall times of its parts, from the fastest round."""
    result: list[tuple[float, TimedPart]] = []
    for _ in range(rounds):
        module = read(theirs)
        with time_parts() as parts:
            took = cpu_seconds(lambda arguments=module: rewrite(arguments))
        result.append((took, parts))
    took, parts = min(result, key=lambda entry: entry[0])
    stages = {name: part.seconds for name, part in parts.parts.items()}
    return took, stages | {"other parts": parts.rest_seconds}


if __name__ == "__main__":
    main()
