"""No budget reaches less than the lowest peak, on graphs of different structures, and no schedule of a small graph
needs less."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.lowest_peak import LowPeak, greedy_lowest_peak_plan, lowest_peak_plan
from recompute.planning.solvers.problem import OperationRow, Problem, problem_of
from recompute.planning.solvers.result import Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.working_set import largest_working_set
from recompute.test.unit.planning.solvers.exhaustive import optimum, random_problem

BUDGET_SHARES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9)


def training_step(reads: Sequence[Sequence[int]], sizes: Sequence[int], saved: Sequence[int] = ()) -> Problem:
    """Return a step whose backward pass visits the forward operations in reverse order, each with its operands.

    Args:
        reads: For each forward operation, the forward operations whose results it reads.
        sizes: The bytes of each result; the gradients have the same sizes.
        saved: The forward operations that must not run twice.
    """
    count = len(reads)
    rows = [
        OperationRow(f"f{op}", 10 + op % 3, operands, [size], may_run_again=op not in saved)
        for op, (operands, size) in enumerate(zip(reads, sizes, strict=True))
    ]
    for number, op in enumerate(reversed(range(count))):
        gradient = [count + number - 1] if number else []
        rows.append(OperationRow(f"g{op}", 20, [op, *reads[op], *gradient], [sizes[op]], is_backward=True))
    return problem_of(rows, [2 * count - 1])


def chain(count: int) -> list[list[int]]:
    return [[op - 1] if op else [] for op in range(count)]


def tree(leaves: int) -> list[list[int]]:
    """Return a binary tree: the leaves first, then each pair of neighbours."""
    reads: list[list[int]] = [[] for _ in range(leaves)]
    level = list(range(leaves))
    while len(level) > 1:
        parents = list[int]()
        for left, right in zip(level[::2], level[1::2], strict=True):
            parents.append(len(reads))
            reads.append([left, right])
        level = parents
    return reads


STRUCTURES: dict[str, Callable[[], Problem]] = {
    "chain": lambda: training_step(chain(8), [1000] * 8),
    "long chain": lambda: training_step(chain(16), [1000] * 16),
    "skips": lambda: training_step([[*reads, *([op - 4] if op >= 4 else [])] for op, reads in enumerate(chain(14))],
                                   [640] * 14),
    "tree": lambda: training_step(tree(8), [512] * 15),
    "wide": lambda: training_step([[], *([0] for _ in range(8)), list(range(1, 9))], [256] * 10),
    "alternating widths": lambda: training_step(chain(12), [4096 if op % 3 else 128 for op in range(12)]),
    "growing": lambda: training_step(chain(10), [64 << op // 2 for op in range(10)]),
    "saved": lambda: training_step(chain(12), [1000] * 12, saved=(3, 7)),
    "unrolled loop": lambda: training_step([[] if op < 2 else [op - 2, op - 1 - op % 2] for op in range(16)],
                                           [300, 700] * 8),
}  # fmt: skip


@pytest.fixture(autouse=True)
def plain_kernels() -> None:
    """Replace the fixture of this folder: as plain Python, these searches would take two minutes."""


@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_budget_reaches_less(structure: str) -> None:
    problem = STRUCTURES[structure]()
    plain_bytes = LowPeak.of(problem, frozenset()).peak_bytes
    least = lowest_peak_plan(problem)
    assert evaluate(problem, sequence_of(problem, least.pairs)).peak_bytes == least.peak_bytes <= plain_bytes
    outcomes = [solve(problem, int(share * plain_bytes), effort=Effort.brief()) for share in BUDGET_SHARES]
    peaks = [outcome.peak_bytes for outcome in outcomes if isinstance(outcome, Result)]
    assert least.peak_bytes <= min(peaks, default=plain_bytes)


def test_greedy_search_stops_above_the_minimum_of_a_chain() -> None:
    """The greedy search finds 6,000 bytes for a chain of eight operations, and the bound of 4,000 bytes is reached."""
    problem = STRUCTURES["chain"]()
    assert greedy_lowest_peak_plan(problem).peak_bytes == 6000
    assert lowest_peak_plan(problem).peak_bytes == 4000 == largest_working_set(problem).bytes


def test_no_schedule_needs_less_on_small_problems() -> None:
    for seed in range(12):
        problem = random_problem(seed, most=8)
        least = lowest_peak_plan(problem)
        assert optimum(problem, least.peak_bytes - 1, problem.earliest_stage) is None, seed


def test_stopped_search_returns_a_plan() -> None:
    problem = STRUCTURES["long chain"]()
    assert lowest_peak_plan(problem, lambda: True) == LowPeak.of(problem, frozenset())


def test_every_method_polls_the_stop_predicate(monkeypatch: pytest.MonkeyPatch) -> None:
    """No method begins a further search once the predicate is true, the portfolio included."""
    interrupts = list[Callable[[], bool]]()
    monkeypatch.setattr(
        "recompute.planning.solvers.lowest_peak.solve",
        lambda problem, limit, best, **_: interrupts.append(best.interrupt),  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]
    )
    stop = lambda: False  # noqa: E731
    lowest_peak_plan(STRUCTURES["skips"](), stop)
    assert interrupts and all(interrupt is stop for interrupt in interrupts)
