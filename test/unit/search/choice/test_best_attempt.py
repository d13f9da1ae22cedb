"""The order of preference among attempts with given peaks. The unchanged step peaks at 1000 bytes everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from typing_extensions import override

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.options.selection import AUTO
from recompute.planning.by_segment.by_structure import CutMethod, Cuts
from recompute.planning.plan import Plan
from recompute.search.choice import best_attempt as best_attempt_module
from recompute.search.choice.attempts import DEFAULT_ATTEMPT, Attempt
from recompute.search.choice.best_attempt import ScoredAttempt, best_attempt, steadier_attempt, tries_chained_groups
from recompute.search.choice.planned_attempts import AttemptTargets, PlannedAttempt, plan_attempt
from recompute.search.choice.segment_decisions import Segmentation
from recompute.search.choice.vetoes import why_worse
from recompute.test.examples import inlined

NAMED, BLOCKS, STRUCTURE = None, Cuts((0, 1, 2), 1, 1, CutMethod.BLOCKS), Cuts((0, 1, 2), 1, 1)
WHOLE = Cuts((0, 1), 1, 1, CutMethod.WHOLE)
BEFORE = Peaks.from_values(1000, 1000, lambda: 1000)


@dataclass(frozen=True)
class GivenAttempt(ScoredAttempt):
    """A scored attempt whose copies take `work` times the cost of the step."""

    work: float = 0

    @property
    @override
    def extra_work(self) -> int:
        return round(self.work * sum(self.planned.decided.step.graph.cost))


@dataclass(frozen=True)
class Given:
    """An attempt by its peaks in bytes: in program order, on an eager executor, and under the XLA:CPU model. If
    `xla` is None, the attempt must win or lose without this model. Its copies take `work` times the FLOPs of the
    step."""

    in_order: int
    xla: int | None
    eager: int = 900
    cuts: Cuts | None = NAMED
    has_copies: bool = True
    work: float = 0

    def scored(self, planned: PlannedAttempt) -> ScoredAttempt:
        plan = planned.plan if self.has_copies else Plan()
        attempt = replace(planned, attempt=Attempt(Segmentation(self.cuts)), plan=plan)
        return GivenAttempt(attempt, Peaks.from_values(self.in_order, self.eager, self._xla_peak), self.work)

    def _xla_peak(self) -> int:
        assert self.xla is not None, "the XLA:CPU model is not evaluated"
        return self.xla


@pytest.fixture(scope="module")
def planned() -> PlannedAttempt:
    """Return an attempt with copies at a small step."""
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    attempt = plan_attempt(step, AUTO, DEFAULT_ATTEMPT, AttemptTargets.of(step, AUTO))
    assert attempt.plan.copies
    return attempt


@pytest.fixture
def winner(planned: PlannedAttempt) -> Callable[..., int]:
    """Return a function that gives the position of the best one of the given attempts."""

    def position(*given: Given, keeps_barriers: bool = True) -> int:
        scored = [attempt.scored(planned) for attempt in given]
        best = best_attempt(scored, BEFORE, keeps_barriers)
        return next(at for at, attempt in enumerate(scored) if attempt is best)

    return position


CASES: dict[str, tuple[tuple[Given, ...], int]] = {
    "the lowest peak under XLA:CPU": ((Given(600, 800), Given(700, 700), Given(500, 900)), 1),
    "program order decides between peaks within 2 %": ((Given(700, 700), Given(600, 714)), 1),
    "and not between others": ((Given(700, 700), Given(600, 715)), 0),
    "the first of two whose peaks in program order are within 2 %": ((Given(612, 700), Given(600, 700)), 0),
    "and not of others": ((Given(613, 700), Given(600, 700)), 1),
    "copies": ((Given(900, 900, has_copies=False), Given(990, 990)), 1),
    "an improvement": ((Given(500, 500, eager=1011), Given(900, 900)), 1),
    "which may raise a peak by 1 %": ((Given(500, 500, eager=1010), Given(900, 900)), 0),
    "the one that raises no peak under XLA:CPU": ((Given(500, 1011), Given(900, 1000)), 1),
    "which may rise by 1 %": ((Given(500, 1010), Given(900, 1000)), 0),
    "named segments": ((Given(700, 690, cuts=STRUCTURE), Given(700, 700)), 1),
    "cuts that save much more than named segments": ((Given(700, 700), Given(700, 626, cuts=STRUCTURE)), 1),
    "named segments, if cuts save little more": ((Given(700, 700), Given(700, 627, cuts=STRUCTURE)), 0),
    "cuts that save more than blocks": ((Given(700, 700, cuts=BLOCKS), Given(700, 656, cuts=STRUCTURE)), 1),
    "blocks, if cuts save little more": ((Given(700, 700, cuts=BLOCKS), Given(700, 657, cuts=STRUCTURE)), 0),
    "cuts, if named segments save nothing": ((Given(995, 995, eager=995), Given(980, 980, cuts=STRUCTURE)), 1),
    "the lowest peak, for at most half more work": ((Given(700, 700), Given(690, 680, work=0.5)), 1),
    "much less work, out of proportion to the peak": ((Given(700, 700), Given(690, 680, work=0.6)), 0),
    "a much lower peak, in proportion to its work": ((Given(950, 950), Given(500, 500, work=0.6)), 1),
    "an attempt with much less work than the best of the others": (
        (Given(800, 800, work=3), Given(820, 820, work=0.1)),
        1,
    ),
    "the lowest peak, if all take too much work": ((Given(900, 900, work=2), Given(800, 800, work=2)), 1),
    "the first one, if nothing is saved": ((Given(1000, 1000, eager=1000), Given(1000, 1000, eager=1000)), 0),
}


@pytest.mark.parametrize("preferred", CASES)
def test_order_of_preference(preferred: str, winner: Callable[..., int]) -> None:
    given, position = CASES[preferred]
    assert winner(*given) == position


def test_every_cut_method_has_one_level_of_trust() -> None:
    methods = [method for level, _ in best_attempt_module.TRUST_LEVELS for method in level]
    assert sorted(map(str, methods)) == sorted(map(str, (None, *CutMethod)))


def test_method_without_a_level_of_trust_is_an_error(
    winner: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(best_attempt_module, "TRUST_LEVELS", best_attempt_module.TRUST_LEVELS[:-1])
    with pytest.raises(AssertionError, match=r"STRUCTURE belongs to no level of trust; add it to TRUST_LEVELS"):
        winner(Given(700, 700), Given(600, 600, cuts=STRUCTURE))


def test_a_single_segment_competes_with_cuts_by_structure(winner: Callable[..., int]) -> None:
    """A single segment is trusted as much as cuts by structure: it wins without a margin."""
    assert winner(Given(700, 700, cuts=STRUCTURE), Given(690, 680, cuts=WHOLE)) == 1
    assert winner(Given(700, 700, cuts=BLOCKS), Given(700, 657, cuts=WHOLE)) == 0


def test_program_order_decides_without_barriers(winner: Callable[..., int]) -> None:
    """The target is not XLA:CPU, so its model is not evaluated, and the peak of an eager executor does not count."""
    assert winner(Given(700, None), Given(600, None, eager=2000), keeps_barriers=False) == 1


def test_a_single_attempt_wins_without_comparison(winner: Callable[..., int]) -> None:
    assert winner(Given(2000, None, has_copies=False)) == 0


LARGE = (Given(700, 700), Given(911, None), Given(600, None, eager=1011), Given(950, 500, cuts=WHOLE))


def test_attempts_at_large_steps_that_cannot_win_are_not_evaluated(
    winner: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts that raise another peak, or need 1.3 times the lowest peak in program order, are excluded, except the
    one with a single segment."""
    monkeypatch.setattr(best_attempt_module, "MANY_OPERATIONS", 1)
    assert winner(*LARGE) == 3
    assert winner(Given(500, None, eager=1011), Given(700, 700)) == 1
    with pytest.raises(AssertionError, match="not evaluated"):
        winner(Given(700, 700), Given(910, None))


