"""Floating point operations per operation, counted as XLA's cost analysis does: a multiply-add is two.

XLA counts calls of functions such as `exp` apart from FLOPs; `work` does too. Where one number is asked for, `flops`,
such a call counts as one. `test/unit/rules/test_against_xla.py` holds both numbers against XLA's, operation by
operation; `xla_cases.py` beside it says where and why they differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, Region

from .counts import per_element
from .facts import Facts
from .registry import facts_of

_ONE_EACH = per_element(1)


@dataclass(frozen=True, slots=True)
class Work:
    """What one execution of an operation computes.

    `flops`: additions, products, comparisons and the like. `transcendentals`: calls of `exp`, `tanh`, `sqrt` and the
    like, and random numbers; of each several FLOPs may be made.
    """

    flops: int = 0
    transcendentals: int = 0

    @property
    def together(self) -> int:
        """A transcendental counts as one."""
        return self.flops + self.transcendentals

    def plus(self, other: Work, times: int = 1) -> Work:
        return Work(self.flops + times * other.flops, self.transcendentals + times * other.transcendentals)

    def at_least(self, other: Work) -> Work:
        return Work(max(self.flops, other.flops), max(self.transcendentals, other.transcendentals))


def flops(op: Operation) -> int:
    """FLOPs of one execution, each transcendental function for one. See `work`."""
    return work(op).together


def work(op: Operation) -> Work:
    """What one execution computes: what its facts say, otherwise one FLOP for each result element.

    Regions count as often as they run; the body of a loop whose trip count is not known counts once, with its
    condition. Of branches the largest of each number counts.
    """
    facts = facts_of(op)
    if facts is None:
        return Work(_ONE_EACH(op))
    own = Work((facts.flops or _ONE_EACH)(op), 0 if facts.transcendentals is None else facts.transcendentals(op))
    return own if facts.body_runs is None else _with_regions(op, facts, own)


def region_runs(op: Operation, facts: Facts) -> list[int]:
    """How often each of the regions runs."""
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
    found = Work()
    for block in region.blocks:
        for inner in block.ops:
            found = found.plus(work(inner))
    return found
