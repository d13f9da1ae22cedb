"""Bound the extra cost with the coarse-stage program. Its variables are the live storages at some cuts of the step, and
the operations that are rerun between the cuts.

Cuts are operations p_1 < … < p_K, and B is the budget. S[k, v] = 1: storage v is live while p_k runs for the first
time. H[k, v] = 1: storage v stays live from cut k to the next cut. X[k, i] = 1: operation i, at or before p_k, is rerun
between the first executions of p_k and p_k+1 (the end for k = K). Every schedule, with any copies, gives a feasible
point whose cost is at most the cost of the schedule, since X means "at least once". So for any choice of cuts, the
optimum and every dual bound are lower bounds, and infeasibility proves that no schedule is within the budget. With K =
1, the relaxation is the minimum cut between saving and recomputing.

    minimize sum cost_i X[k, i]
    (1) sum of bytes_v S[k, v] <= B at each cut; S[k, v] = 1 for all v that p_k reads or makes
    (2) S[k, v] + X[k, maker v] >= 1 for all v from before p_k that operations after p_k, up to p_k+1, read; outputs at
        the end
    (3) X[k, i] <= S[k, v] + X[k, maker v] for every input v of i
    (4) S[k+1, v] <= S[k, v] + X[k, maker v]
    (5) bytes of i plus bytes that are live throughout the segment <= B if X[k, i] = 1:
        H[k, v] >= S[k+1, v] - X[k, maker v], in the last segment for outputs

The relaxation is weaker with two cuts than with one, because half a run in each of two adjacent segments satisfies the
readers in both. So with several cuts there are variables Y: Y[k, i] = 1 means that i is rerun anywhere after p_k. The
rows (6) correspond to (2) and (3) as if p_k were the only cut. They are redundant for integral points, but make the
solver six to ten times as fast.

    (6) S[k, v] + Y[k, maker v] >= 1 for all v from before p_k that any operation after p_k reads;
        Y[k, i] <= S[k, v] + Y[k, maker v]
        X[k, i] <= Y[k, i], Y[k+1, i] <= Y[k, i] <= X[k, i] + Y[k+1, i], and for the last cut Y is X

S and X are integral. If H and Y are minimal, they are integral too. Storages below a ten-thousandth of the budget count
as free, which can only lower the optimum. Bytes are in units of the budget, and costs in percent of the cost of the
step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from .integer_program import CoverColumns, CoverProgram, CoverRows, Doubles
from .problem import Pair, Problem

Columns = dict[int, int]
"""The columns of one kind of variable at one cut, by storage or by operation."""
NEGLIGIBLE_SHARE = 1e-4
"""Share of the budget below which a storage counts as free, so that it has no variables."""


@dataclass(frozen=True, kw_only=True)
class StageProgram:
    """The coarse-stage program for one choice of cuts.

    Attributes:
        cuts: The operations of the cuts, in ascending order.
        program: The integer program.
        saved: For each cut, the columns of S[k, v], by storage.
        reruns: For each cut, the columns of X[k, i], by operation.
        held: For each cut, the columns of H[k, v], by storage.
        later_reruns: For each cut, the columns of Y[k, i], by operation.
    """

    cuts: tuple[int, ...]
    program: CoverProgram
    saved: tuple[Columns, ...]
    reruns: tuple[Columns, ...]
    held: tuple[Columns, ...]
    later_reruns: tuple[Columns, ...]

    def point(self, problem: Problem, pairs: Collection[Pair]) -> Doubles:
        """Return the solution that corresponds to these copies, as a value for each column."""
        return _point(self, problem, pairs)

    def recomputed(self, values: Doubles, at: int = 0) -> frozenset[int]:
        """Return the operations that are rerun between the cut with index `at` and the next cut, according to a
        solution."""
        return frozenset([op for op, column in self.reruns[at].items() if values[column] > 0.5])

    def alive(self, values: Doubles, at: int = 0) -> frozenset[int]:
        """Return the storages that are live at the cut with index `at`, according to a solution."""
        return frozenset([value for value, column in self.saved[at].items() if values[column] > 0.5])


def stage_program(
    problem: Problem, budget: int, cuts: Sequence[int], negligible: float = NEGLIGIBLE_SHARE
) -> StageProgram:
    """Build the coarse-stage program for a choice of cuts.

    Args:
        problem: The problem.
        budget: The budget in bytes.
        cuts: The operations of the cuts.
        negligible: The share of the budget below which a storage counts as free.
    """
    return _StageProgramWriter(problem, budget, tuple(sorted(cuts)), negligible).write()


class _StageProgramWriter:
    """A writer that builds the program cut by cut."""

    def __init__(self, problem: Problem, budget: int, cuts: tuple[int, ...], negligible: float):
        self.problem, self.budget, self.cuts = problem, budget, cuts
        n = len(problem)
        self.sizes = (problem.storage_bytes / budget).tolist()
        self.counted = [size >= negligible for size in self.sizes]
        self.maker: list[int] = problem.makers.tolist()
        self.reads = [problem.operands_of(op) for op in range(n)]
        self.columns, self.rows = CoverColumns(), CoverRows()
        self.percent = [problem.percent(int(cost)) for cost in problem.costs]

    def write(self) -> StageProgram:
        """Write all columns and rows."""
        needed = [self._needed_after(k) for k in range(len(self.cuts))]
        saved = tuple([self._add_saved_columns(k, needed[k]) for k in range(len(self.cuts))])
        reruns = tuple([self._add_run_columns(k, needed[k]) for k in range(len(self.cuts))])
        held = tuple([self._add_held_columns(k, saved, reruns) for k in range(len(self.cuts))])
        for k in range(len(self.cuts)):
            self._add_capacity_rows(k, saved[k])
            self._add_need_rows(k, saved, reruns)
            self._add_working_set_rows(k, reruns[k], held[k])
        later_reruns = self._add_later_rerun_columns(saved, reruns)
        following = [column for columns in (*held, *later_reruns[:-1]) for column in columns.values()]
        program = CoverProgram.of(self.columns, self.rows, tuple(following))
        return StageProgram(
            cuts=self.cuts, program=program, saved=saved, reruns=reruns, held=held, later_reruns=later_reruns
        )

    def _needed_after(self, k: int) -> tuple[set[int], set[int]]:
        """Return the storages that are made up to the cut and may be needed after it, and the operations that can
        recompute them."""
        cut, problem = self.cuts[k], self.problem
        values = {v for op in range(cut + 1, len(problem)) for v in self.reads[op] if self.maker[v] <= cut}
        values |= {v for v in np.flatnonzero(problem.is_output).tolist() if self.maker[v] <= cut}
        values = {v for v in values if self.counted[v]}
        stack, operations = list(values), set[int]()
        while stack:
            op = self.maker[stack.pop()]
            if op in operations or not problem.may_run_again[op]:
                continue
            operations.add(op)
            operands = [v for v in self.reads[op] if self.counted[v] and v not in values]
            values.update(operands)
            stack += operands
        return values, operations

    def _add_saved_columns(self, k: int, needed: tuple[set[int], set[int]]) -> Columns:
        cut, problem = self.cuts[k], self.problem
        present = {*self.reads[cut], *problem.results_of(cut)}
        forced = {v for v in present if self.counted[v]}
        return {v: self.columns.add_column(low=1.0 if v in forced else 0.0) for v in sorted(needed[0] | forced)}

    def _add_run_columns(self, k: int, needed: tuple[set[int], set[int]]) -> Columns:
        return {op: self.columns.add_column(self.percent[op]) for op in sorted(needed[1])}

    def _add_held_columns(self, k: int, saved: Sequence[Columns], reruns: Sequence[Columns]) -> Columns:
        """Add the columns of H, and the rows that define H in constraint (5) of the module docstring."""
        cut, columns = self.cuts[k], dict[int, int]()
        is_last = k + 1 == len(self.cuts)
        live_at_both = (v for v in (saved[k] if is_last else saved[k + 1]) if v in saved[k])
        for v in live_at_both:
            if self.maker[v] > cut or (is_last and not self.problem.is_output[v]):
                continue
            columns[v] = self.columns.add_column()
            run = self._run_term(reruns[k], v)
            if is_last:
                self.rows.add_row(1.0, [(columns[v], 1.0), *run])
            else:
                self.rows.add_row(0.0, [(columns[v], 1.0), (saved[k + 1][v], -1.0), *run])
        return columns

    def _run_term(self, reruns: Columns, v: int) -> list[tuple[int, float]]:
        """Return the term X[k, maker v] as a list; empty if the maker must not be rerun."""
        return [(reruns[self.maker[v]], 1.0)] if self.maker[v] in reruns else []

    def _add_capacity_rows(self, k: int, saved: Columns) -> None:
        """Add constraint (1) of the module docstring: the storages that are live at cut `k` fit in the budget."""
        inner = float(self.problem.inner_bytes[self.cuts[k]]) / self.budget
        self.rows.add_row(inner - 1.0, [(column, -self.sizes[v]) for v, column in saved.items()])

    def _add_need_rows(self, k: int, saved: Sequence[Columns], reruns: Sequence[Columns]) -> None:
        """Add rows (2), (3) and (4) of a cut."""
        is_last = k + 1 == len(self.cuts)
        self._add_read_rows(k, len(self.problem) if is_last else self.cuts[k + 1], saved[k], reruns[k])
        for v, column in () if is_last else saved[k + 1].items():
            if self.maker[v] <= self.cuts[k]:
                saved_term = [(saved[k][v], 1.0)] if v in saved[k] else []
                self.rows.add_row(0.0, [(column, -1.0), *saved_term, *self._run_term(reruns[k], v)])

    def _add_read_rows(self, k: int, end: int, saved: Columns, reruns: Columns) -> None:
        """Add rows (2) and (3): storages read after a cut, up to operation `end`, and operands of recomputed operations
        are live at the cut or recomputed."""
        cut = self.cuts[k]
        readers = range(self.cuts[k] + 1, min(end + 1, len(self.problem)))
        needed = {v for op in readers for v in self.reads[op] if self.maker[v] <= cut}
        if end == len(self.problem):
            needed |= {v for v in np.flatnonzero(self.problem.is_output).tolist() if self.maker[v] <= cut}
        for v in sorted(needed):
            if self.counted[v]:
                self.rows.add_row(1.0, [(saved[v], 1.0), *self._run_term(reruns, v)])
        for op, column in reruns.items():
            for v in self.reads[op]:
                if self.counted[v]:
                    self.rows.add_row(0.0, [(column, -1.0), (saved[v], 1.0), *self._run_term(reruns, v)])

    def _add_later_rerun_columns(self, saved: Sequence[Columns], reruns: Sequence[Columns]) -> tuple[Columns, ...]:
        """Add the columns of Y and the rows (6). Returns the columns of Y."""
        later_reruns = [reruns[-1]]
        for k in reversed(range(len(self.cuts) - 1)):
            later, columns = later_reruns[0], dict[int, int]()
            for op, column in reruns[k].items():
                columns[op] = self.columns.add_column()
                later_runs = [(later[op], 1.0)] if op in later else []
                self.rows.add_row(0.0, [(columns[op], -1.0), (column, 1.0), *later_runs])
                for run, _ in [(column, 1.0), *later_runs]:
                    self.rows.add_row(0.0, [(columns[op], 1.0), (run, -1.0)])
            self._add_read_rows(k, len(self.problem), saved[k], columns)
            later_reruns.insert(0, columns)
        return tuple(later_reruns)

    def _add_working_set_rows(self, k: int, reruns: Columns, held: Columns) -> None:
        """Add the budget rows of constraint (5), omitting rows that always hold."""
        problem = self.problem
        held_bytes = sum(self.sizes[v] for v in held)
        for op, column in reruns.items():
            working_bytes = float(problem.working_bytes[op]) / self.budget
            if working_bytes + held_bytes <= 1.0:
                continue
            working_set = {*self.reads[op], *problem.results_of(op)}
            terms = [(held_column, -self.sizes[v]) for v, held_column in held.items() if v not in working_set]
            self.rows.add_row(-1.0, [(column, -working_bytes), *terms])


def _point(stages: StageProgram, problem: Problem, pairs: Collection[Pair]) -> Doubles:
    """Return the value of each column for these copies. The columns of Y and H are computed last, because they follow
    from the other columns."""
    point = stages.program.low.copy()
    copy_stages = dict[int, list[int]]()
    for t, op in sorted(pairs):
        copy_stages.setdefault(op, []).append(t)
    ends = (*stages.cuts[1:], len(problem))
    for k, cut in enumerate(stages.cuts):
        for op, column in stages.reruns[k].items():
            point[column] = float(any(cut < t <= ends[k] for t in copy_stages.get(op, ())))
        for v, column in stages.saved[k].items():
            if _is_alive_at(problem, copy_stages, v, cut):
                point[column] = 1.0
    for k in reversed(range(len(stages.cuts) - 1)):
        for op, column in stages.later_reruns[k].items():
            later = stages.later_reruns[k + 1].get(op)
            point[column] = max(point[stages.reruns[k][op]], 0.0 if later is None else point[later])
    for k in range(len(stages.cuts)):
        for v, column in stages.held[k].items():
            op = int(problem.makers[v])
            later = 1.0 if k + 1 == len(stages.cuts) else point[stages.saved[k + 1][v]]
            point[column] = max(0.0, later - (point[stages.reruns[k][op]] if op in stages.reruns[k] else 0.0))
    return point


def _is_alive_at(problem: Problem, copy_stages: dict[int, list[int]], v: int, cut: int) -> bool:
    """Return whether storage v is live when the operation `cut` runs for the first time. An instance of v must exist at
    this point, and this execution or a later one must read it, or it must be kept to the end.

    `copy_stages`: for each copied operation, the stages of its copies in ascending order.
    """
    next_copy = next((t for t in copy_stages.get(int(problem.makers[v]), ()) if t > cut), None)
    if next_copy is None and problem.is_output[v]:
        return True
    limit = len(problem) + 1 if next_copy is None else next_copy
    # Copies in the stage of the cut run before it.
    return any(
        cut <= user < limit or any(cut < t < limit for t in copy_stages.get(user, ())) for user in problem.uses_of(v)
    )
