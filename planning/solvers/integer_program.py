"""Solve linear and integer programs with HiGHS. Only this module imports HiGHS.

HiGHS is optional (`pip install 'xdsl-recompute[plan]'`) and deterministic. The work is limited by a number of branching
nodes, and by time only if a time limit is given.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
DUAL_TOLERANCE = 1e-9
"""Tolerance of HiGHS for the sign of reduced costs. A bound may be too high by this tolerance times the number of
columns."""


def is_installed() -> bool:
    """Return whether HiGHS is installed."""
    return find_spec("highspy") is not None


@dataclass
class CoverRows:
    """The rows of a program in compressed form. Each row requires that the weighted sum of its columns is at least its
    entry in `low`."""

    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list[int])
    weights: list[float] = field(default_factory=list[float])
    low: list[float] = field(default_factory=list[float])

    def add_row(self, bound: float, terms: list[tuple[int, float]]) -> None:
        """Add a row. `bound`: the lower bound of the weighted sum. `terms`: the columns of the row with their
        weights."""
        self.columns += [column for column, _ in terms]
        self.weights += [weight for _, weight in terms]
        self.low.append(bound)
        self.starts.append(len(self.columns))

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class CoverProgram:
    """An integer program: minimize the sum of `costs` times columns, with each column between `low` and 1, subject to
    the rows.

    `following`: columns that may be continuous, because they can be made integral if all other columns are integral.
    """

    costs: Doubles
    low: Doubles
    rows: CoverRows
    following: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProgramSolution:
    """The answer of HiGHS.

    Attributes:
        infeasible: Whether it is proved that no solution exists.
        optimal: Whether `values` is optimal within the tolerance.
        bound: A lower bound on the cost of every solution.
        objective: The cost of `values`.
        values: The value of each column in the best solution; None if no solution was found.
    """

    infeasible: bool
    optimal: bool
    bound: float
    objective: float
    values: Doubles | None


@dataclass(frozen=True)
class ProgramLimits:
    """Limits for solving a program.

    Attributes:
        seconds: The time limit; None for no limit.
        nodes: The limit of branching nodes; None for no limit.
        gap: The absolute gap between cost and bound at which the solver stops.
        stop: A predicate that ends the search with the best solution so far.
    """

    seconds: float | None = None
    nodes: int | None = None
    gap: float = 1e-4
    stop: Callable[[], bool] | None = None


UNLIMITED = ProgramLimits()


def solve(
    program: CoverProgram, integral: bool = True, start: Doubles | None = None, limits: ProgramLimits = UNLIMITED
) -> ProgramSolution:
    """Solve a linear or an integer program.

    Args:
        program: The program.
        integral: Whether the columns must be integral, except those in `CoverProgram.following`.
        start: A feasible solution to start from, as a value for each column.
        limits: The limits for solving the program.
    """
    import highspy  # pyright: ignore[reportMissingImports]

    with _silence_output():
        solver: Any = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 1,
        "dual_feasibility_tolerance": DUAL_TOLERANCE,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": limits.gap,
        "mip_max_nodes": 2**31 - 1 if limits.nodes is None else limits.nodes,
        "time_limit": float("inf") if limits.seconds is None else max(0.01, limits.seconds),
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highspy, program, integral))
    if start is not None and integral:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    if limits.stop is not None:
        _listen(solver, limits.stop)
    solver.run()
    return _answer(highspy, solver, integral, len(program.costs))


def _model(highspy: Any, program: CoverProgram, integral: bool) -> Any:
    count, rows = len(program.costs), program.rows
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = count, len(rows)
    model.col_cost_, model.col_lower_ = program.costs, program.low
    model.col_upper_ = np.ones(count)
    model.row_lower_ = np.array(rows.low, np.float64)
    model.row_upper_ = np.full(len(rows), highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array(rows.starts, np.int32)
    model.a_matrix_.index_ = np.array(rows.columns, np.int32)
    model.a_matrix_.value_ = np.array(rows.weights, np.float64)
    if integral:
        kinds = [highspy.HighsVarType.kInteger] * count
        for column in program.following:
            kinds[column] = highspy.HighsVarType.kContinuous
        model.integrality_ = kinds
    return model


@contextmanager
def _silence_output() -> Generator[None]:
    """Discard the process's standard output, to which HiGHS 1.16 prints a banner. The banner would be mixed with the
    programs that the tools print."""
    if os.name != "posix":
        yield
        return
    sys.stdout.flush()
    original_output = os.dup(1)
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, 1)
        yield
    finally:
        # Flush the buffers of C before the standard output is restored.
        ctypes.CDLL(None).fflush(None)
        os.dup2(original_output, 1)
        os.close(original_output)
        os.close(devnull)


def _listen(solver: Any, stop: Callable[[], bool]) -> None:
    def interrupt(event: Any) -> None:
        if stop():
            event.data_in.user_interrupt = True

    solver.cbMipInterrupt.subscribe(interrupt)
    solver.cbSimplexInterrupt.subscribe(interrupt)


def _answer(highspy: Any, solver: Any, integral: bool, columns: int) -> ProgramSolution:
    status, info = solver.getModelStatus(), solver.getInfo()
    if status == highspy.HighsModelStatus.kInfeasible:
        return ProgramSolution(True, False, float("inf"), float("inf"), None)
    optimal = status == highspy.HighsModelStatus.kOptimal
    is_feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    objective = float(info.objective_function_value) if is_feasible else float("inf")
    bound = float(info.mip_dual_bound) if integral else objective if optimal else 0.0
    if not np.isfinite(bound):
        bound = 0.0
    values = np.array(solver.getSolution().col_value, np.float64) if is_feasible else None
    # Lower the bound by the tolerance for reduced costs, so that it is valid.
    return ProgramSolution(False, optimal, max(0.0, bound - columns * DUAL_TOLERANCE), objective, values)
