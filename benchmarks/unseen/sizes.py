"""Print the bytes of temporaries of every step, plain and under `jax.checkpoint`, as XLA:CPU reports them.

`python -m recompute.benchmarks.unseen.sizes [--half open|held_back|loops] [--run] [names]`.
Some steps need `XLA_FLAGS=--xla_force_host_platform_device_count=2`, which this script sets if it is missing.
"""

from __future__ import annotations

import os
import sys
import time

from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS, flags_with_host_devices


def say(*words: object) -> None:
    """Print a line to standard error."""
    print(*words, file=sys.stderr, flush=True)


def main() -> None:
    """Print a line for each step."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("names", nargs="*", help="steps to measure; all by default")
    parser.add_argument("--half", choices=("open", "held_back", "loops"))
    run = "also run the plain step once and check that its results are finite"
    parser.add_argument("--run", action="store_true", help=run)
    options = parser.parse_args()
    os.environ["XLA_FLAGS"] = flags_with_host_devices(2)

    import jax
    import jax.numpy as jnp

    from .common import UnseenStep, random_inputs
    from .groups import GROUPS

    def is_finite(step: UnseenStep, compiled: jax.stages.Compiled) -> bool:
        results = jax.tree.leaves(compiled(*random_inputs(step)))
        floats = [leaf for leaf in results if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return all(bool(jnp.isfinite(leaf).all()) for leaf in floats)

    for group, builders in GROUPS.items():
        for name, build in builders.items():
            if (options.half and group != options.half) or (options.names and name not in options.names):
                continue
            begin, sizes, words = time.monotonic(), [], []
            for checkpoint in (False, True):
                step = build(checkpoint, True)
                compiled = step.lower().compile(compiler_options=KEEP_BARRIERS)
                sizes.append(compiled.memory_analysis().temp_size_in_bytes)
                if options.run and not checkpoint:
                    words.append("finite" if is_finite(step, compiled) else "NOT FINITE")
            seconds = time.monotonic() - begin
            words.append(f"{seconds:.1f} s")
            say(f"{group:9} {name:28}", *words)
            print(f"{group}\t{name}\t{sizes[0]}\t{sizes[1]}\t{sizes[1] / sizes[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
