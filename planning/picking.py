"""Which of many plans to try next, where trying is dear and what each needs is only foreseen.

What is foreseen is corrected by what was measured: between two that were measured on the line through both, below the
lowest in proportion. Plans of one kind err alike, so each kind has its own line, through what its own kind measured; a
kind that was not tried yet borrows from the others. So a model that is off by a factor and by bytes that it does not
see is put right. Where nothing is left that should fit, a kind that was not tried is taken at its word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

CAREFUL = 0.95
"""Of the limit: what the last try is foreseen at."""
WORTH = 0.999
"""Of the extra work so far: what another try has to promise."""


@dataclass(frozen=True)
class Foreseen:
    """What a plan is foreseen to need, and its extra work; `kind`: who made it, from which segments."""

    need: float
    work: float
    kind: str


@dataclass
class Picking:
    """`limit`: what a plan may need; 0 where it is to need as little as can be, and `least` is what was found.
    `plain`: what the step without a plan is foreseen to need, and what it needs."""

    choices: Sequence[Foreseen]
    limit: float
    plain: tuple[float, float]
    measured: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def best(self) -> int | None:
        """The least work of those within the limit."""
        within = [at for at, need in self.measured.items() if need <= self.limit]
        return min(within, key=lambda at: (self.choices[at].work, self.measured[at]), default=None)

    @property
    def least(self) -> int | None:
        """What needs least, of equals the least work; None where nothing could be had."""
        known = [at for at, need in self.measured.items() if need < float("inf")]
        return min(known, key=lambda at: (self.measured[at], self.choices[at].work), default=None)

    def next(self, left: int) -> int | None:
        """What to try, when so many tries are left; None where nothing promises anything."""
        if left <= 0:
            return None
        best = self.best
        untried = [at for at in range(len(self.choices)) if at not in self.measured]
        if best is not None:
            untried = [at for at in untried if self.choices[at].work < WORTH * self.choices[best].work]
        limit = self.limit * (CAREFUL if left == 1 and best is None else 1.0)
        needs = {at: self.expected(self.choices[at]) for at in untried}
        within = [at for at in untried if needs[at] <= limit]
        if not within:
            kinds = {self.choices[at].kind for at in self.measured}
            others = [at for at in untried if self.choices[at].kind not in kinds]
            within = [at for at in others if self._on_line(self.choices[at], []) <= limit]
        if within:
            return min(within, key=lambda at: (self.choices[at].work, needs[at]))
        if best is not None:
            return None
        # Where none should fit, of equals that which does more: it may gain what is not foreseen.
        sign = -1 if self.limit else 1
        return min(untried, key=lambda at: (needs[at], sign * self.choices[at].work), default=None)

    def expected(self, one: Foreseen) -> float:
        """What it will need, as far as can be told."""
        known = [at for at, need in self.measured.items() if need < float("inf")]
        own = [at for at in known if self.choices[at].kind == one.kind]
        return self._on_line(one, own or known)

    def _on_line(self, one: Foreseen, through: Sequence[int]) -> float:
        """`through`: what was measured."""
        seen = [(self.choices[at].need, self.measured[at]) for at in through]
        points = sorted([*seen, self.plain])
        below = [point for point in points if point[0] <= one.need]
        above = [point for point in points if point[0] > one.need]
        if not below:
            foreseen, found = above[0]
            return found * one.need / foreseen if foreseen else found
        if not above:
            foreseen, found = below[-1]
            return found * one.need / foreseen if foreseen else found
        (low, at_low), (high, at_high) = below[-1], above[0]
        return at_low + (at_high - at_low) * (one.need - low) / (high - low)

    def run(self, needed: Callable[[int], float | None], tries: int) -> int | None:
        """Try so many, and say which is best. `needed`: what a choice needs, None where it cannot be had."""
        for left in range(tries, 0, -1):
            at = self.next(left)
            if at is None:
                break
            need = needed(at)
            self.measured[at] = float("inf") if need is None else need
        return self.best
