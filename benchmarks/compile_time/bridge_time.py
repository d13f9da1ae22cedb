"""Measure the time to convert a step between JAX and xDSL, and the time that `recompute.jax.jit` adds to compilation.

    python -m recompute.benchmarks.compile_time.bridge_time

Results: ratios of CPU seconds, printed only. Time: about 5 minutes.

The step is the 12-layer GPT of `gpt_step.py`. All runs alternate in one process, and each time is the minimum of
several rounds. The text route prints and parses the module in both directions. On both routes, MLIR's verifier runs on
the way back to JAX.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recompute import rewrite
from recompute.benchmarks.compile_time.gpt_step import add_width, gpt_step
from recompute.benchmarks.harness.command_line import add_rounds, benchmark_parser
from recompute.benchmarks.harness.processes import cpu_seconds
from recompute.frontends.jax.bridge import read, write
from recompute.frontends.jax.internals import private
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.timing import TimedPart, time_parts


def minimum_seconds(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Return the minimum CPU seconds of each function over all rounds. Each round runs all functions."""
    return [min(times) for times in zip(*([cpu_seconds(work) for work in works] for _ in range(rounds)), strict=True)]


@dataclass(frozen=True)
class Conversion:
    """The minimum CPU seconds to convert a module in one direction: through text, and with the bridge."""

    by_text: float
    by_bridge: float


def time_conversions(lowered: Any, rounds: int) -> tuple[Conversion, Conversion]:
    """Time the conversion from JAX to xDSL, and the conversion of the rewritten module back to JAX."""
    jax_module = lowered.compiler_ir()
    rewritten = rewrite(read(jax_module)).module
    from_jax = minimum_seconds(rounds, lambda: parse_module(lowered.as_text(debug_info=True)), lambda: read(jax_module))
    to_jax = minimum_seconds(
        rounds,
        lambda: private.parse_mlir(print_module(rewritten, debuginfo=True)),
        lambda: write(rewritten, private.mlir_context()),
    )
    return Conversion(*from_jax), Conversion(*to_jax)


def time_rewrite(jax_module: Any, rounds: int) -> tuple[float, dict[str, float]]:
    """Return the CPU seconds of the rewrite and the wall times of its parts, from the fastest round."""
    fastest: tuple[float, TimedPart] | None = None
    for _ in range(rounds):
        module = read(jax_module)
        with time_parts() as parts:
            seconds = cpu_seconds(lambda module=module: rewrite(module))
        if fastest is None or seconds < fastest[0]:
            fastest = seconds, parts
    assert fastest is not None, "at least one round must run"
    seconds, parts = fastest
    stages = {name: part.seconds for name, part in parts.parts.items()}
    return seconds, stages | {"other parts": parts.rest_seconds}


def main() -> None:
    """Time both routes in both directions, and print ratios of CPU seconds."""
    parser = benchmark_parser(__doc__)
    add_rounds(parser, 7)
    add_width(parser)
    options = parser.parse_args()
    lowered = gpt_step(options.width).lower()
    compile_seconds = cpu_seconds(lowered.compile)
    from_jax, to_jax = time_conversions(lowered, options.rounds)
    print(f"from JAX, text / bridge: {from_jax.by_text / from_jax.by_bridge:.1f}")
    print(f"to JAX, text / bridge: {to_jax.by_text / to_jax.by_bridge:.1f}")
    rewrite_seconds, stages = time_rewrite(lowered.compiler_ir(), max(2, options.rounds // 2))
    by_text = rewrite_seconds + from_jax.by_text + to_jax.by_text
    by_bridge = rewrite_seconds + from_jax.by_bridge + to_jax.by_bridge
    print(f"added / XLA's compile time, by text: {by_text / compile_seconds:.2f}")
    print(f"added / XLA's compile time, by the bridge: {by_bridge / compile_seconds:.2f}")
    print("parts of the added time / XLA's compile time:")
    parts = {"from JAX": from_jax.by_bridge, "rewrite": rewrite_seconds, "to JAX": to_jax.by_bridge}
    for name, seconds in parts.items():
        print(f"  {name}: {seconds / compile_seconds:.3f}")
    for name, seconds in stages.items():
        print(f"    {name}: {seconds / compile_seconds:.3f}")


if __name__ == "__main__":
    main()
