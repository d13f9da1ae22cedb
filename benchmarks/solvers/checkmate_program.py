"""Checkmate's integer program, as published, to compare it with our planner on small graphs.

Jain et al., MLSys 2020, section 4. R[t, i]: operation i runs in stage t. S[t, v]: storage v is live at the start of
stage t. FREE[t, v, k]: storage v is freed in stage t right after operation k. The memory U[t, k] is a sum of these
variables and must not exceed the budget.

The program differs from the paper in two ways. An additional last stage may recompute outputs. Storages replace
operations, so that operations may have several results. As in the paper, if an operation is recomputed while another of
its results is live, the bytes of that result are counted twice. The program chooses among exactly the same sets of
copies as the solvers of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from recompute.planning.solvers.integer_program import CoverProgram, CoverRows, ProgramLimits, solve
from recompute.planning.solvers.problem import Pair, Problem


@dataclass(frozen=True)
class PublishedResult:
    """The solution of the integer program.

    Attributes:
        pairs: The chosen copies, or None if no solution was found.
        bound_percent: The lower bound that HiGHS proved, in percent of the step's cost.
        infeasible: Whether HiGHS proved that no solution exists.
        seconds: The wall time of the solver.
        columns: The number of variables.
        rows: The number of constraints.
    """

    pairs: frozenset[Pair] | None
    bound_percent: float
    infeasible: bool
    seconds: float
    columns: int
    rows: int


def checkmate(problem: Problem, budget: int, seconds: float) -> PublishedResult:
    """Solve Checkmate's integer program for a budget in bytes, within a time limit in seconds."""
    began = perf_counter()
    builder = _Checkmate(problem, budget)
    program = CoverProgram(np.array(builder.costs), np.array(builder.low), builder.rows)
    answer = solve(program, limits=ProgramLimits(seconds=seconds, gap=1e-6))
    pairs = None
    if answer.values is not None:
        runs = [(t, op) for (t, op), column in builder.runs.items() if op < t and answer.values[column] > 0.5]
        pairs = frozenset(runs)
    solve_seconds = perf_counter() - began
    return PublishedResult(pairs, answer.bound, answer.infeasible, solve_seconds, len(builder.costs), len(builder.rows))


class _Checkmate:
    """A builder of the program, stage by stage, with bytes in units of the budget and costs in percent of the step."""

    def __init__(self, problem: Problem, budget: int):
        self.problem, self.n, self.budget = problem, len(problem), budget
        self.sizes = (problem.storage_bytes / budget).tolist()
        self.costs, self.low, self.rows = list[float](), list[float](), CoverRows()
        self.runs, self.live, self.free = dict[Pair, int](), dict[Pair, int](), dict[tuple[int, int, int], int]()
        for t in range(self.n + 1):
            self._columns(t)
        for t in range(self.n + 1):
            self._dependencies(t)
            self._frees(t)
            self._memory(t)

    def _column(self, cost: float = 0.0, low: float = 0.0) -> int:
        self.costs.append(cost)
        self.low.append(low)
        return len(self.costs) - 1

    def _columns(self, t: int) -> None:
        """Add the variables of stage t."""
        for op in range(min(t + 1, self.n)):
            first = op == t
            if first or (self.problem.may_run_again[op] and t >= self.problem.earliest_stage):
                cost = 0.0 if first else self.problem.percent(int(self.problem.costs[op]))
                self.runs[t, op] = self._column(cost, 1.0 if first else 0.0)
                for v in self._touched(op):
                    self.free[t, v, op] = self._column()
        for v in range(int(self.problem.result_start[t])):
            self.live[t, v] = self._column()

    def _touched(self, op: int) -> list[int]:
        return sorted({*self.problem.operands_of(op), *self.problem.results_of(op)})

    def _available(self, t: int, v: int) -> list[tuple[int, float]]:
        """Return the terms of R[t, maker of v] + S[t, v], a sum that is at least 1 if stage t can read storage v."""
        columns = (self.runs.get((t, int(self.problem.makers[v]))), self.live.get((t, v)))
        return [(column, 1.0) for column in columns if column is not None]

    def _dependencies(self, t: int) -> None:
        """Add the constraints that operations read only available storages, and that each stage starts only with
        storages that were available in the preceding stage.
        """
        for op in range(min(t + 1, self.n)):
            for v in self.problem.operands_of(op) if (t, op) in self.runs else ():
                self.rows.add_row(0.0, [(self.runs[t, op], -1.0), *self._available(t, v)])
        for v in range(int(self.problem.result_start[t])):
            self.rows.add_row(0.0, [(self.live[t, v], -1.0), *self._available(t - 1, v)])
        if t == self.n:
            for v in np.flatnonzero(self.problem.is_output).tolist():
                self.rows.add_row(1.0, self._available(t, v))

    def _frees(self, t: int) -> None:
        """Add the constraints on FREE.

        FREE is 1 if and only if the operation runs, no later operation reads v, and v is not live in the next stage.
        """
        for (stage, v, op), column in self.free.items():
            if stage != t:
                continue
            later = [self.runs[t, user] for user in self.problem.uses_of(v) if user > op and (t, user) in self.runs]
            hazards = [(self.runs[t, op], -1.0), *[(user, 1.0) for user in later]]
            if t < self.n:
                hazards.append((self.live[t + 1, v], 1.0))
            output = float(t == self.n and bool(self.problem.is_output[v]))
            most = len(later) + 2
            self.rows.add_row(-output, [(column, 1.0), *hazards])
            negated = [(entry, -weight) for entry, weight in hazards]
            self.rows.add_row(1.0 + output - most, [(column, -float(most)), *negated])

    def _memory(self, t: int) -> None:
        """Add Checkmate's memory constraints U[t, k] <= budget for stage t, with U expanded into its terms."""
        live_terms = [(self.live[t, v], -self.sizes[v]) for v in range(int(self.problem.result_start[t]))]
        for op in range(min(t + 1, self.n)):
            if (t, op) not in self.runs:
                continue
            column, inner = self.runs[t, op], float(self.problem.inner_bytes[op]) / self.budget
            result_size = sum(self.sizes[v] for v in self.problem.results_of(op))
            self.rows.add_row(-1.0, [*live_terms, (column, -result_size - inner)])
            live_terms += [(column, -result_size)]
            live_terms += [(self.free[t, v, op], self.sizes[v]) for v in self._touched(op)]
