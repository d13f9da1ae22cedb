"""A JAX step through `recompute-opt` and back: lowered, rewritten as text, compiled and run by XLA.

    python examples/with_jax.py

JAX's `Lowered` keeps its pytrees, donation and analyses; only the module inside it is replaced.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.models import mlp
from examples.models.step import random_inputs

PIPELINE = "recompute{regions=auto}"


def recompute(lowered: jax.stages.Lowered, pipeline: str = PIPELINE) -> jax.stages.Lowered:
    """The same step after `recompute-opt -p PIPELINE`, which reads and writes StableHLO text."""
    tool = Path(sys.executable).with_name("recompute-opt")
    text = lowered.as_text(debug_info=True)
    done = subprocess.run([tool, "-p", pipeline, "-"], input=text, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"recompute-opt -p '{pipeline}' failed")
    return with_module(lowered, done.stdout)


def with_module(lowered: jax.stages.Lowered, text: str) -> jax.stages.Lowered:
    """A copy of `lowered` that compiles the module in `text`, which has the same arguments and results."""
    changed = copy.copy(lowered)
    changed._lowering = copy.copy(lowered._lowering)
    with make_ir_context():
        changed._lowering._hlo = ir.Module.parse(text)
    return changed


def compile_with(lowered: jax.stages.Lowered, *disabled_passes: str, **options: Any) -> jax.stages.Compiled:
    """Compile with barriers kept: XLA:CPU drops them before it schedules, and the copies with them."""
    already = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    names = ",".join((*already, "cse_barrier_expander", *disabled_passes))
    return lowered.compile(compiler_options={"xla_disable_hlo_passes": names, **options})


def compile_as_written(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile so that results can be compared bit for bit: fusion rounds differently around any barrier, and between
    two operations that it does not separate XLA may leave out a rounding to bf16."""
    return compile_with(lowered, "fusion", xla_allow_excess_precision=False)


def bits(results: Any) -> list[bytes]:
    """The results' bit patterns, so that a NaN equals itself and zeros keep their signs."""
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(results)]


def main() -> None:
    step = mlp.build("large")
    plain = step.lower()
    ours = recompute(plain)
    for name, lowered in (("before", plain), ("after", ours)):
        memory = compile_with(lowered).memory_analysis()
        print(f"temporaries {name}: {memory.temp_size_in_bytes / 2**20:.1f} MiB")
    first, second = (bits(compile_as_written(lowered)(*random_inputs(step))) for lowered in (plain, ours))
    print("results: equal, bit for bit" if first == second else "results: DIFFERENT")
    sys.exit(first != second)


if __name__ == "__main__":
    main()
