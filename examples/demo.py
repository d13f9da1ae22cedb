"""The main job on a real program: a whole Adam step of a six-layer GPT, as JAX lowers it, in less memory.

    python examples/demo.py [FILE.mlir] [--regions PATTERN] [--folder demo]

Prints what changed and what was proved, and writes the new step and a picture of both memory timelines.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.functions import functions_of
from recompute.analysis.liveness import Timeline, timeline
from recompute.analysis.phases import phases
from recompute.analysis.units import Unit
from recompute.dialects.parser import parse_module
from recompute.dialects.printer import print_module
from recompute.interpreters.prove import prove
from recompute.reports.bytes import human_bytes
from recompute.reports.memory_timeline import to_svg
from recompute.rules.flops import flops
from recompute.tools.verification import verify_module
from recompute.transforms.inline import inline
from recompute.transforms.recompute import Recomputation, recompute

HERE = Path(__file__).resolve().parent
DEFAULT = HERE / "stablehlo" / "gpt_train.large.mlir"


def progress(words: str) -> None:
    print(f"[{perf_counter() - START:5.1f} s] {words}", file=sys.stderr, flush=True)


def timeline_of(module: ModuleOp) -> Timeline:
    """The timeline of the step, which is the module's first function, inlined."""
    copy = module.clone()
    inline(copy)
    function = functions_of(copy)[0]
    return timeline(function, phases(function))


def step_flops(module: ModuleOp) -> int:
    copy = module.clone()
    inline(copy)
    return sum(flops(op) for block in functions_of(copy)[0].body.blocks for op in block.ops)


def row(words: str, before: int, after: int) -> str:
    return f"  {words:<14}{human_bytes(before):>12}  ->{human_bytes(after):>12}   x {after / before:.3f}"


def unit_row(unit: Unit) -> str:
    return (
        f"  {unit.region:<10}{len(unit.originals):>5} clones behind {len(unit.stages)} token(s) on {len(unit.gates)} "
        f"gradient value(s), frees {human_bytes(unit.freed_bytes)}"
    )


def report(before: Timeline, after: Timeline, done: Recomputation, base_flops: int) -> str:
    share = done.extra_flops / base_flops
    return "\n".join(
        [
            row("temporaries", before.peak_bytes, after.peak_bytes),
            row("device bytes", before.device_bytes, after.device_bytes),
            f"  {'clones':<14}{done.copies:>12}",
            f"  {'tokens':<14}{sum(len(unit.stages) for unit in done.units):>12}",
            f"  {'extra FLOPs':<14}{done.extra_flops:>12.3g}   {share:.1%} of the step",
            "",
            *(unit_row(unit) for unit in done.units),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--regions", default="auto")
    parser.add_argument("--folder", type=Path, default=Path("demo"))
    options = parser.parse_args()

    progress(f"reading {options.file.name}")
    module = parse_module(options.file.read_text(), str(options.file))
    original = module.clone()
    progress("recomputing: inline, mark, clone, cse, verify, lower")
    done = recompute(module, options.regions)
    verify_module(module)
    progress("proving: one value numbering over both modules")
    proof = prove(original, module)
    if not proof:
        print(f"not proved: {proof.reason}")
        return 1
    progress("measuring: liveness in program order")
    before, after = timeline_of(original), timeline_of(module)
    print(f"\n{options.file.name}: {proof.operations_before} operations, after: {proof.operations_after}\n")
    print(report(before, after, done, step_flops(original)))
    print(f"\n  proved equal: all {proof.results} results, bit for bit under op-by-op semantics\n")
    for remark in done.remarks:
        print(remark, file=sys.stderr)
    write(options.folder, options.file, module, before, after)
    return 0


def write(folder: Path, source: Path, module: ModuleOp, before: Timeline, after: Timeline) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    step, picture = folder / f"{source.stem}.recomputed.mlir", folder / f"{source.stem}.memory.svg"
    step.write_text(print_module(module, debuginfo=True))
    picture.write_text(to_svg([("as JAX lowers it", before), ("recomputed", after)], source.stem))
    print(f"  the step     {step}\n  the picture  {picture}")


START = perf_counter()

if __name__ == "__main__":
    sys.exit(main())
