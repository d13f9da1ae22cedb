"""Measure the memory reduction of independently written steps, compared with `jax.checkpoint` around their blocks.

    python -m recompute.benchmarks.unseen.savings open --json open.jsonl
    python -m recompute.benchmarks.unseen.savings held_back convnext tcn --json two.jsonl

Results: bytes and FLOPs, as lines of JSON from which `savings_page` makes docs/measured/savings.md. Time: about 10
minutes for a group.

Each step is compiled by XLA:CPU with barriers kept: plain, under `jax.checkpoint`, recomputed with its scope names, and
recomputed without them. The measured temporaries of these variants are compared with each other and with this project's
XLA:CPU model. The results of each step are one line of JSON. A step that the file already contains is not re-measured.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from recompute.benchmarks.harness.command_line import benchmark_parser, report_progress
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS, flags_with_host_devices

os.environ["XLA_FLAGS"] = flags_with_host_devices(2)

import jax
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr

from recompute.analysis.step.jax_paths import path_of, split_path, unwrap
from recompute.benchmarks.harness.predicted_memory import predicted_temporary_bytes
from recompute.benchmarks.harness.processes import with_cpu_seconds
from recompute.benchmarks.unseen.all_steps import GROUPS
from recompute.benchmarks.unseen.step_parts import Builder
from recompute.examples.with_jax import with_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.search.choice.module_attempts import module_attempts


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
    outcome, seconds = with_cpu_seconds(lambda: rewrite_in_place(chosen))
    text = print_module(chosen)
    seen = dict[str, tuple[int, float]]()
    seen[text] = measured(with_module(lowered, text))
    yield {
        "attempt": "chosen",
        "bytes": seen[text][0],
        "flops": seen[text][1],
        "model": predicted_temporary_bytes(chosen),
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


def row_of(build: Builder, compiled: int) -> dict[str, Any]:
    """Measure all variants of a step.

    Args:
        build: Builds the step.
        compiled: The largest number of attempts to compile in addition to the chosen one.
    """
    plain, checkpoint = build(False, True).lower(), build(True, True).lower()
    module = parse_module(plain.as_text(debug_info=True))
    (size, flops), (theirs, their_flops) = measured(plain), measured(checkpoint)
    return {
        "plain": {"bytes": size, "flops": flops, "model": predicted_temporary_bytes(module)},
        "checkpoint": {"bytes": theirs, "flops": their_flops},
        "named": list(attempts_at(plain, module, compiled)),
        "bare": list(attempts_at(plain, without_scopes(module), compiled)),
    }


def row_or_error(build: Builder, compiled: int) -> dict[str, Any]:
    """Return the row of a step, or the error that prevented it."""
    try:
        return row_of(build, compiled)
    except Exception as error:
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


def steps_in(path: Path) -> set[str]:
    """Return the names of the steps that a file of rows contains. If the file is missing, the result is empty."""
    return {json.loads(line)["step"] for line in path.read_text().splitlines()} if path.exists() else set()


def main() -> None:
    """Measure the requested steps, and append one line of JSON for each."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("group", choices=GROUPS, help="the group of steps (unseen/README.md lists them)")
    parser.add_argument("names", nargs="*", metavar="STEP", help="the steps of the group to measure (default: all)")
    rows = "the file to which a line is appended for each step; steps that it already contains are not measured"
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help=rows)
    others = "the largest number of attempts to compile in addition to the chosen one (default: %(default)s)"
    parser.add_argument("--compiled", type=int, default=0, metavar="COUNT", help=others)
    options = parser.parse_args()
    builders = GROUPS[options.group]
    if unknown := sorted(set(options.names) - set(builders)):
        parser.error(f"unknown step {unknown[0]!r}: choose from {', '.join(builders)}")
    for name in options.names or builders:
        if name in steps_in(options.json):
            continue
        start = time.monotonic()
        row = row_or_error(builders[name], options.compiled)
        with options.json.open("a") as file:
            file.write(json.dumps({"step": name, **row}) + "\n")
        report_progress(f"{name:28} {time.monotonic() - start:6.1f} s")


if __name__ == "__main__":
    main()
