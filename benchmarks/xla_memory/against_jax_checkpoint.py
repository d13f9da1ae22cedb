"""Compare recomputation with `jax.checkpoint` on every block, by the bytes and FLOPs of the same step under XLA.

    python -m recompute.benchmarks.xla_memory.against_jax_checkpoint
    python -m recompute.benchmarks.xla_memory.against_jax_checkpoint gpt --json results.json
    python -m recompute.benchmarks.xla_memory.against_jax_checkpoint --write  # also write docs/measured.json

Results: the bytes and FLOPs that XLA:CPU reports; `--write` updates README.md and the pages that
quote these numbers, as ratios to the plain step. Time: about 10 minutes.

Each example is compiled three times with barriers kept: plain, with every block under `jax.checkpoint`, and after
`recompute-opt`, which proves its output. Nothing is executed; `rounding/distances.py` compares results. The exit
status is 1 if a requirement is not met.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import jax
import jaxlib.version

from recompute.benchmarks.harness.command_line import add_json, add_names, add_size, benchmark_parser, write_json
from recompute.benchmarks.harness.compiled_cost import flops
from recompute.benchmarks.harness.paths import ROOT
from recompute.examples.export import BUILDERS
from recompute.examples.with_jax import PIPELINE, compile_keeping_barriers, recompute
from recompute.support.units import format_bytes

MEASURED, PAGES = ROOT / "docs" / "measured.json", ROOT / "docs" / "generate_numbers.py"
PLAIN, CHECKPOINT, OURS = "plain", "jax.checkpoint", "ours"
# The pages also show the result without recompute-stagger.
UNSTAGGERED, UNSTAGGERED_PIPELINE = "ours, stagger=false", "recompute{stagger=false}"
TEMP_SLACK = 0.01
FLOPS_SLACK = 0.005
"""The shares by which our temporaries and FLOPs may exceed those with `jax.checkpoint`."""


@dataclass(frozen=True)
class CompiledCost:
    """The bytes of memory and the FLOPs of a compiled step, as XLA reports them."""

    temp_bytes: int
    alias_bytes: int
    argument_bytes: int
    output_bytes: int
    flops: float
    dots: int
    compile_seconds: float


@dataclass(frozen=True)
class ExampleComparison:
    """The costs of one example in one size, by the name of the variant."""

    example: str
    size: str
    costs: dict[str, CompiledCost]

    def missed(self) -> Iterator[str]:
        """Yield a message for each requirement that the rewritten step does not meet."""
        plain, checkpoint, ours = (self.costs[name] for name in (PLAIN, CHECKPOINT, OURS))
        if ours.temp_bytes > checkpoint.temp_bytes * (1 + TEMP_SLACK):
            yield f"{ours.temp_bytes} bytes of temporaries, but {checkpoint.temp_bytes} with {CHECKPOINT}"
        if ours.flops > checkpoint.flops * (1 + FLOPS_SLACK):
            yield f"{ours.flops:.0f} FLOPs, but {checkpoint.flops:.0f} with {CHECKPOINT}"
        if ours.alias_bytes != plain.alias_bytes:
            yield f"{ours.alias_bytes} aliased bytes, but {plain.alias_bytes} in the plain step"


def lower_all(example: str, size: str, pipeline: str) -> dict[str, jax.stages.Lowered]:
    """Lower an example in three variants: plain, with `jax.checkpoint`, and rewritten by a pipeline of passes."""
    plain = BUILDERS[example](size).lower()
    checkpoint = BUILDERS[example](size, checkpoint=True).lower()
    return {PLAIN: plain, CHECKPOINT: checkpoint, OURS: recompute(plain, pipeline)}


def cost_of(lowered: jax.stages.Lowered) -> CompiledCost:
    """Compile a variant of an example with barriers kept, and return the cost that XLA reports."""
    start = time.perf_counter()
    compiled = compile_keeping_barriers(lowered)
    seconds = time.perf_counter() - start
    memory, text = compiled.memory_analysis(), compiled.as_text()
    assert memory is not None and text is not None, "XLA:CPU reports both"
    return CompiledCost(
        temp_bytes=memory.temp_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        flops=flops(compiled),
        dots=len(re.findall(r" dot\(", text)),
        compile_seconds=seconds,
    )


def compare(example: str, size: str, pipeline: str, unstaggered: bool = False) -> ExampleComparison:
    """Measure the variants of an example. `unstaggered`: whether to also rewrite the example without
    `recompute-stagger`."""
    lowered = lower_all(example, size, pipeline)
    if unstaggered:
        lowered[UNSTAGGERED] = recompute(lowered[PLAIN], UNSTAGGERED_PIPELINE)
    return ExampleComparison(example, size, {name: cost_of(each) for name, each in lowered.items()})


def table(comparison: ExampleComparison) -> Iterator[str]:
    """Yield the lines of a table with a row for each variant, and ratios to the plain step and to `jax.checkpoint`."""
    plain, checkpoint = comparison.costs[PLAIN], comparison.costs[CHECKPOINT]
    yield (
        f"{comparison.example + ' ' + comparison.size:21} {'temporaries':>11} {'/plain':>7} {'/ckpt':>7} "
        f"{'GFLOP':>8} {'/plain':>7} {'/ckpt':>7} {'dots':>5} {'aliased':>10} {'arguments':>9} {'results':>9} {'s':>4}"
    )
    for name, cost in comparison.costs.items():
        yield (
            f"  {name:19} {format_bytes(cost.temp_bytes):>11} {cost.temp_bytes / plain.temp_bytes:7.3f} "
            f"{cost.temp_bytes / checkpoint.temp_bytes:7.3f} {cost.flops / 1e9:8.2f} {cost.flops / plain.flops:7.3f} "
            f"{cost.flops / checkpoint.flops:7.3f} {cost.dots:5} {format_bytes(cost.alias_bytes):>10} "
            f"{format_bytes(cost.argument_bytes):>9} {format_bytes(cost.output_bytes):>9} {cost.compile_seconds:4.1f}"
        )


def reproducible_costs(comparisons: list[ExampleComparison]) -> str:
    """Return the costs that depend on the installed versions but not on the machine, as JSON for the documentation."""
    costs = {
        entry.example: {
            name: {"temp_bytes": cost.temp_bytes, "flops": cost.flops} for name, cost in entry.costs.items()
        }
        for entry in comparisons
    }
    result = {
        "versions": {"jax": jax.__version__, "jaxlib": jaxlib.version.__version__},
        "against_jax_checkpoint": costs,
    }
    return json.dumps(result, indent=1) + "\n"


def main() -> None:
    """Measure the requested examples, print their tables, and exit with 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "example", BUILDERS)
    add_size(parser)
    pipeline = "the passes that rewrite the step, as for `recompute-opt -p` (default: %(default)s)"
    parser.add_argument("--pipeline", default=PIPELINE, metavar="PASSES", help=pipeline)
    add_json(parser)
    parser.add_argument("--write", action="store_true", help=f"write docs/{MEASURED.name} and the pages that quote it")
    options = parser.parse_args()
    if options.write and (options.names or options.size != "large" or options.pipeline != PIPELINE):
        parser.error("--write measures all examples with the defaults: leave out the other options")
    comparisons: list[ExampleComparison] = []
    for example in options.names or BUILDERS:
        comparison = compare(example, options.size, options.pipeline, options.write)
        comparisons.append(comparison)
        lines = [*table(comparison), *(f"  MISSED: {line}" for line in comparison.missed())]
        print("\n".join(lines), flush=True)
    records = [asdict(comparison) | {"missed": list(comparison.missed())} for comparison in comparisons]
    write_json(options.json, records)
    if options.write:
        MEASURED.write_text(reproducible_costs(comparisons))
        subprocess.run([sys.executable, PAGES], check=True)
    sys.exit(any(list(comparison.missed()) for comparison in comparisons))


if __name__ == "__main__":
    main()
