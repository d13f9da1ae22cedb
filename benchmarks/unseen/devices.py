"""The steps of `on_devices`: what ours needs beside `jax.checkpoint`, once without and once with repeated collectives.

    python -m recompute.benchmarks.unseen.devices
    python -m recompute.benchmarks.unseen.devices moe ring

Temporaries and FLOPs are XLA's, of one device, over those of `jax.checkpoint` around the blocks; beside them how many
collectives the compiled steps have: the plain one, theirs, ours. `far`: the largest distance of a result from the
plain step's, over the largest number of that result, theirs and ours; XLA:CPU rounds fused operations differently.
"""

# pyright: basic

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

import recompute

FOLDER = Path(__file__).resolve().parent / "on_devices"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "given"))
KEEPS: dict[str, str | bool] = {"xla_disable_hlo_passes": "cse_barrier_expander"}
EXCHANGES = re.compile(r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def figures(compiled: Any) -> tuple[int, float, int]:
    """Return the bytes of temporaries, the FLOPs, and the number of collectives."""
    memory, costs = compiled.memory_analysis(), compiled.cost_analysis()
    return memory.temp_size_in_bytes, costs["flops"], len(EXCHANGES.findall(compiled.as_text()))


def far(plain: Any, other: Any) -> float:
    result = 0.0
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(other), strict=True):
        if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        entry, two = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
        result = max(
            result, float(np.max(np.abs(entry - two), initial=0)) / max(float(np.max(np.abs(entry), initial=0)), 1e-30)
        )
    return result


def row(name: str) -> str:
    step = import_module(f".on_devices.{name}", __package__)
    options = dict(getattr(step, "JIT", {}))
    options.pop("donate_argnums", None)  # Each of the four is run on the same arguments.
    ways = {
        "plain": jax.jit(step.fun(False), **options),
        "theirs": jax.jit(step.fun(True), **options),
        "ours": recompute.jax.jit(step.fun(False), measure=False, **options),
        "again": recompute.jax.jit(step.fun(False), measure=False, collectives=True, **options),
    }
    compiled = {way: entry.lower(*step.ARGS).compile(compiler_options=KEEPS) for way, entry in ways.items()}
    result = {way: figures(entry) for way, entry in compiled.items()}
    results = {way: entry(*step.ARGS) for way, entry in compiled.items()}
    theirs = result["theirs"]

    def beside(way: str) -> str:
        temporaries, work, exchanges = result[way]
        return f"{temporaries / theirs[0]:6.3f} {work / theirs[1]:6.3f} {exchanges:4}"

    distances = " ".join(f"{far(results['plain'], results[way]):8.1e}" for way in ("theirs", "ours", "again"))
    plain = result["plain"]
    counts = f"{plain[0] / theirs[0]:6.3f} {plain[2]:4} {theirs[2]:4}"
    return f"{name:20} {counts}  {beside('ours')}  {beside('again')}  {distances}"


def main() -> int:
    """Measure each step in a process of its own, since some set the mesh of the whole process."""
    names = sys.argv[1:] or NAMES
    if len(names) == 1:
        warnings.simplefilter("ignore")
        print(row(names[0]))
        return 0
    print(f"{'':20} plain   n  theirs  ours: bytes, FLOPs, n  with collectives   far: theirs, ours, with collectives")
    for name in names:
        outcome = subprocess.run(
            [sys.executable, "-m", __spec__.name, name], capture_output=True, text=True, check=False
        )
        print(
            outcome.stdout or f"{name:20} {(outcome.stderr.splitlines() or ['?'])[-1][:150]}",
            end="" if outcome.stdout else None,
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
