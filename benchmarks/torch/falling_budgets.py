"""Run the programs from PyTorch's issues at falling budgets. Check their results, and check that no smaller budget has
a higher peak.

    python -m recompute.benchmarks.torch.falling_budgets  # the table of docs/measured/torch.md
    python -m recompute.benchmarks.torch.falling_budgets --backend aot_eager --only 'pytorch 190717'

Results: peaks in kB, in docs/measured/torch.md. Time: about 10 minutes.

Budgets are shares of the plain step's peak. With `aot_eager`, the reference is the eager step, and peaks are live
storages in program order. With Inductor, the reference is `torch.compile(model)`, and the allocator measures peaks in
the second step. For a refused budget, the row shows the lowest peak that the refusal reports.

The exit status is 1 if a result differs (under Inductor: by more than rounding), or if the final random state differs.
It is also 1 if a step exceeds its budget, or if a peak is higher than at a larger budget.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from recompute.benchmarks.harness.command_line import add_only, benchmark_parser, report_missed, selected
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.torch.configure import configure_torch
from recompute.benchmarks.torch.inductor_budgets import ROUNDING
from recompute.benchmarks.torch.inductor_budgets import measure as measure_by_allocator
from recompute.benchmarks.torch.model_cases import make
from recompute.benchmarks.torch.refusals import is_refusal, lowest_stated_peak
from recompute.benchmarks.torch.training_step import Outcome, meter_step, training_step

PROGRAMS = ("pytorch 190758", "pytorch 190717", "pytorch 197838")
BACKENDS = ("aot_eager", "inductor")
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
HEAD = ("program", "backend", "plain", *(f"{share:g}" for share in SHARES), "results", "RNG", "rises")


@dataclass(frozen=True)
class FallingStep:
    """The measurement of a step within one budget.

    Attributes:
        share: The budget, as a share of the plain step's peak.
        peak_bytes: The measured peak, or the lowest peak that the refusal of the budget reports.
        is_refused: Whether the budget was refused.
        difference: The largest relative distance of a result from the plain step's result.
        state_is_equal: Whether the final random state equals the plain step's.
    """

    share: float
    peak_bytes: int
    is_refused: bool = False
    difference: float = 0.0
    state_is_equal: bool = True

    @property
    def cell(self) -> str:
        """The peak in kB, as a table cell."""
        kilobytes = f"{self.peak_bytes / 1e3:.1f}"
        return f"refused, {kilobytes}" if self.is_refused else kilobytes


def measure_in_order(name: str, wrap: Callable[[Any], Any]) -> tuple[Outcome, int]:
    """Run two steps in program order, and return the results of the first and the peak of the second."""
    torch._dynamo.reset()
    model, inputs = make(name)
    step = wrap(model)
    outcome = training_step(model, step, inputs)
    return outcome, meter_step(model, step, inputs).peak_bytes


def measure(name: str, backend: str, wrap: Callable[[Any], Any]) -> tuple[Outcome, int]:
    """Measure the results and the peak of a step in the way that its backend requires."""
    if backend == "aot_eager":
        return measure_in_order(name, wrap)
    outcome, peak, _ = measure_by_allocator(name, wrap)
    return outcome, peak


def plain(name: str, backend: str) -> tuple[Outcome, int]:
    """Return the reference results, and the plain peak.

    With `aot_eager`, the plain peak is the peak of the compiled step without copies.
    """
    if backend == "inductor":
        return measure(name, backend, torch.compile)
    import recompute.torch as rt

    outcome, _ = measure_in_order(name, lambda model: model)
    return outcome, measure_in_order(name, lambda model: rt.compile(model, budget="100%"))[1]


def steps_of(name: str, backend: str, reference: Outcome) -> Iterator[FallingStep]:
    """Yield the measurement at each budget of `SHARES`, in order of falling budgets."""
    import recompute.torch as rt

    for share in SHARES:
        try:
            outcome, peak = measure(
                name, backend, lambda model, share=share: rt.compile(model, budget=share, backend=backend)
            )
        except Exception as error:
            if not is_refusal(error):
                raise
            yield FallingStep(share, lowest_stated_peak(str(error)), is_refused=True)
            continue
        distance, state_is_equal = reference.largest_distance(outcome), outcome.has_state_of(reference)
        yield FallingStep(share, peak, False, distance, state_is_equal)


def faults_of(steps: list[FallingStep], plain_bytes: int, rounding: float) -> Iterator[str]:
    """Yield a message for each fault of a row. `rounding`: the largest allowed distance of a result."""
    for step in steps:
        if step.is_refused and not step.peak_bytes:
            yield f"budget {step.share:g}: the refusal reports no peak"
        if step.is_refused:
            continue
        if step.difference > rounding:
            yield f"budget {step.share:g}: a result differs by {step.difference:.1e}"
        if not step.state_is_equal:
            yield f"budget {step.share:g}: the final random state differs"
        if step.peak_bytes > step.share * plain_bytes:
            yield f"budget {step.share:g}: {step.peak_bytes} bytes exceed the {int(step.share * plain_bytes)} allowed"
    for larger, smaller in rises(steps):
        peaks = f"{smaller.peak_bytes} bytes, but only {larger.peak_bytes} at the larger budget {larger.share:g}"
        yield f"budget {smaller.share:g}: {peaks}"


def rises(steps: list[FallingStep]) -> list[tuple[FallingStep, FallingStep]]:
    """Return the pairs of consecutive steps in which the smaller budget has the higher peak."""
    accepted = [step for step in steps if not step.is_refused]
    return [pair for pair in pairwise(accepted) if pair[1].peak_bytes > pair[0].peak_bytes]


def cells(name: str, backend: str, plain_bytes: int, steps: list[FallingStep]) -> list[str]:
    """Return the cells of a table row, with peaks in kB."""
    difference = max((step.difference for step in steps), default=0.0)
    equal = all(step.state_is_equal for step in steps)
    return [
        name,
        backend,
        f"{plain_bytes / 1e3:.1f}",
        *(step.cell for step in steps),
        f"{difference:.1e}" if difference else "equal",
        "equal" if equal else "NO",
        "yes" if rises(steps) else "no",
    ]


def main() -> int:
    """Print a table row for each program and backend, and return 1 if there are faults."""
    parser = benchmark_parser(__doc__)
    add_only(parser, "program", PROGRAMS)
    backend = "run only this backend of `torch.compile`; may be repeated (default: both)"
    parser.add_argument("--backend", action="append", choices=BACKENDS, help=backend)
    options = parser.parse_args()
    configure_torch(reuse_compiled_steps=False)
    print(table_head(HEAD), flush=True)
    faults: list[str] = []
    for backend in options.backend or BACKENDS:
        for name in selected(PROGRAMS, options.only):
            reference, plain_bytes = plain(name, backend)
            steps = list(steps_of(name, backend, reference))
            print(table_row(cells(name, backend, plain_bytes, steps)), flush=True)
            rounding = 0.0 if backend == "aot_eager" else ROUNDING
            faults += [f"{name}, {backend}, {fault}" for fault in faults_of(steps, plain_bytes, rounding)]
    return report_missed(faults)


if __name__ == "__main__":
    sys.exit(main())
