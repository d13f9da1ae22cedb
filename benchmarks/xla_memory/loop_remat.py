"""Compare recomputation of loops with `jax.checkpoint` inside the loops, by XLA's temporaries and FLOPs.

    python -m recompute.benchmarks.xla_memory.loop_remat
    python -m recompute.benchmarks.xla_memory.loop_remat lstm transformer --size small

Results: temporaries and FLOPs as multiples of the plain step's, in docs/measured/loops.md. Time: about 10 minutes.

Each step is compiled plain, with the framework's own remat inside the loops, and by `recompute.jax.jit`. The plain step
and remat are compiled with default flags and with barriers kept, and the smaller result is used. The last columns show
the loop schedules `keep(30%)` and `periodic(auto)`. XLA counts the FLOPs of a loop body once. The exit status is 1 if
temporaries exceed 1.03 times the temporaries of remat (accumulation: 1.02), or if the FLOPs of the transformers differ
by more than 0.5 %.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from recompute.benchmarks.harness.command_line import add_names, add_size, benchmark_parser, report_missed
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS, flags_with_host_devices

os.environ["XLA_FLAGS"] = flags_with_host_devices(8)

import jax

import recompute
from recompute.examples.models.step import Step

NAMES = ("transformer", "flax_transformer", "lstm", "accumulation", "devices", "ode")
SCHEDULES = ("keep(30%)", "periodic(auto)")
FLOPS_BAR = 0.005
Cost = tuple[int, float]
"""The bytes of temporaries, and the FLOPs."""


def bar(name: str) -> float:
    """Return the largest allowed ratio of our temporaries to the temporaries with remat."""
    return 1.02 if name == "accumulation" else 1.03


def built(name: str, size: str, checkpoint: bool = False) -> Step:
    """Build a step of `examples/loops`, plain or with remat inside its loops."""
    return import_module(f"recompute.examples.loops.{name}").build(size, checkpoint)


def smaller_cost(compile_with: Callable[[dict[str, str | bool] | None], Any]) -> Cost:
    """Compile with default flags and with barriers kept, and return the smaller result."""
    return min(temporaries_and_flops(compile_with(None)), temporaries_and_flops(compile_with(KEEP_BARRIERS)))


def ours(step: Step, **options: Any) -> Cost:
    """Compile with `recompute.jax.jit` and the given options, and return bytes and FLOPs."""
    jitted: Any = recompute.jax.jit(step.function, donate_argnums=step.donated, **options)
    return temporaries_and_flops(jitted.lower(*step.arguments).compile())


def print_row(name: str, size: str) -> Iterator[str]:
    """Print the table row of one step, and yield a message for each requirement that it does not meet."""
    step, twin = built(name, size), built(name, size, checkpoint=True)
    plain = smaller_cost(step.lower().compile)
    theirs = smaller_cost(twin.lower().compile)
    result = ours(step)
    words = [f"{name:18}", *(f"{entry[0] / plain[0]:8.3f}" for entry in (theirs, result))]
    words += [f"{result[0] / theirs[0]:9.3f}", f"{result[1] / theirs[1]:9.4f}"]
    for loops in SCHEDULES if name not in ("devices", "accumulation") else ():
        kept = ours(step, loops=loops)
        words.append(f"{kept[0] / plain[0]:9.3f} {kept[1] / plain[1]:7.3f}")
    print(*words, flush=True)
    if result[0] > bar(name) * theirs[0]:
        yield f"{name}: {result[0] / theirs[0]:.3f} × the temporaries of remat, above the limit of {bar(name)}"
    if "transformer" in name and abs(result[1] / theirs[1] - 1) > FLOPS_BAR:
        yield f"{name}: {result[1] / theirs[1]:.4f} × the FLOPs of remat, outside 1 ± {FLOPS_BAR}"


def main() -> int:
    """Print the rows, and return 1 if a requirement is not met."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", NAMES)
    add_size(parser)
    options = parser.parse_args()
    print(f"{'of plain:':18}   theirs     ours   / theirs  FLOPs / theirs   {'   '.join(SCHEDULES)}, FLOPs of plain")
    return report_missed([entry for name in options.names or NAMES for entry in print_row(name, options.size)])


if __name__ == "__main__":
    assert jax.device_count() >= 8, "the benchmark needs eight devices of the host"
    sys.exit(main())
