"""The temporary bytes of every step, plain and under `jax.checkpoint`, as XLA:CPU compiles it.

`python -m recompute.benchmarks.unseen.sizes [--half open|held_back|loops] [--run] [names]`.
Loops over two devices need `XLA_FLAGS=--xla_force_host_platform_device_count=2`, which is set where it is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

DEVICES = "--xla_force_host_platform_device_count"
# The clones of `jax.checkpoint` stay apart only while their barriers are there.
OPTIONS = {"xla_disable_hlo_passes": "cse_barrier_expander"}


def say(*words: object) -> None:
    """Write a line to standard error."""
    print(*words, file=sys.stderr, flush=True)


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="steps to measure, all if none is given")
    parser.add_argument("--half", choices=("open", "held_back", "loops"))
    run = "also run the plain step once and check that its results are finite"
    parser.add_argument("--run", action="store_true", help=run)
    options = parser.parse_args()
    if DEVICES not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {DEVICES}=2".strip()

    import jax
    import jax.numpy as jnp

    from .common import UnseenStep, random_inputs
    from .loops import LOOPS
    from .steps import HELD_BACK, OPEN

    def finite(step: UnseenStep, compiled: jax.stages.Compiled) -> bool:
        results = jax.tree.leaves(compiled(*random_inputs(step)))
        floats = [a for a in results if jnp.issubdtype(a.dtype, jnp.floating)]
        return all(bool(jnp.isfinite(a).all()) for a in floats)

    halves = {"open": OPEN, "held_back": HELD_BACK, "loops": LOOPS}
    for half, builders in halves.items():
        for name, build in builders.items():
            if (options.half and half != options.half) or (options.names and name not in options.names):
                continue
            begin, sizes, words = time.monotonic(), [], []
            for checkpoint in (False, True):
                step = build(checkpoint, True)
                compiled = step.lower().compile(compiler_options=OPTIONS)
                sizes.append(compiled.memory_analysis().temp_size_in_bytes)
                if options.run and not checkpoint:
                    words.append("finite" if finite(step, compiled) else "NOT FINITE")
            seconds = time.monotonic() - begin
            words.append(f"{seconds:.1f} s")
            say(f"{half:9} {name:28}", *words)
            print(f"{half}\t{name}\t{sizes[0]}\t{sizes[1]}\t{sizes[1] / sizes[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
