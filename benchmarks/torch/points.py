"""Ours at PyTorch's own points: at the peak of each of its controls, what does `recompute.torch` cost?

    python -m recompute.benchmarks.torch.points              # the tables of docs/measured/torch.md
    python -m recompute.benchmarks.torch.points --only gpt   # peaks and FLOPs of the GPT with 6 layers
    python -m recompute.benchmarks.torch.points --only time  # import, rewrite and proof, compilation

Peaks are live storages of one step in program order, FLOPs those of products; seconds are CPU time. Exit status 1: one
of our steps exceeds its peak, costs more FLOPs than PyTorch's form of that peak or than its bar, or differs from eager.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition

from recompute.benchmarks.torch.cases import make
from recompute.benchmarks.torch.forms import Form, baselines, ours, partitioned
from recompute.benchmarks.torch.measure import Row, measured

NAMED = {
    "gpt6 dropout": ((26.98, 1.001), (12.71, 1.118)),
    "gpt12 dropout": ((15.2, 1.175),),
    "resnet50": ((11.0, 1.05),),
}
"""Peaks in MB, and the largest FLOPs there beside those of the eager step."""
HEAD = ("peak of", "MB", "PyTorch's FLOPs x", "ours MB", "ours FLOPs x", "equal to eager")
PASSES = ("import", "rewrite and proof", "export and second proof")


def line(cells: tuple[Any, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def at(name: str, peak_bytes: int, eager: Row, outcome: Any) -> Row:
    """Our form at a peak."""
    form = Form("ours", ours, (peak_bytes + 0.5) / eager.peak_bytes)
    row, _ = measured(name, form, outcome, eager.peak_bytes)
    return row


def faults_of(row: Row, most: float, peak_bytes: int, eager: Row) -> Iterator[str]:
    """What misses the bars. `most`: the largest FLOPs beside those of the eager step."""
    if row.error:
        yield row.error
        return
    if row.differences:
        yield f"differs from eager: {', '.join(row.differences[:3])}"
    if row.peak_bytes > peak_bytes:
        yield f"{row.peak_bytes} bytes, {row.peak_bytes - peak_bytes} above the peak"
    if row.flops / eager.flops > most + 5e-5:
        yield f"{row.flops / eager.flops:.4f} of the eager FLOPs, bar {most:.4f}"


def compared(name: str, of_torch: bool) -> Iterator[str]:
    """Print a table of a model; the faults."""
    print(f"\n### {name}\n")
    print(
        line(("peak of", "MB", "PyTorch's FLOPs x", "ours MB", "ours FLOPs x", "equal to eager")),
        "|---" * 6 + "|",
        sep="\n",
    )
    first, *others = baselines()
    eager, outcome = measured(name, first, None, 0)
    points = [(form.name, *peak_of(name, form, outcome, eager)) for form in others] if of_torch else []
    points += [("a bar", int(megabytes * 1e6), most) for megabytes, most in NAMED.get(name, ())]
    for words, peak_bytes, most in points:
        if not peak_bytes:
            print(line((words, "fails", "", "", "", "")), flush=True)
            continue
        row = at(name, peak_bytes, eager, outcome)
        result = (f"{row.peak_bytes / 1e6:.2f}", f"{row.flops / eager.flops:.4f}", "no" if row.differences else "yes")
        cells = result if not row.error else ("", row.error[:90].replace("|", "/"), "")
        print(line((words, f"{peak_bytes / 1e6:.2f}", f"{most:.4f}", *cells)), flush=True)
        yield from (f"{name}, {words}: {fault}" for fault in faults_of(row, most, peak_bytes, eager))


def peak_of(name: str, form: Form, outcome: Any, eager: Row) -> tuple[int, float]:
    """Peak and FLOPs of one of PyTorch's forms; (0, 0) if it fails."""
    row, _ = measured(name, form, outcome, 0)
    return (0, 0.0) if row.error else (row.peak_bytes, row.flops / eager.flops)


def seconds_of_passes(name: str) -> tuple[int, list[float]]:
    """The number of calls in the joint graph, and the CPU time of each of `PASSES` for a plan without a budget."""
    from recompute import RecomputeOptions, rewrite
    from recompute.frontends.torch.exporter import write_joint
    from recompute.frontends.torch.importer import read_joint
    from recompute.frontends.torch.partition import Partitioner
    from recompute.proof.prove import prove

    calls_and_times: list[tuple[int, list[float]]] = []

    class Timed(Partitioner):
        def __call__(self, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **keywords: Any) -> Any:
            times = [time.process_time()]
            module = read_joint(joint, num_fwd_outputs)
            times.append(time.process_time())
            rewritten = rewrite(module, RecomputeOptions(target="none", stagger=False))
            times.append(time.process_time())
            graph = write_joint(rewritten.module, joint)
            assert prove(module, read_joint(graph, num_fwd_outputs)).proved
            times.append(time.process_time())
            calls = sum(node.op == "call_function" for node in joint.graph.nodes)
            calls_and_times.append((calls, [end - start for start, end in pairwise(times)]))
            return self.fallback(joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)

    from recompute.frontends.torch.compile import Backend
    from recompute.frontends.torch.options import options_of

    for _ in range(2):  # the first run loads modules and compiles kernels
        torch._dynamo.reset()
        model, inputs = make(name)
        torch.compile(model, backend=Backend(Timed(options_of({}))))(*inputs).backward()
    return calls_and_times[-1]


def compile_seconds(name: str) -> tuple[float, float]:
    """CPU seconds of the first step under `min_cut` and under ours at 60 % of the plain peak; the shorter of two."""
    import recompute.torch as rt

    def first_step(wrap: Any) -> float:
        torch._dynamo.reset()
        model, inputs = make(name)
        start = time.process_time()
        wrap(model)(*inputs).backward()
        return time.process_time() - start

    from recompute.benchmarks.torch.forms import Run

    by_torch = partial(partitioned, min_cut_rematerialization_partition)
    ways = (lambda model: by_torch(Run(model, "")), lambda model: rt.compile(model, budget="60%"))
    return tuple(min(first_step(way) for _ in range(2)) for way in ways)  # pyright: ignore[reportReturnType]


def times() -> None:
    """Print how long the passes and the compilation take."""
    print(f"\n{line(('model', 'calls', *PASSES, 'import of 1,000 calls'))}\n{'|---' * 6}|")
    for name in ("gpt12 dropout", "gpt6 sdpa", "resnet50", "unet"):
        calls, seconds = seconds_of_passes(name)
        cells = (f"{each:.2f} s" for each in (*seconds, 1000 * seconds[0] / calls))
        print(line((name, calls, *cells)), flush=True)
    print(f"\n{line(('model', 'min_cut', 'ours, budget 60 %', 'ratio'))}\n{'|---' * 4}|")
    for name in ("gpt6 dropout", "gpt12 dropout", "unet"):
        theirs, own = compile_seconds(name)
        print(line((name, f"{theirs:.1f} s", f"{own:.1f} s", f"{own / theirs:.2f}")), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("gpt", "bars", "time"), help="one part: all by default")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    faults: list[str] = []
    if only in (None, "gpt"):
        faults += compared("gpt6 dropout", of_torch=True)
    if only in (None, "bars"):
        faults += [*compared("gpt12 dropout", of_torch=False), *compared("resnet50", of_torch=False)]
    if only in (None, "time"):
        times()
    print(*(f"missed: {fault}" for fault in faults), f"{len(faults)} faults", sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
