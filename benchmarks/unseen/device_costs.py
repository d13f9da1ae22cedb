"""Compare the steps of `on_devices` with `jax.checkpoint`, with and without recomputation of collectives.

    python -m recompute.benchmarks.unseen.device_costs
    python -m recompute.benchmarks.unseen.device_costs moe ring_attention

Results: temporaries and FLOPs as multiples of those with `jax.checkpoint`; docs/devices.md summarizes them. Time: about
10 minutes.

Temporaries and FLOPs are XLA's values for one device, as multiples of the values with `jax.checkpoint` around the
blocks. `n` is the number of collectives in the compiled step: plain, with `jax.checkpoint`, and with `recompute`.
`distance` is the largest distance of any result from the plain step's result, as a share of the largest magnitude in
that result; XLA:CPU rounds fused operations differently.
"""

# pyright: basic

from __future__ import annotations

import os
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.processes import run_module
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS, flags_with_host_devices

os.environ["XLA_FLAGS"] = flags_with_host_devices(8)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

import recompute
from recompute.benchmarks.harness.result_arrays import largest_distance

FOLDER = Path(__file__).resolve().parent / "on_devices"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "mesh_parts"))
COLLECTIVES = re.compile(r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def costs_of(compiled: Any) -> tuple[int, float, int]:
    """Return the bytes of temporaries, the FLOPs, and the number of collectives of a compiled step."""
    return *temporaries_and_flops(compiled), len(COLLECTIVES.findall(compiled.as_text()))


def row(name: str) -> str:
    """Measure all variants of a step, and return its table row as a string."""
    step = import_module(f".on_devices.{name}", __package__)
    options = dict(getattr(step, "JIT_OPTIONS", {}))
    options.pop("donate_argnums", None)  # Each of the four forms runs on the same arguments.
    forms = {
        "plain": jax.jit(step.build_step(False), **options),
        "checkpoint": jax.jit(step.build_step(True), **options),
        "rewritten": recompute.jax.jit(step.build_step(False), measure=False, **options),
        "with collectives": recompute.jax.jit(step.build_step(False), measure=False, collectives=True, **options),
    }
    compiled = {
        form: jitted.lower(*step.ARGUMENTS).compile(compiler_options=KEEP_BARRIERS) for form, jitted in forms.items()
    }
    measured = {form: costs_of(executable) for form, executable in compiled.items()}
    results = {form: executable(*step.ARGUMENTS) for form, executable in compiled.items()}
    checkpoint, plain = measured["checkpoint"], measured["plain"]

    def relative(form: str) -> str:
        temporaries, flops, collectives = measured[form]
        return f"{temporaries / checkpoint[0]:6.3f} {flops / checkpoint[1]:6.3f} {collectives:4}"

    others = [form for form in forms if form != "plain"]
    distances = " ".join(f"{largest_distance(results['plain'], results[form]):8.1e}" for form in others)
    counts = f"{plain[0] / checkpoint[0]:6.3f} {plain[2]:4} {checkpoint[2]:4}"
    return f"{name:20} {counts}  {relative('rewritten')}  {relative('with collectives')}  {distances}"


def main() -> None:
    """Print a row for each step. Each step runs in its own process, since some steps set the mesh of the whole
    process."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", NAMES)
    names = parser.parse_args().names or NAMES
    if len(names) == 1:
        warnings.simplefilter("ignore")
        print(row(names[0]))
        return
    print(f"{'':20} plain   n    n  bytes, FLOPs, n    with collectives    distance: checkpoint, rewritten, both")
    for name in names:
        outcome = run_module("recompute.benchmarks.unseen.device_costs", name)
        last_error = (outcome.stderr.splitlines() or ["?"])[-1][:150]
        print(outcome.stdout.strip() or f"{name:20} {last_error}", flush=True)


if __name__ == "__main__":
    main()
