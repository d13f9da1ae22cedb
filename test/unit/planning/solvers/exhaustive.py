"""Small random problems and their optima by exhaustive search: Dijkstra's algorithm over the sets of values in memory.

Copies may run in any order, and first executions in the given one, so no plan is cheaper and no bound is higher.
Optionally, copies run only after a given number of first executions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from heapq import heappop, heappush

from recompute.planning.solvers.problem import OperationRow, Problem, problem_of


def random_problem(seed: int, most: int = 9) -> Problem:
    """Return a problem with multi-result operations, multiple outputs, and some operations that must not run twice."""
    draw = random.Random(seed)
    rows, entry = list[OperationRow](), 0
    count = draw.randint(4, most)
    half = count // 2
    for at in range(count):
        near = range(max(0, entry - 4), entry) if draw.random() < 0.7 else range(entry)
        reads = draw.sample(list(near), min(len(near), draw.choice((1, 1, 2, 3)))) if entry else []
        makes = [draw.randint(1, 9) for _ in range(draw.choice((1, 1, 1, 2)))]
        again = draw.random() < 0.93
        rows.append(
            OperationRow(f"f{at}", draw.randint(1, 12), reads, makes, draw.choice((0, 0, 0, 2)), again, at >= half)
        )
        entry += len(makes)
    used = {value for row in rows for value in row.operands}
    outputs = [
        v for v in range(entry) if v == entry - 1 or (v not in used and draw.random() < 0.4) or draw.random() < 0.05
    ]
    return problem_of(rows, outputs, earliest_stage=draw.choice((0, half)))


def optimum(problem: Problem, budget: int, earliest: int = 0) -> int | None:
    """Return the least extra cost of any schedule within the budget, or None where there is none.

    Copies run only after the first `earliest` executions.
    """
    n, sizes = len(problem), problem.storage_bytes.tolist()
    reads = [_mask(problem.operands_of(op)) for op in range(n)]
    makes = [_mask(problem.results_of(op)) for op in range(n)]
    outputs = _mask([v for v in range(len(sizes)) if problem.is_output[v]])
    queue: list[tuple[int, int, int]] = [(0, 0, 0)]
    best: dict[tuple[int, int], int] = {(0, 0): 0}
    weigh = dict[int, int]()

    def weight(mask: int) -> int:
        if mask not in weigh:
            weigh[mask] = sum(size for v, size in enumerate(sizes) if mask >> v & 1)
        return weigh[mask]

    def reach(cost: int, result: int, memory: int) -> None:
        if best.get((result, memory), 1 << 60) > cost:
            best[result, memory] = cost
            heappush(queue, (cost, result, memory))

    while queue:
        cost, result, memory = heappop(queue)
        if best[result, memory] < cost:
            continue
        if result == n and memory & outputs == outputs:
            return cost
        for op in range(min(result + 1, n)):
            first = op == result
            if reads[op] & ~memory or not (first or (problem.may_run_again[op] and result >= earliest)):
                continue
            if weight(memory | makes[op]) + int(problem.inner_bytes[op]) <= budget:
                reach(cost + (0 if first else int(problem.costs[op])), result + first, memory | makes[op])
        rest = memory
        while rest:
            bit = rest & -rest
            rest ^= bit
            reach(cost, result, memory ^ bit)
    return None


def _mask(values: Iterable[int]) -> int:
    result = 0
    for value in values:
        result |= 1 << value
    return result
