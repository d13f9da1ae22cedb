"""Check whether XLA reports the same temporaries and FLOPs at its lowest optimization level.

    python -m recompute.benchmarks.compile_time.level_zero                  # the peers on one device, then the examples
    python -m recompute.benchmarks.compile_time.level_zero --only 'linen gpt' --only chain

Results: ratios of temporaries, FLOPs and CPU seconds; docs/jax_compilation.md summarizes them. Time: about 30 minutes.

If the values are equal, a step that is compiled only to be measured can be compiled at the lowest level, which takes
less time. For each step, plain and with its framework's remat, the benchmark prints the temporaries, the FLOPs and the
compiler's CPU time at level 0, as multiples of the values at the default level.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from recompute.benchmarks.harness.command_line import add_only, benchmark_parser, selected
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.processes import with_cpu_seconds
from recompute.benchmarks.peers.all_peers import PEERS
from recompute.benchmarks.peers.peer import ALL, LARGE
from recompute.examples.export import BUILDERS
from recompute.frontends.jax.compilation.compiler_options import MEASURING, keeping_barriers


def compile_costs(lowered: Any, options: dict[str, Any] | None) -> tuple[int, float, float]:
    """Compile a step, and return the bytes of temporaries, the FLOPs, and the CPU seconds of the compiler."""
    executable, seconds = with_cpu_seconds(lambda: lowered.compile(options))
    return *temporaries_and_flops(executable), seconds


def row(lower: Callable[[], Any], options: dict[str, Any] | None) -> str:
    """Compile a step at both levels, and return the ratios of temporaries, FLOPs and CPU seconds as a string."""
    full, level_zero = compile_costs(lower(), options), compile_costs(lower(), {**(options or {}), **MEASURING})
    parts = zip(("temporaries", "FLOPs", "seconds"), level_zero, full, strict=True)
    return ", ".join(f"{name} {zero / of_full:.4f}" for name, zero, of_full in parts if of_full)


def peer_rows(name: str) -> Iterator[tuple[str, str]]:
    """Yield the rows of a model from `benchmarks/peers`: the plain step and the step with remat, each with the ratios
    of level 0 to the default level.
    """
    for form, remat, options in (("plain", None, None), ("remat", ALL, keeping_barriers(("cpu",)))):
        built = PEERS[name].build(remat, LARGE)
        with built.context():
            step, arguments = jax.jit(built.step, **dict(built.options)), built.arguments(0)
            yield form, row(lambda step=step, arguments=arguments: step.lower(*arguments), options)


def example_rows(name: str) -> Iterator[tuple[str, str]]:
    """Yield the rows of an example: the plain step and the step with `jax.checkpoint`, each with the ratios of level 0
    to the default level.
    """
    yield "plain", row(lambda: BUILDERS[name](LARGE).lower(), None)
    yield "remat", row(lambda: BUILDERS[name](LARGE, checkpoint=True).lower(), keeping_barriers(("cpu",)))


def main() -> None:
    """Print a line for each variant (plain and with remat) of each step."""
    peers = [name for name, peer in PEERS.items() if peer.devices == 1]
    parser = benchmark_parser(__doc__)
    add_only(parser, "step", [*peers, *BUILDERS])
    for name in selected([*peers, *BUILDERS], parser.parse_args().only):
        for form, text in peer_rows(name) if name in peers else example_rows(name):
            print(f"{name}, {form}: {text}", flush=True)


if __name__ == "__main__":
    main()
