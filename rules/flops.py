"""FLOPs of an operation, counted as in XLA's cost analysis: a multiply-add is two FLOPs.

XLA and the function `work` count calls to functions such as `exp` separately from FLOPs. The function `flops` counts
each of these calls as one FLOP. `test/unit/rules/test_against_xla.py` compares both counts with XLA's counts, operation
by operation. `xla_cases.py` in the same folder lists the differences and their reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, Region

from .facts import Facts
from .flop_counts import per_element
from .registry import facts_of

_ONE_EACH = per_element(1)


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one execution of an operation.

    Attributes:
        flops: Number of additions, multiplications, comparisons and similar operations.
        transcendentals: Number of random draws and of calls to functions such as `exp`, `tanh` and `sqrt`. Each of
            these may take several machine instructions.
    """

    flops: int = 0
    transcendentals: int = 0

    @property
    def together(self) -> int:
        """The number of FLOPs, with one FLOP for each transcendental."""
        return self.flops + self.transcendentals

    def plus(self, other: Work, times: int = 1) -> Work:
        return Work(self.flops + times * other.flops, self.transcendentals + times * other.transcendentals)

    def at_least(self, other: Work) -> Work:
        return Work(max(self.flops, other.flops), max(self.transcendentals, other.transcendentals))


def flops(op: Operation) -> int:
    """Return the FLOPs of one execution of an operation. A transcendental counts as one FLOP."""
    facts = facts_of(op)
    if facts is None or facts.body_runs is not None:
        return work(op).together
    own = (facts.flops or _ONE_EACH)(op)
    return own if facts.transcendentals is None else own + facts.transcendentals(op)


def work(op: Operation) -> Work:
    """Return the work of one execution of an operation.

    The work of a region is multiplied by the number of its runs; a loop with an unknown trip count is assumed to run
    once. For alternative regions, the maximum of each count is used. An operation without facts has one FLOP for each
    result element.
    """
    facts = facts_of(op)
    if facts is None:
        return Work(_ONE_EACH(op))
    own = Work((facts.flops or _ONE_EACH)(op), 0 if facts.transcendentals is None else facts.transcendentals(op))
    return own if facts.body_runs is None else _with_regions(op, facts, own)


def region_runs(op: Operation, facts: Facts) -> list[int]:
    """Return the number of times that each region runs."""
    counts = facts.body_runs
    if counts is None:
        return [0] * len(op.regions)
    if callable(counts):
        return [counts(op)] * len(op.regions)
    return [counts[min(at, len(counts) - 1)](op) for at in range(len(op.regions))]


def _with_regions(op: Operation, facts: Facts, total: Work) -> Work:
    bodies = [_work_in(region) for region in op.regions]
    if facts.alternatives:
        most = Work()
        for body in bodies:
            most = most.at_least(body)
        bodies = [most]
    for body, runs in zip(bodies, region_runs(op, facts), strict=False):
        total = total.plus(body, runs)
    return total


def _work_in(region: Region) -> Work:
    total = Work()
    for block in region.blocks:
        for inner in block.ops:
            total = total.plus(work(inner))
    return total
