"""Measure the cost of `recompute.torch` at the peak that each of PyTorch's controls reaches.

    python -m recompute.benchmarks.torch.pytorch_peaks              # the tables of docs/measured/torch.md
    python -m recompute.benchmarks.torch.pytorch_peaks --only gpt   # compare peaks and FLOPs of the GPT with 6 layers
    python -m recompute.benchmarks.torch.pytorch_peaks --only time  # time the passes and the compilation

Peaks are live storages of one step in program order, FLOPs are those of matrix products, convolutions and attention,
and seconds are CPU time. The exit status is 1 if a step exceeds its peak, needs more FLOPs than PyTorch's step at that
peak or than the bar in `BARS`, or differs from eager mode.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition

from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.torch.form_rows import FormRow, measure_form
from recompute.benchmarks.torch.model_cases import make
from recompute.benchmarks.torch.model_forms import ModelForm, baselines, compile_with, compile_within_budget

BARS = {
    "gpt6 dropout": ((26.98, 1.001), (12.71, 1.118)),
    "gpt12 dropout": ((15.2, 1.175),),
    "resnet50": ((11.0, 1.05),),
}
"""Pairs of a peak in MB and the largest allowed FLOPs at that peak, as a multiple of the eager step's FLOPs."""
HEAD = ("peak of", "MB", "PyTorch's FLOPs x", "ours MB", "ours FLOPs x", "equal to eager")
PASSES = ("import", "rewrite and proof", "export and second proof")


def measure_at(name: str, peak_bytes: int, eager: FormRow, outcome: Any) -> FormRow:
    """Measure `recompute.torch` with the given peak as its budget."""
    form = ModelForm("ours", compile_within_budget, (peak_bytes + 0.5) / eager.peak_bytes)
    row, _ = measure_form(name, form, outcome, eager.peak_bytes)
    return row


def faults_of(row: FormRow, most: float, peak_bytes: int, eager: FormRow) -> Iterator[str]:
    """Yield a message for each missed bar. `most`: the largest allowed FLOPs, as a multiple of the eager step's."""
    if row.error:
        yield row.error
        return
    if row.differences:
        yield f"differs from eager: {', '.join(row.differences[:3])}"
    if row.peak_bytes > peak_bytes:
        yield f"the peak of {row.peak_bytes} bytes exceeds the budget by {row.peak_bytes - peak_bytes} bytes"
    if row.flops / eager.flops > most + 5e-5:
        yield f"{row.flops / eager.flops:.4f} × the eager FLOPs, above the bar of {most:.4f}"


def print_comparison(name: str, of_torch: bool) -> Iterator[str]:
    """Print the table of a model, and yield a message for each fault."""
    print(f"\n### {name}\n")
    print(table_head(HEAD))
    first, *others = baselines()
    eager, outcome = measure_form(name, first, None, 0)
    points = [(form.name, *peak_of(name, form, outcome, eager)) for form in others] if of_torch else []
    points += [("a bar", int(megabytes * 1e6), most) for megabytes, most in BARS.get(name, ())]
    for label, peak_bytes, most in points:
        if not peak_bytes:
            print(table_row((label, "fails", "", "", "", "")), flush=True)
            continue
        own_row = measure_at(name, peak_bytes, eager, outcome)
        result = (
            f"{own_row.peak_bytes / 1e6:.2f}",
            f"{own_row.flops / eager.flops:.4f}",
            "no" if own_row.differences else "yes",
        )
        cells = result if not own_row.error else ("", own_row.error[:90].replace("|", "/"), "")
        print(table_row((label, f"{peak_bytes / 1e6:.2f}", f"{most:.4f}", *cells)), flush=True)
        yield from (f"{name}, {label}: {fault}" for fault in faults_of(own_row, most, peak_bytes, eager))


def peak_of(name: str, form: ModelForm, outcome: Any, eager: FormRow) -> tuple[int, float]:
    """Return the peak and the relative FLOPs of one of PyTorch's forms, or zeros if it fails."""
    row, _ = measure_form(name, form, outcome, 0)
    return (0, 0.0) if row.error else (row.peak_bytes, row.flops / eager.flops)


def seconds_of_passes(name: str) -> tuple[int, list[float]]:
    """Return the number of calls in the joint graph, and the CPU seconds of each of `PASSES` without a budget."""
    from recompute import RecomputeOptions, rewrite
    from recompute.frontends.torch.fx.exporter import write_joint
    from recompute.frontends.torch.fx.importer import read_joint
    from recompute.frontends.torch.partition.partitioner import Partitioner
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

    for _ in range(2):  # The first run loads modules and compiles kernels.
        torch._dynamo.reset()
        model, inputs = make(name)
        torch.compile(model, backend=Backend(Timed(options_of({}))))(*inputs).backward()
    return calls_and_times[-1]


def compile_seconds(name: str) -> tuple[float, float]:
    """Return the CPU seconds of the first step with `min_cut`, and with `recompute.torch` at 60 % of the plain peak.

    Each value is the shorter of two runs.
    """
    import recompute.torch as rt

    def first_step(wrap: Any) -> float:
        torch._dynamo.reset()
        model, inputs = make(name)
        start = time.process_time()
        wrap(model)(*inputs).backward()
        return time.process_time() - start

    from recompute.benchmarks.torch.model_forms import Run

    by_torch = partial(compile_with, min_cut_rematerialization_partition)
    compilers = (lambda model: by_torch(Run(model, "")), lambda model: rt.compile(model, budget="60%"))
    return tuple(min(first_step(compile) for _ in range(2)) for compile in compilers)  # pyright: ignore[reportReturnType]


def print_times() -> None:
    """Print the tables of the CPU times of the passes and of the compilation."""
    print(f"\n{table_head(('model', 'calls', *PASSES, 'import of 1,000 calls'))}")
    for name in ("gpt12 dropout", "gpt6 sdpa", "resnet50", "unet"):
        calls, seconds = seconds_of_passes(name)
        cells = (f"{each:.2f} s" for each in (*seconds, 1000 * seconds[0] / calls))
        print(table_row((name, calls, *cells)), flush=True)
    print(f"\n{table_head(('model', 'min_cut', 'ours, budget 60 %', 'ratio'))}")
    for name in ("gpt6 dropout", "gpt12 dropout", "unet"):
        baseline, rewritten = compile_seconds(name)
        cells = (name, f"{baseline:.1f} s", f"{rewritten:.1f} s", f"{rewritten / baseline:.2f}")
        print(table_row(cells), flush=True)


def main() -> int:
    """Print the tables, and return 1 if a bar is missed."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("--only", choices=("gpt", "bars", "time"), help="run only one part; all by default")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    faults: list[str] = []
    if only in (None, "gpt"):
        faults += print_comparison("gpt6 dropout", of_torch=True)
    if only in (None, "bars"):
        faults += [*print_comparison("gpt12 dropout", of_torch=False), *print_comparison("resnet50", of_torch=False)]
    if only in (None, "time"):
        print_times()
    print(*(f"missed: {fault}" for fault in faults), f"{len(faults)} faults", sep="\n", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
