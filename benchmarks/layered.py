"""Random layered graphs as in Bartan et al. (Moccasin, ICML 2023), without forward and backward pass and without
blocks.

The number of layers is about the square root of the number of operations. Each operation reads one to four earlier
results, mostly of the layer before and sometimes of an earlier one, so few results are live for long. Sizes and costs
are uniform. Operations may run again anywhere. The graphs are drawn here, not taken from the paper's files.
"""

from __future__ import annotations

import random
from math import isqrt

from recompute.planning.solvers.problem import OperationRow, Problem, problem_of


def layered(operations: int, seed: int = 1) -> Problem:
    draw, width = random.Random(seed), isqrt(operations)
    rows, used = list[OperationRow](), set[int]()
    for op in range(operations):
        start = op // width * width
        reads = {_source(draw, start, width) for _ in range(draw.randint(1, 4))} if start else set[int]()
        used |= reads
        rows.append(OperationRow(f"f{op}", draw.randint(1, 100), sorted(reads), [draw.randint(1, 100)]))
    return problem_of(rows, [op for op in range(operations) if op not in used], earliest=0)


def _source(draw: random.Random, start: int, width: int) -> int:
    back = 1
    while draw.random() < 0.25 and start - (back + 1) * width >= 0:
        back += 1
    return start - back * width + draw.randrange(width)
