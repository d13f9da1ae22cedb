"""Rewrite a JAX step with `recompute-opt`: lower the step, rewrite its text, then compile and run it with XLA.

    python examples/with_jax.py

JAX's `Lowered` object keeps its pytrees, donation and analyses, and only its module is replaced.
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
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from recompute.examples.closeness import Closeness
from recompute.examples.models import mlp
from recompute.examples.models.step import random_inputs

PIPELINE = "recompute{segments=auto}"
DROPS_BARRIERS = "cse_barrier_expander"


def recompute(lowered: jax.stages.Lowered, pipeline: str = PIPELINE) -> jax.stages.Lowered:
    """Return the step that `recompute-opt -p PIPELINE` rewrites."""
    tool = Path(sys.executable).with_name("recompute-opt")
    text = lowered.as_text(debug_info=True)
    outcome = subprocess.run([tool, "-p", pipeline, "-"], input=text, stdout=subprocess.PIPE, text=True)
    if outcome.returncode:
        raise SystemExit(f"recompute-opt -p '{pipeline}' failed with exit status {outcome.returncode}")
    return with_module(lowered, outcome.stdout)


def with_module(lowered: jax.stages.Lowered, text: str) -> jax.stages.Lowered:
    """Return a copy of `lowered` that compiles the module `text`, which must have the same arguments and results."""
    changed = copy.copy(lowered)
    changed._lowering = copy.copy(lowered._lowering)
    # Drop the executable of the plain step.
    changed._lowering._executable = None
    with make_ir_context():
        changed._lowering._hlo = ir.Module.parse(text)
    return changed


def compile_without(lowered: jax.stages.Lowered, *passes: str, **options: Any) -> jax.stages.Compiled:
    """Compile with the given passes of XLA disabled, in addition to those that `XLA_FLAGS` disables."""
    already = re.findall(r"--xla_disable_hlo_passes=(\S+)", os.environ.get("XLA_FLAGS", ""))
    off = {"xla_disable_hlo_passes": names} if (names := ",".join((*already, *passes))) else {}
    return lowered.compile(compiler_options={**off, **options})


def compile_keeping_barriers(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """Compile with barriers kept. By default, XLA:CPU removes them, and then merges copies with their originals."""
    return compile_without(lowered, DROPS_BARRIERS)


def main() -> None:
    step = mlp.build("large")
    plain = step.lower()
    compiled = {"before": compile_keeping_barriers(plain), "after": compile_keeping_barriers(recompute(plain))}
    for name, each in compiled.items():
        print(f"temporaries {name}: {each.memory_analysis().temp_size_in_bytes / 2**20:.1f} MiB")
    before, after = (each(*random_inputs(step)) for each in compiled.values())
    print(f"results: {Closeness.of(before, after)}")


if __name__ == "__main__":
    main()
