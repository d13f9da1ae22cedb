"""Tables of sweeps over budgets. Each row is printed as soon as its budget is solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...driver.budgets.pareto_by_model import NO_BOUND
from ...planning.solvers.problem import Problem
from ...planning.solvers.sweep import NOT_TRIED, Outcome
from ...reports.curve import Curve, Point, RefusedBudget
from ...support.counted import counted
from ...support.interrupts import Interrupt
from ...support.progress import ProgressLine
from ...support.units import readable_bytes
from .plan_arguments import print_lines
from .plan_output import SWEEP_HEADER, UNPROVED_HEADER, sweep_row, unproved_row

IMPROVED = "improved by the searches for other budgets"


@dataclass
class _PrintedRows:
    """The rows of a table that have been printed, by budget in bytes. `line`: the progress line."""

    line: ProgressLine
    rows: dict[int, str] = field(default_factory=dict[int, str])

    def open(self, title: str, header: str) -> None:
        """Print the title and the header of a new table."""
        self.rows.clear()
        self._print(title, header)

    def add(self, budget: int, row: str) -> None:
        self.rows[budget] = row
        self._print(row)

    def close(self, final_rows: Mapping[int, str]) -> None:
        """Reprint the rows that have changed since they were printed."""
        improved = [row for budget, row in final_rows.items() if row != self.rows.get(budget)]
        if improved:
            self._print(IMPROVED, *improved)

    def _print(self, *lines: str) -> None:
        self.line.clear()
        print_lines(lines)


class SweepTable:
    """A table with the results for one block or graph. It observes the sweep, and prints a row for each result.

    Attributes:
        plain_peak_bytes: The peak of the unchanged block.
        stops: The note on each search that was not completed, such as `stopped at the time limit of 30 s`, by budget in
            bytes.
    """

    def __init__(self, line: ProgressLine, interrupt: Interrupt, seconds: float | None):
        """`interrupt`: the interrupt that ends the sweep; `seconds`: the time limit for each budget, None for no
        limit."""
        self._printed = _PrintedRows(line)
        self._line, self._interrupt, self._seconds = line, interrupt, seconds
        self.plain_peak_bytes = 0
        self.stops = dict[int, str]()

    def open(self, title: str, plain_peak_bytes: int) -> None:
        """Print the title and the header of a new table."""
        self.plain_peak_bytes = plain_peak_bytes
        self.stops.clear()
        self._printed.open(title, SWEEP_HEADER)

    def begin(self, name: str, problem: Problem, plain_peak_bytes: int) -> None:
        """Open the table for one block of a step. Implements `SweepObserver`."""
        size = f"{readable_bytes(plain_peak_bytes)} of temporaries"
        title = f"{name}: {counted(len(problem), 'operation')}, plain peak {size}, in program order"
        self.open(title, plain_peak_bytes)

    def set_phase(self, phase: str, share: float | None = None) -> None:
        self._line.set_phase(phase, share)

    def report(self, budget: int, outcome: Outcome) -> None:
        """Print the row of a budget."""
        if not outcome.finished and outcome is not NOT_TRIED:
            by_limit = self._seconds is not None and not self._interrupt.is_set()
            self.stops[budget] = f"stopped at the time limit of {self._seconds:g} s" if by_limit else "stopped"
        self._printed.add(budget, self._row(budget, outcome))

    def close(self, budgets: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        """Reprint the rows that the searches for larger budgets have improved."""
        self._printed.close(
            {budget: self._row(budget, outcome) for budget, outcome in zip(budgets, outcomes, strict=True)}
        )

    def _row(self, budget: int, outcome: Outcome) -> str:
        return sweep_row(budget, outcome, self.plain_peak_bytes, self.stops.get(budget, ""))


class ModelSweepTable:
    """A table with the results for one step under the XLA:CPU model. It observes the sweep, and prints a row for each
    result."""

    def __init__(self, line: ProgressLine):
        self._printed = _PrintedRows(line)
        self._plain_peak_bytes = 0

    def begin(self, name: str, plain_peak_bytes: int) -> None:
        """Open the table. Implements `ModelSweepObserver`."""
        self._plain_peak_bytes = plain_peak_bytes
        peak = f"plain peak {readable_bytes(plain_peak_bytes)} of temporaries"
        self._printed.open(f"{name}: {peak}; {NO_BOUND}", UNPROVED_HEADER)

    def report(self, outcome: Point | RefusedBudget) -> None:
        """Print the row of a budget."""
        self._printed.add(outcome.budget_bytes, unproved_row(outcome, self._plain_peak_bytes))

    def close(self, curve: Curve) -> None:
        """Reprint the rows that the searches for smaller budgets have improved."""
        rows = {
            outcome.budget_bytes: unproved_row(outcome, self._plain_peak_bytes)
            for outcome in (*curve.points, *curve.refused)
        }
        self._printed.close(rows)
