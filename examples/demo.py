"""Recompute values in a real program to reduce its memory: a complete Adam step of a six-layer GPT, as JAX lowers it.

    python examples/demo.py [FILE.mlir] [--segments PATTERN] [--folder demo]

The script prints the memory reduction and the result of the proof. It writes the new step, and a chart of both memory
timelines.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from recompute.analysis.memory.timeline import Labels, Timeline, eager_timeline, timeline
from recompute.analysis.step.module_steps import steps_of
from recompute.driver.verification.verified import verify_module
from recompute.interpreters.execute_check import differing
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.plan import CopyGroup
from recompute.proof.prove import prove
from recompute.reports.memory_timeline import to_svg
from recompute.rewriting.rewrite import Recomputation, rewrite_in_place
from recompute.rules.flops import flops
from recompute.support.units import format_bytes
from recompute.transforms.inline import inline

HERE = Path(__file__).resolve().parent
DEFAULT = HERE / "stablehlo" / "gpt_train.large.mlir"


def progress(message: str) -> None:
    print(f"[{perf_counter() - START:5.1f} s] {message}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Measured:
    """The inlined step of a module, with its memory timeline and FLOPs."""

    function: FuncOp
    timeline: Timeline
    eager_peak_bytes: int
    flops: int

    @classmethod
    def of(cls, module: ModuleOp) -> Measured:
        copy = module.clone()
        inline(copy)
        function, classified = next(steps_of(copy))
        cost = sum(flops(op) for op in classified.order.operations)
        result = timeline(function, classified, Labels.of(classified))
        return cls(function, result, eager_timeline(function, classified).peak_bytes, cost)


def row(label: str, before: int, after: int) -> str:
    return f"  {label:<14}{format_bytes(before):>12}  ->{format_bytes(after):>12}   x {after / before:.3f}"


def group_row(group: CopyGroup) -> str:
    return (
        f"  {group.segment:<10}{len(group.operations):>5} clones, gated by {len(group.batches)} token(s) that wait for "
        f"{len(group.gates)} gradient value(s), free {format_bytes(group.freed_bytes)}"
    )


def report(before: Measured, after: Measured, outcome: Recomputation) -> str:
    return "\n".join(
        [
            row("temporaries", before.timeline.peak_bytes, after.timeline.peak_bytes),
            row("  eager", before.eager_peak_bytes, after.eager_peak_bytes),
            row("device bytes", before.timeline.device_bytes, after.timeline.device_bytes),
            f"  {'clones':<14}{outcome.copies:>12}",
            f"  {'tokens':<14}{sum(len(group.batches) for group in outcome.groups):>12}",
            f"  {'extra FLOPs':<14}{outcome.extra_flops:>12.3g}   {outcome.extra_flops / before.flops:.1%} of the step",
            "",
            *(group_row(group) for group in outcome.groups),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT, help="the step to rewrite")
    parser.add_argument("--segments", default="auto", help="the segments to recompute (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="the folder to write to")
    parser.add_argument("--no-execute", action="store_true", help="do not run the two steps in the interpreter")
    options = parser.parse_args()

    progress(f"reading {options.file.name}")
    module = parse_module(options.file.read_text(), str(options.file))
    original = module.clone()
    progress("recomputing: flatten, choose, clone, cse, lower, stagger, verify, restore")
    outcome = rewrite_in_place(module, RecomputeOptions(Selection(segments=options.segments)))
    verify_module(module)
    for remark in outcome.remarks:
        print(remark, file=sys.stderr)
    progress("proving: one value numbering over both modules")
    proof = prove(original, module)
    if not proof:
        print(f"not proved: {proof.reason}")
        return 1
    progress("measuring live memory in program order and in the eager schedule")
    before, after = Measured.of(original), Measured.of(module)
    print(f"\n{options.file.name}: {proof.operations_before} operations before, {proof.operations_after} after\n")
    print(report(before, after, outcome))
    print(f"\n  proved equal: all {proof.results} results, bit for bit under op-by-op semantics\n", flush=True)
    write(options.folder, options.file, module, before.timeline, after.timeline)
    return 0 if options.no_execute else execute_both(before, after)


def execute_both(before: Measured, after: Measured) -> int:
    """Run both steps in numpy on the same random inputs, compare the results bit by bit, and measure live memory.

    Returns:
        The exit status: 0 if the results are equal.
    """
    inputs = random_inputs(before.function, kind="positive")
    progress("executing the plain step in numpy")
    results, metered = meter(before.function, inputs)
    progress("executing the recomputed step")
    results_after, metered_after = meter(after.function, inputs)
    progress("comparing bits")
    if any(bool(differing(entry, other).any()) for entry, other in zip(results, results_after, strict=True)):
        print("  executed: DIFFERENT")
        return 1
    print("\n  executed: equal bit for bit\n")
    print(row("metered peak", metered.peak_bytes, metered_after.peak_bytes))
    print(row("modelled peak", before.timeline.peak_bytes, after.timeline.peak_bytes))
    return 0


def write(folder: Path, source: Path, module: ModuleOp, before: Timeline, after: Timeline) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    step, picture = folder / f"{source.stem}.recomputed.mlir", folder / f"{source.stem}.memory.svg"
    step.write_text(print_module(module, debuginfo=True))
    picture.write_text(to_svg([("as JAX lowers it", before), ("recomputed", after)], source.stem))
    print(f"  step   {step}\n  chart  {picture}")


START = perf_counter()

if __name__ == "__main__":
    sys.exit(main())