def test_named_segments_of_large_steps_may_need_more_in_program_order(
    winner: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level of trust has a candidate under the XLA:CPU model, unless its peak in program order is far higher."""
    monkeypatch.setattr(best_attempt_module, "MANY_OPERATIONS", 1)
    by_structure = Given(500, 560, cuts=STRUCTURE)
    assert winner(by_structure, Given(790, 480)) == 1
    assert winner(by_structure, Given(810, None)) == 0


@pytest.mark.parametrize(
    ("given", "is_better"),
    [
        ((Given(1000, 1000, eager=1000), Given(991, 995, eager=995)), False),
        ((Given(1000, 1000, eager=1000), Given(991, 989, eager=995)), True),
        ((Given(500, 500, eager=1011), Given(1011, 500, eager=500)), False),
    ],
    ids=["no peak falls by 1 %", "a peak falls by more", "every attempt raises a peak"],
)
def test_the_unchanged_step_wins_if_no_attempt_is_an_improvement(
    given: tuple[Given, ...], is_better: bool, planned: PlannedAttempt
) -> None:
    best = best_attempt([attempt.scored(planned) for attempt in given], BEFORE, keeps_barriers=True)
    assert (why_worse(BEFORE, best.peaks, keeps_barriers=True) is None) is is_better


def test_unsteady_attempts_are_also_tried_with_chained_groups(planned: PlannedAttempt) -> None:
    """Chained groups lower the peak of an eager executor, and need the barriers of the target."""
    steady, unsteady = (Given(500, 500, eager=eager).scored(planned) for eager in (550, 551))
    assert tries_chained_groups(unsteady, keeps_barriers=True)
    assert not tries_chained_groups(steady, keeps_barriers=True)
    assert not tries_chained_groups(unsteady, keeps_barriers=False)
    chained = replace(unsteady, planned=replace(planned, attempt=Attempt(chain=True)))
    assert not tries_chained_groups(chained, keeps_barriers=True)


@pytest.mark.parametrize(
    ("best", "chained", "wins"),
    [
        (Given(500, 500, eager=551), Given(550, 550, eager=550), True),
        (Given(500, 500, eager=551), Given(550, 550, eager=551), False),
        (Given(500, 500, eager=551), Given(1011, 500, eager=500), False),
        (Given(1011, 500, eager=551), Given(550, 550, eager=600), True),
    ],
    ids=["lower eager peak", "equal eager peak", "chained is refused", "best is refused"],
)
def test_the_steadier_attempt_that_is_not_refused_wins(
    best: Given, chained: Given, wins: bool, planned: PlannedAttempt
) -> None:
    pair = best.scored(planned), chained.scored(planned)
    assert steadier_attempt(*pair, BEFORE, keeps_barriers=True) is pair[wins]
