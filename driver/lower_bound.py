"""The proven lower bound on the temporaries of a step, with the values that determine it and their source lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..analysis.memory.timeline import described
from ..analysis.step.step import Step
from ..planning.solvers.problem import Problem
from ..planning.solvers.solve_graph import problem_of_graph
from ..planning.solvers.working_set import largest_working_set
from ..planning.two_point_bound import TwoPointBound, two_point_bound
from ..support.units import format_bytes

MOST = 10


@dataclass(frozen=True)
class LowerBound:
    """`bytes` of temporaries that every plan needs while `operation` runs.

    Attributes:
        bytes: The lower bound.
        operation: The operation at the bound, with its source line.
        values: The values alive there with their bytes, the largest first, at most ten.
        more: The number of further values.
        since: A value that a later operation reads, and that is either alive here or recomputed right behind this
            operation; empty if the operation itself needs all of `values`.
    """

    bytes: int
    operation: str
    values: tuple[tuple[str, int], ...]
    more: int
    since: str = ""

    def lines(self) -> Iterator[str]:
        """A line for the operation, then a line for each value."""
        yield f"{self.operation}, which runs then"
        if self.since:
            yield self.since
        for value, size in self.values:
            yield f"{format_bytes(size):>10}  {value}"
        if self.more:
            yield f"and {self.more} more"


def lower_bound(step: Step) -> LowerBound:
    """The operation with the largest working set (`planning/solvers/working_set.py`)."""
    problem = problem_of_graph(step.graph)
    least, over = largest_working_set(problem), two_point_bound(problem)
    if over.bytes > least.bytes:
        return _between_two(step, problem, over)
    at = "the end of the step" if least.operation is None else named(step, least.operation)
    values = tuple((_value(step, problem, v), int(problem.sizes[v])) for v in least.values[:MOST])
    return LowerBound(least.bytes, at, values, len(least.values) - len(values))


def _between_two(step: Step, problem: Problem, over: TwoPointBound) -> LowerBound:
    """The bound of two operations and a value that is read by the second."""
    maker, reader = named(step, int(problem.maker[over.value])), named(step, over.reader)
    since = f"with {maker}, which {reader} reads later: held, or made again in between, whichever needs less"
    values = sorted({*problem.reads_of(over.before), *problem.makes_of(over.before)}, key=lambda v: -problem.sizes[v])
    listed = tuple((_value(step, problem, v), int(problem.sizes[v])) for v in values[:MOST])
    return LowerBound(over.bytes, named(step, over.before), listed, max(0, len(values) - MOST), since)


def _value(step: Step, problem: Problem, value: int) -> str:
    """The name of the value, numbered if its operation makes several."""
    op = int(problem.maker[value])
    made = problem.makes_of(op)
    return f"{named(step, op)} #{value - made.start}" if len(made) > 1 else named(step, op)


def named(step: Step, op: int) -> str:
    """The operation and its result: `stablehlo.tanh %h (train.py:41:9)`, as far as the program says."""
    return described(step.operation(op))
