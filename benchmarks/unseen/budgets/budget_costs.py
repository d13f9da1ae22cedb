"""Measure budgets on the steps of this folder: the temporaries, the extra FLOPs, and the distance of the results.

    python -m recompute.benchmarks.unseen.budgets.budget_costs [names] [--json rows.json]

Each step is compiled plain, under `jax.checkpoint`, and by `recompute.jax.jit(step, budget=…)`. The budgets are 0.8,
0.6 and 0.4 of the plain step's temporaries; 0.6 again, as MiB on the device; the temporaries of `jax.checkpoint`; and
`min`. `off` is the largest difference of any result from the plain step's result, relative to the largest magnitude in
that result. `off'` is the same value for `jax.checkpoint`. The exit status is 1 if a budget was exceeded, or if the
step needs more FLOPs than `jax.checkpoint` with the same temporaries.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

import recompute
from recompute.benchmarks.harness.parsers import benchmark_parser
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS
from recompute.benchmarks.unseen.budgets.budget_steps import BUDGETS
from recompute.benchmarks.unseen.common import UnseenStep, random_inputs

SHARES = (0.8, 0.6, 0.4)
MAX_COMPILES = 4
"""The number of compilations after which a budget search must stop (docs/jax_compilation.md)."""
MIB = 2**20


@dataclass(frozen=True)
class UnseenBudgetRow:
    """The measurement of a step compiled within a budget. None stands for values that do not apply.

    Attributes:
        allowed: The temporaries that the budget allows, as a share of the plain step's.
        needs: The temporaries that the compiled step needs, as a share of the plain step's.
        work: The FLOPs of the compiled step, as a multiple of the plain step's.
        theirs: The FLOPs of `jax.checkpoint` within this budget, as a multiple of the plain step's.
        off: The relative difference of the results from the plain step's.
        off_theirs: The relative difference of the results of `jax.checkpoint` from the plain step's.
        refused: The reason why the budget was refused.
    """

    step: str
    budget: str
    allowed: float | None
    needs: float | None
    work: float | None
    theirs: float | None
    compiles: int
    seconds: float
    off: float | None
    off_theirs: float
    refused: str | None = None

    def missed(self) -> Iterator[str]:
        """Yield a message for each requirement that the row violates."""
        where = f"{self.step} {self.budget}"
        if self.needs is not None and self.allowed is not None and self.needs > self.allowed:
            yield f"{where}: {self.needs:.3f} of the plain step's temporaries, above the allowed {self.allowed:.3f}"
        if self.compiles > MAX_COMPILES:
            yield f"{where}: took {self.compiles} compilations, more than {MAX_COMPILES}"
        if self.theirs is not None and self.work is None:
            yield f"{where}: refused, although the step of jax.checkpoint is within this budget"
        elif self.theirs is not None and self.work is not None and self.work > self.theirs:
            yield f"{where}: {self.work} × the plain step's FLOPs, above the {self.theirs} of jax.checkpoint"

    def __str__(self) -> str:
        cells = [self.step, self.budget, *map(_number, (self.allowed, self.needs, self.work, self.theirs))]
        cells += [
            str(self.compiles),
            f"{self.seconds:.0f}",
            _small(self.off),
            _small(self.off_theirs),
            self.refused or "",
        ]
        return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _small(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


@dataclass(frozen=True)
class CompiledStepCost:
    """The measurement of a compiled step.

    Attributes:
        temporaries: The bytes of temporaries.
        others: The bytes of arguments and results on the device.
        flops: The FLOPs.
        results: The results on the common inputs.
    """

    temporaries: int
    others: int
    flops: float
    results: list[Any]


def measured(compiled: Any, step: UnseenStep) -> CompiledStepCost:
    """Run a compiled step, and measure its bytes, FLOPs and results."""
    sizes = compiled.memory_analysis()
    others = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    results = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*random_inputs(step)))]
    return CompiledStepCost(sizes.temp_size_in_bytes, others, compiled.cost_analysis()["flops"], results)


def relative_difference(left: Sequence[Any], right: Sequence[Any]) -> float:
    """Return the largest relative difference of any result."""
    worst = 0.0
    for result, expected in zip(left, right, strict=True):
        difference = np.abs(result.astype(np.float64) - expected.astype(np.float64)).max(initial=0.0)
        scale = np.abs(expected.astype(np.float64)).max(initial=0.0)
        worst = max(worst, float(difference / scale if scale else difference))
    return worst


@dataclass(frozen=True)
class RequestedBudget:
    """A budget for which a step is measured.

    Attributes:
        label: The name of the budget in the table.
        budget: The argument of `recompute.jax.jit`.
        allowed: The budget as a share of the plain step's temporaries; None for `min`.
        theirs: The FLOPs of `jax.checkpoint` within this budget, relative to the plain step's; None for other budgets.
    """

    label: str
    budget: Any
    allowed: float | None
    theirs: float | None = None


def rows_of(name: str) -> Iterator[UnseenBudgetRow]:
    """Yield a row for each requested budget of a step."""
    step, twin = BUDGETS[name](False, True), BUDGETS[name](True, True)
    plain = measured(step.lower().compile(), step)
    theirs = measured(twin.lower().compile(compiler_options=KEEP_BARRIERS), twin)
    theirs_off, most = relative_difference(theirs.results, plain.results), theirs.flops / plain.flops
    requested = [RequestedBudget(str(share), share, share) for share in SHARES]
    device = f"{(0.6 * plain.temporaries + plain.others) / MIB:.3f}MiB"
    requested.append(RequestedBudget(device, device, 0.6 + 0.001 * MIB / plain.temporaries))
    if theirs.temporaries < plain.temporaries:
        share = theirs.temporaries / plain.temporaries
        requested.append(RequestedBudget("jax.checkpoint", share, share, most))
    requested.append(RequestedBudget("min", "min", None))
    for request in requested:
        yield row_of(name, step, request, plain, theirs_off)


def row_of(
    name: str, step: UnseenStep, request: RequestedBudget, plain: CompiledStepCost, theirs_off: float
) -> UnseenBudgetRow:
    """Measure the step within a budget. `theirs_off`: the relative difference of the results with `jax.checkpoint`."""
    start, head = time.perf_counter(), (name, request.label, request.allowed)
    jitted: Any = recompute.jax.jit(step.function, donate_argnums=step.donate, budget=request.budget)
    try:
        lowered = jitted.lower_quietly(*step.arguments)
    except recompute.Refusal as error:
        spent = time.perf_counter() - start
        reason = error.reason.split(";")[0]
        return UnseenBudgetRow(*head, None, None, request.theirs, MAX_COMPILES, spent, None, theirs_off, reason)
    spent = time.perf_counter() - start
    ours = measured(lowered.compile(), step)
    compiles = 0 if lowered.within is None else len(lowered.within.rounds)
    needs, work = ours.temporaries / plain.temporaries, ours.flops / plain.flops
    ours_off = relative_difference(ours.results, plain.results)
    return UnseenBudgetRow(*head, needs, work, request.theirs, compiles, spent, ours_off, theirs_off)


def main(say: Callable[..., None] = print) -> int:
    """Print a row for each budget of each step, and return 1 if a requirement is violated."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BUDGETS], help="steps to measure; all by default")
    parser.add_argument("--json", type=Path, help="also write the rows to this file, as JSON")
    options = parser.parse_args()
    say("| step | budget | allowed | needs | FLOPs | theirs | compiles | seconds | off | off' | refused |")
    say("|---|---|---|---|---|---|---|---|---|---|---|")
    rows: list[UnseenBudgetRow] = []
    for name in options.names or BUDGETS:
        for row in rows_of(name):
            say(row, flush=True)
            rows.append(row)
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    used = [row.needs / row.allowed for row in rows if row.compiles and row.needs and row.allowed]
    say(f"\nmedian share of the budget that is used: {median(used):.3f}" if used else "")
    missed = [line for row in rows for line in row.missed()]
    say(*missed, sep="\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
