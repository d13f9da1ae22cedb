"""Re-optimize the copies in a window of stages with a CP-SAT model of retention intervals. The rest of the plan is
fixed.

Each execution in the window keeps each of its results for an interval of positions. The intervals of all results share
the budget. Each read lies inside an interval of its operand. A storage that the rest of the step reads has an interval
up to the end of the window. Storages that exist before the window may be kept up to it if the stages in between have
enough free bytes. Nothing changes after the end of the window. The model never counts too few bytes. It may count too
many bytes for a use that reads an instance other than the latest one, so the flat order of the result is evaluated as
well. This is the model of Moccasin (Bartan et al., ICML 2023), restricted to windows as in large-neighbourhood search.
The present copies are a complete hint.

OR-tools is optional (`pip install 'xdsl-recompute[plan]'`). Results are reproducible, because CP-SAT runs with one
worker, a fixed seed and a limit in deterministic time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .problem import Pair, Problem
from .sequence import evaluate, sequence_of
from .window import StageWindow, window_of


def is_installed() -> bool:
    """Return whether OR-tools is installed."""
    return find_spec("ortools") is not None


def _cp_model() -> Any:
    return import_module("ortools.sat.python.cp_model")


def cheaper_copies(
    problem: Problem, budget: int, pairs: Collection[Pair], window: StageWindow, work: float
) -> frozenset[Pair] | None:
    """Return the copies of a plan after CP-SAT has re-optimized the copies in a window.

    Args:
        problem: The problem.
        budget: The budget in bytes.
        pairs: All copies of the present plan.
        window: The window of this plan.
        work: The time limit, in deterministic seconds of CP-SAT.

    Returns:
        All copies of the new plan; None if CP-SAT finds no cheaper plan.
    """
    cp_model = _cp_model()
    inside = [(t, op) for t, op in pairs if window.first <= t < window.last]
    model = _Model(cp_model, problem, budget, window, inside)
    solver: Any = cp_model.CpSolver()
    for name, value in {"num_workers": 1, "random_seed": 1, "max_deterministic_time": work}.items():
        setattr(solver.parameters, name, value)
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    copies = model.copies_in(solver)
    if problem.cost_of(copies) >= problem.cost_of(inside):
        return None
    return frozenset(pairs) - frozenset(inside) | copies


def reoptimize(
    problem: Problem, budget: int, pairs: frozenset[Pair], first: int, last: int, work: float
) -> frozenset[Pair]:
    """Return all copies of a plan after the copies in the stages from `first` to `last` (exclusive) are re-optimized.
    If the result is not cheaper, or exceeds the budget, return the original copies. See `cheaper_copies` for the
    arguments."""
    candidate = cheaper_copies(problem, budget, pairs, window_of(problem, pairs, first, last), work)
    if candidate is None or evaluate(problem, sequence_of(problem, candidate)).peak_bytes > budget:
        return pairs
    return candidate


@dataclass(frozen=True)
class _Execution:
    """An execution of an operation in the model.

    Attributes:
        op: The operation.
        start: Its position: an integer or a variable.
        active: The Boolean variable that is true if it runs; None if it always runs.
        ends: For each result, the variable for the position up to which it is kept.
        hint: Its position in the present plan; None if it does not run there.
    """

    op: int
    start: Any
    active: Any
    ends: dict[int, Any]
    hint: int | None


class _Model:
    """The CP-SAT model of one window: executions, reads, bytes and hints."""

    def __init__(self, cp: Any, problem: Problem, budget: int, window: StageWindow, inside: Collection[Pair]):
        self.cp, self.problem, self.window, self.budget = cp, problem, window, budget
        self.model: Any = cp.CpModel()
        self.stages = list(range(window.first, min(window.last, len(problem))))
        self.hints, self.hinted_ends = list[tuple[Any, int]](), dict[tuple[int, int], int]()
        self.lengths = list[tuple[Any, _Execution, Any]]()
        self.runs: list[_Execution] = [*self._first_executions(), *self._candidate_copies(inside)]
        self.makers = dict[int, list[_Execution]]()
        for run in [*self._live_in_executions(), *self.runs]:
            for v in run.ends:
                self.makers.setdefault(v, []).append(run)
        self._add_reads()
        self._add_bytes()
        self._add_hints()
        copies = [run for run in self.runs if run.active is not None]
        self.model.minimize(sum(int(problem.costs[run.op]) * run.active for run in copies))

    def copies_in(self, solver: Any) -> frozenset[Pair]:
        """Return the copies in the window according to a solution."""
        width = len(self.window.candidates) + 1
        copies = [run for run in self.runs if run.active is not None and solver.value(run.active)]
        return frozenset([(self.window.first + solver.value(run.start) // width, run.op) for run in copies])

    def _new_end(self, low: int, high: int | None = None) -> Any:
        return self.model.new_int_var(low, self.window.end if high is None else high, "")

    def _live_in_executions(self) -> Iterator[_Execution]:
        """Yield an execution for each storage that may be live when the window begins. In a solution, the storage
        either stays live up to a position in the window, or is dropped before the window, which frees its bytes."""
        kept_flags = dict[int, Any]()
        for v in sorted(self.window.may_enter):
            end, kept_flags[v] = self._new_end(-1), self.model.new_bool_var("")
            self.model.add(end == -1).only_enforce_if(kept_flags[v].negated())
            self.hints.append((kept_flags[v], int(v in self.window.live_in)))
            yield _Execution(int(self.problem.makers[v]), -1, None, {v: end}, -1)
        for room in self.window.rooms:
            weights = sum(int(self.problem.storage_bytes[v]) * kept_flags[v] for v in room.kept)
            self.model.add(weights <= self.budget - room.bytes)

    def _first_executions(self) -> Iterator[_Execution]:
        for t in self.stages:
            at = self.window.position(t, t)
            yield _Execution(t, at, None, {v: self._new_end(at) for v in self.problem.results_of(t)}, at)

    def _candidate_copies(self, inside: Collection[Pair]) -> Iterator[_Execution]:
        """Yield an execution for each present copy of each candidate, and for one more copy of each candidate."""
        for op in self.window.candidates:
            present = sorted(self.window.position(t, c) for t, c in inside if c == op)
            positions = [self.window.position(t, op) for t in range(self.window.first, self.window.last) if t > op]
            previous: _Execution | None = None
            for hint in [*present, None][: len(positions)]:
                active = self.model.new_bool_var("")
                domain = self.cp.Domain.from_values(positions)
                start = self.model.new_int_var_from_domain(domain, "")
                run = _Execution(op, start, active, {v: self._new_end(0) for v in self.problem.results_of(op)}, hint)
                self.hints += [(active, int(hint is not None)), (start, positions[0] if hint is None else hint)]
                for end in run.ends.values():
                    self.model.add(end >= start).only_enforce_if(active)
                if previous is not None:
                    self.model.add_implication(active, previous.active)
                    self.model.add(previous.start < start).only_enforce_if(active)
                previous = run
                yield run

    def _add_reads(self) -> None:
        for run in self.runs:
            for v in self.problem.operands_of(run.op):
                self._require_live(v, run.start, run.active, run.hint)
        for v in sorted(self.window.live_out):
            self._require_live(v, self.window.end, None, self.window.end)

    def _require_live(self, v: int, at: Any, active: Any, hint: int | None) -> None:
        """Require that an instance of the storage is live at position `at` if `active` is true.

        `hint`: the position of the read in the present plan.
        """
        options, lasting = self.makers.get(v, []), list[Any]()
        latest = [
            option.hint for option in options if option.hint is not None and hint is not None and option.hint < hint
        ]
        for option in options:
            if isinstance(option.start, int) and isinstance(at, int) and option.start >= at:
                continue
            chosen = self.model.new_bool_var("")
            if not (isinstance(option.start, int) and isinstance(at, int)):
                self.model.add(option.start < at).only_enforce_if(chosen)
            self.model.add(option.ends[v] >= at).only_enforce_if(chosen)
            if option.active is not None:
                self.model.add_implication(chosen, option.active)
            is_read = bool(latest) and option.hint == max(latest)
            self.hints.append((chosen, int(is_read)))
            if is_read and hint is not None:
                key = (v, max(latest))
                self.hinted_ends[key] = max(hint, self.hinted_ends.get(key, -1))
            lasting.append(chosen)
        self.model.add_bool_or(lasting if active is None else [*lasting, active.negated()])

    def _add_bytes(self) -> None:
        intervals, sizes = list[Any](), list[int]()
        for v, runs in self.makers.items():
            for run in runs:
                intervals.append(self._live_interval(run, run.ends[v]))
                sizes.append(int(self.problem.storage_bytes[v]))
        for run in self.runs:
            if inner := int(self.problem.inner_bytes[run.op]):
                intervals.append(self._live_interval(run, run.start))
                sizes.append(inner)
        self.model.add_cumulative(intervals, sizes, self.budget)

    def _live_interval(self, run: _Execution, last: Any) -> Any:
        length = self.model.new_int_var(0, self.window.end + 2, "")
        self.lengths.append((length, run, last))
        # A storage that is dropped before the window has an interval of length 0. This costs nothing.
        start = max(0, run.start) if isinstance(run.start, int) else run.start
        if run.active is None:
            return self.model.new_interval_var(start, length, last + 1, "")
        return self.model.new_optional_interval_var(start, length, last + 1, run.active, "")

    def _add_hints(self) -> None:
        """Give each variable a hint: its value in the present plan, in which each use reads the latest instance."""
        for variable, value in self.hints:
            self.model.add_hint(variable, value)
        for v, runs in self.makers.items():
            for run in runs:
                self.model.add_hint(run.ends[v], self._hinted_end(run, v))
        for length, run, last in self.lengths:
            v = next((v for v, end in run.ends.items() if end is last), None)
            end = run.hint if v is None else self._hinted_end(run, v)
            self.model.add_hint(length, 0 if run.hint is None or end is None else end + 1 - max(0, run.hint))

    def _hinted_end(self, run: _Execution, v: int) -> int:
        return 0 if run.hint is None else self.hinted_ends.get((v, run.hint), run.hint)
