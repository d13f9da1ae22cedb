"""The proven lower bound on the temporaries of a step, with the operation and the values that determine it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...analysis.step.descriptions import describe_operation
from ...analysis.step.step import Step
from ...planning.solvers.problem import Problem
from ...planning.solvers.solve_graph import problem_of_graph
from ...planning.solvers.two_point_bound import TwoPointBound, two_point_bound
from ...planning.solvers.working_set import largest_working_set
from ...support.units import format_bytes

MAX_LISTED = 10
"""The maximum number of values that a lower bound lists."""


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound on the temporaries of any plan, with the operation and values that determine it.

    Attributes:
        bytes: The lower bound.
        operation: The operation at the bound, with its source line.
        values: At most ten of the values that are live there, with their bytes, in order of decreasing size.
        unlisted_count: The number of live values that are not listed.
        spanning_value: A description of a value that a later operation reads, so that the value must be live at
            `operation` or be recomputed afterwards; empty if the operation itself needs all of `values`.
    """

    bytes: int
    operation: str
    values: tuple[tuple[str, int], ...]
    unlisted_count: int
    spanning_value: str = ""

    def lines(self) -> Iterator[str]:
        """Yield a line for the operation, then a line for each value."""
        yield f"while {self.operation} executes"
        if self.spanning_value:
            yield self.spanning_value
        for value, size in self.values:
            yield f"{format_bytes(size):>10}  {value}"
        if self.unlisted_count:
            yield f"and {self.unlisted_count} more"


def lower_bound(step: Step) -> LowerBound:
    """Return the larger of two lower bounds on the temporaries.

    The first bound is the largest working set of an operation (`planning/solvers/working_set.py`). The second bound
    follows from two operations and a value that the second operation reads (`planning/solvers/two_point_bound.py`).
    """
    problem = problem_of_graph(step.graph)
    least = largest_working_set(problem)
    over = two_point_bound(problem)
    if over.bytes > least.bytes:
        return _between_two(step, problem, over)
    at = "the end of the step" if least.operation is None else _operation_text(step, least.operation)
    values = tuple((_value(step, problem, v), int(problem.storage_bytes[v])) for v in least.values[:MAX_LISTED])
    return LowerBound(least.bytes, at, values, len(least.values) - len(values))


def _between_two(step: Step, problem: Problem, over: TwoPointBound) -> LowerBound:
    """Describe a bound that follows from two operations and a value. The second operation reads the value."""
    maker, reader = _operation_text(step, int(problem.makers[over.value])), _operation_text(step, over.reader)
    since = f"with {maker}, which {reader} reads later: kept or recomputed in between, whichever needs less memory"
    accessed = {*problem.operands_of(over.before), *problem.results_of(over.before)}
    values = sorted(accessed, key=lambda v: -problem.storage_bytes[v])
    listed = tuple((_value(step, problem, v), int(problem.storage_bytes[v])) for v in values[:MAX_LISTED])
    return LowerBound(over.bytes, _operation_text(step, over.before), listed, max(0, len(values) - MAX_LISTED), since)


def _value(step: Step, problem: Problem, value: int) -> str:
    """Return the name of a value, with its result index if its operation has several results."""
    op = int(problem.makers[value])
    made = problem.results_of(op)
    return f"{_operation_text(step, op)} #{value - made.start}" if len(made) > 1 else _operation_text(step, op)


def _operation_text(step: Step, op: int) -> str:
    """Return a description of the operation with index `op`: `stablehlo.tanh %h (train.py:41:9)`."""
    return describe_operation(step.operation(op))
