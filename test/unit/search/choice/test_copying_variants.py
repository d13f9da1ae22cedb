"""The best cuts are also copied in other ways."""

from __future__ import annotations

from recompute.analysis.step.module_steps import numbered_steps
from recompute.options.recompute_options import RecomputeOptions
from recompute.search.choice.attempts import Attempt
from recompute.search.choice.choose import choose_for
from recompute.test.examples import inlined


def tried_at(name: str, options: RecomputeOptions) -> tuple[Attempt, list[Attempt]]:
    """Return the chosen attempt at an example, and all attempts."""
    ((function, step),) = numbered_steps(inlined(name).clone())
    choice = choose_for(function, step, options)
    return choice.chosen.planned.attempt, [scored.planned.attempt for scored in choice.tried]


def test_outputs_are_recomputed_for_their_own_segment() -> None:
    """In the GPT, the best cuts need less memory if each segment recomputes its output for its own copies."""
    chosen, tried = tried_at("gpt.small.mlir", RecomputeOptions())
    assert chosen.segmentation.cuts is not None and chosen.segmentation.own_outputs
    same_cuts = [attempt for attempt in tried if attempt.segmentation.cuts == chosen.segmentation.cuts]
    assert [attempt.segmentation.own_outputs for attempt in same_cuts] == [False, True]


def test_named_segments_are_not_varied_again() -> None:
    """The list of attempts already contains the other ways of copying named segments."""
    chosen, tried = tried_at("mlp.small.mlir", RecomputeOptions())
    assert chosen.segmentation.cuts is None
    assert sum(attempt.segmentation.cuts is None for attempt in tried) <= 3


def test_a_single_attempt_has_no_variants() -> None:
    _, tried = tried_at("chain.small.mlir", RecomputeOptions(attempts=1))
    assert len(tried) == 1
