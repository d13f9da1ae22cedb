"""Measure budgets on the steps of this folder: the temporaries, the extra FLOPs, and the distance of the results.

    python -m recompute.benchmarks.unseen.budgets.budget_costs                             # all steps
    python -m recompute.benchmarks.unseen.budgets.budget_costs codebook --json rows.json

Results: temporaries and FLOPs as multiples of the plain step's, and wall seconds; docs/limits_budgets.md quotes one
step. Time: about 2 hours.

Each step is compiled plain, under `jax.checkpoint`, and by `recompute.jax.jit(step, budget=…)`. The budgets are 0.8,
0.6 and 0.4 of the plain step's temporaries; 0.6 again, as MiB on the device; the temporaries of `jax.checkpoint`; and
`min`. The columns are those of `xla_memory.example_budgets`, and two distances. `off` is the largest difference of any
result from the plain step's result, as a share of the largest magnitude in that result. `theirs off` is the same value
for `jax.checkpoint`. The exit status is 1 if a budget was exceeded, or if the step needs more FLOPs than
`jax.checkpoint` with the same temporaries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import recompute
from recompute.benchmarks.harness.budget_rows import BUDGET_HEAD, BudgetRow, RequestedBudget, compile_within_budget
from recompute.benchmarks.harness.command_line import (
    add_json,
    add_names,
    benchmark_parser,
    report_missed,
)
from recompute.benchmarks.harness.compiled_cost import temporaries_and_flops
from recompute.benchmarks.harness.result_arrays import largest_distance
from recompute.benchmarks.harness.row_printer import print_rows
from recompute.benchmarks.harness.xla_flags import KEEP_BARRIERS
from recompute.benchmarks.unseen.budgets.budget_steps import BUDGETS
from recompute.benchmarks.unseen.step_parts import random_inputs

SHARES = (0.8, 0.6, 0.4)
"""The budgets, as shares of the plain step's temporaries."""
MIB = 2**20


@dataclass(frozen=True)
class UnseenBudgetRow:
    """The measurement of a step within a budget, with the distances of its results from the plain step's results.

    Attributes:
        budget_row: The measurement without distances.
        off: The relative difference of the results; None if the budget was refused.
        theirs_off: The relative difference of the results with `jax.checkpoint`.
    """

    budget_row: BudgetRow
    off: float | None
    theirs_off: float

    def cells(self) -> list[str]:
        """Return the cells of the table row: those of `BUDGET_HEAD`, and the two distances."""
        return [*self.budget_row.cells(), "" if self.off is None else f"{self.off:.0e}", f"{self.theirs_off:.0e}"]


def requested_budgets(plain: Any, checkpoint: Any) -> list[RequestedBudget]:
    """Return the budgets of a step, from its compiled variants: plain, and with `jax.checkpoint`."""
    (plain_bytes, plain_flops), (theirs, their_flops) = map(temporaries_and_flops, (plain, checkpoint))
    memory = plain.memory_analysis()
    others = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
    device = f"{(0.6 * plain_bytes + others) / MIB:.3f}MiB"
    requests = [RequestedBudget.of_share(share) for share in SHARES]
    # The device's bytes are rounded to 0.001 MiB.
    requests.append(RequestedBudget(device, device, 0.6 + 0.001 * MIB / plain_bytes))
    if theirs < plain_bytes:
        requests.append(RequestedBudget.of_checkpoint(theirs / plain_bytes, their_flops / plain_flops))
    return [*requests, RequestedBudget("min", "min", None)]


def rows_of(name: str) -> Iterator[UnseenBudgetRow]:
    """Yield a row for each requested budget of a step."""
    step, twin = BUDGETS[name](False, True), BUDGETS[name](True, True)
    plain = step.lower().compile()
    checkpoint = twin.lower().compile(compiler_options=KEEP_BARRIERS)
    expected = plain(*random_inputs(step))
    theirs_off = largest_distance(expected, checkpoint(*random_inputs(twin)))
    for request in requested_budgets(plain, checkpoint):
        jitted = recompute.jax.jit(step.function, donate_argnums=step.donate, budget=request.argument)
        row, ours = compile_within_budget(name, jitted, step.arguments, request, temporaries_and_flops(plain))
        off = None if ours is None else largest_distance(expected, ours(*random_inputs(step)))
        yield UnseenBudgetRow(row, off, theirs_off)


def main() -> int:
    """Print a row for each budget of each step, and return 1 if a requirement is violated."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", BUDGETS)
    add_json(parser)
    options = parser.parse_args()
    measured = (row for name in options.names or BUDGETS for row in rows_of(name))
    rows = print_rows((*BUDGET_HEAD, "off", "theirs off"), measured, UnseenBudgetRow.cells, options.json)
    uses = [row.budget_row.use for row in rows if row.budget_row.compiles and row.budget_row.use is not None]
    print(f"\nmedian share of the budget that is used: {median(uses) if uses else 0:.3f}")
    return report_missed([line for row in rows for line in row.budget_row.missed()])


if __name__ == "__main__":
    sys.exit(main())
