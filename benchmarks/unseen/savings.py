"""Measure the memory saved on independently written steps, compared with `jax.checkpoint` around their blocks.

`python -m recompute.benchmarks.unseen.savings open --json open.jsonl [names]`.

Each step is compiled by XLA:CPU with barriers kept: plain, under `jax.checkpoint`, and recomputed, once with its scope
names and once without. The measured temporaries are compared with each other and with our model of XLA:CPU. Each step
is one line of JSON. A step that the file already contains is not re-measured.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS, flags_with_host_devices

from .sizes import say

os.environ["XLA_FLAGS"] = flags_with_host_devices(2)

import jax
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.jax_paths import path_of, split_path, unwrap
from recompute.analysis.step.order import functions_of
from recompute.examples.with_jax import with_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.search.choice.module_attempts import module_attempts
from recompute.transforms.inline import inline

from .groups import GROUPS


def without_scopes(module: ModuleOp) -> ModuleOp:
    """Return a copy of the module whose location paths have no scope names, but only direction and operation."""
    bare = module.clone()
    for op in bare.walk():
        if path := path_of(op.location):
            op.location = NameLoc(StringAttr(_bare(path)), op.location)
    return bare


def _bare(path: str) -> str:
    *around, last = split_path(path)
    wrappers = (unwrap(part)[0] for part in around)
    return "/".join([*filter(None, map(_without_name, wrappers)), last])


def _without_name(wrappers: Sequence[str]) -> str:
    return "".join(f"{wrapper}(" for wrapper in wrappers) + ")" * len(wrappers)


def measured(lowered: jax.stages.Lowered) -> tuple[int, float]:
    """Return the bytes of temporaries and the FLOPs of a lowered step."""
    return temporaries_and_flops(lowered.compile(compiler_options=KEEP_BARRIERS))


def attempts_at(lowered: jax.stages.Lowered, module: ModuleOp, compiled: int) -> Iterator[dict[str, Any]]:
    """Compile and yield the attempt that the model chooses, then up to `compiled` other attempts."""
    chosen = module.clone()
    begin = time.process_time()
    outcome = rewrite_in_place(chosen)
    seconds = time.process_time() - begin
    text = print_module(chosen)
    seen = dict[str, tuple[int, float]]()
    seen[text] = measured(with_module(lowered, text))
    yield {
        "attempt": "chosen",
        "bytes": seen[text][0],
        "flops": seen[text][1],
        "model": modelled(chosen),
        "copies": outcome.copies,
        "seconds": seconds,
        "remarks": [str(remark.reason) for remark in outcome.remarks],
    }
    for tried in module_attempts(module, RecomputeOptions(attempts=compiled)) if compiled else ():
        written = module.clone()
        rewrite_in_place(written, RecomputeOptions().with_planned(tried.plans))
        text = print_module(written)
        if text not in seen:
            seen[text] = measured(with_module(lowered, text))
        size, flops = seen[text]
        yield {"attempt": tried.attempt, "bytes": size, "flops": flops, "model": tried.peak_bytes}


def modelled(module: ModuleOp) -> int:
    """Return the bytes of temporaries that our model of XLA:CPU predicts for a module."""
    flat = module.clone()
    inline(flat)
    return max(xla_timeline(function).peak_bytes for function in functions_of(flat))


def row_of(build: Any, compiled: int) -> dict[str, Any]:
    """Measure all forms of a step. `compiled`: the largest number of other attempts to compile."""
    plain, checkpoint = build(False, True).lower(), build(True, True).lower()
    module = parse_module(plain.as_text(debug_info=True))
    (size, flops), (theirs, their_flops) = measured(plain), measured(checkpoint)
    return {
        "plain": {"bytes": size, "flops": flops, "model": modelled(module)},
        "checkpoint": {"bytes": theirs, "flops": their_flops},
        "named": list(attempts_at(plain, module, compiled)),
        "bare": list(attempts_at(plain, without_scopes(module), compiled)),
    }


def main() -> None:
    """Measure the requested steps, and append one line of JSON for each."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("half", choices=GROUPS, help="the group of steps")
    parser.add_argument("names", nargs="*", help="steps to measure; all by default")
    parser.add_argument("--json", type=Path, required=True, help="the file to append to")
    parser.add_argument("--compiled", type=int, default=0, help="also compile up to this number of other attempts")
    options = parser.parse_args()
    measured_before = (
        {json.loads(line)["step"] for line in options.json.read_text().splitlines()} if options.json.exists() else set()
    )
    for name, build in GROUPS[options.half].items():
        if name in measured_before or (options.names and name not in options.names):
            continue
        begin = time.monotonic()
        try:
            row = row_of(build, options.compiled)
        except Exception as error:
            traceback.print_exc()
            row = {"error": f"{type(error).__name__}: {error}"}
        with options.json.open("a") as file:
            file.write(json.dumps({"step": name, **row}) + "\n")
        say(f"{name:28} {time.monotonic() - begin:6.1f} s")


if __name__ == "__main__":
    main()
