"""The search makes the expected attempts at a step, and chooses the smallest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block

from recompute.analysis.copies.copying import CloneOptions, plan_of_marks
from recompute.analysis.forecasts.peaks import Forecast, Peaks
from recompute.analysis.memory.xla.memory import PlainStep
from recompute.analysis.memory.xla.read_program import program_of
from recompute.analysis.request.segments import named_segments
from recompute.analysis.step.module_steps import numbered_steps
from recompute.dialects.names import Names
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import AUTO, Selection
from recompute.planning.by_segment.by_structure import CutMethod, Cuts
from recompute.planning.check import violations
from recompute.planning.simulate import SimulatedProgram
from recompute.rewriting.mark import mark_steps
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.search.choice import best_attempt as best_attempt_module
from recompute.search.choice import proposed_attempts
from recompute.search.choice.attempts import DEFAULT_ATTEMPT, Attempt
from recompute.search.choice.best_attempt import ScoredAttempt, best_attempt
from recompute.search.choice.choose import choose, choose_for
from recompute.search.choice.module_attempts import module_attempts
from recompute.search.choice.planned_attempts import AttemptTargets, plan_attempt
from recompute.search.choice.proposed_attempts import SegmentSource, attempts_at, attempts_for
from recompute.search.choice.segment_decisions import Segmentation
from recompute.test.examples import SMALL, inlined, original, peaks_of

pytestmark = pytest.mark.slow

SELECTIONS = {
    "nothing said": AUTO,
    "outputs": Selection(outputs=True),
    "dots are saved": Selection(policy="dots_saveable"),
    "two groups": Selection(segment_count=2),
}


@pytest.mark.parametrize("description", SELECTIONS)
@pytest.mark.parametrize("name", SMALL)
def test_first_attempt_matches_marks(name: str, description: str) -> None:
    """The first attempt has the plan of the mark pass."""
    ((_, step),) = steps = numbered_steps(inlined(name).clone())
    selection = SELECTIONS[description]
    planned = plan_attempt(step, selection, DEFAULT_ATTEMPT, AttemptTargets.of(step, selection))
    mark_steps(steps, selection)
    assert plan_of_marks(step, CloneOptions()) == planned.plan


@pytest.mark.parametrize("name", SMALL)
def test_every_attempt_is_a_plan_for_the_step(name: str) -> None:
    ((_, step),) = numbered_steps(inlined(name).clone())
    for attempt in attempts_for(step.graph, SegmentSource.NAMES, structures=2):
        for variant in (attempt, replace(attempt, chain=True)):
            plan = plan_attempt(step, AUTO, variant, AttemptTargets.of(step, AUTO, variant.segmentation)).plan
            assert list(violations(step.graph, plan)) == [], str(variant)


@pytest.mark.slow("gpt.small")
@pytest.mark.parametrize("name", SMALL)
def test_chooses_smallest_attempt_of_its_kind(name: str) -> None:
    """Attempts of a less trusted kind may be smaller, because they must gain more than the error of the models."""
    ((function, step),) = numbered_steps(inlined(name).clone())
    choice = choose_for(function, step, RecomputeOptions(attempts=9))
    assert choice.refused is None
    kind = choice.chosen.cut_method
    copying = [attempt for attempt in choice.tried if attempt.planned.plan.copies and attempt.cut_method is kind]
    assert choice.chosen.peaks.eager <= min(copying, key=lambda item: item.peaks.xla).peaks.eager or (
        choice.chosen.peaks.xla <= 1.02 * min(item.peaks.xla for item in copying)
    )


@pytest.mark.parametrize("name", ["tied.small.mlir", "unet.small.mlir"])
def test_chosen_attempt_is_among_the_tried_ones(name: str) -> None:
    """A search within a budget tries the attempts of the list again. The first step chooses chained copy groups."""
    ((function, step),) = numbered_steps(inlined(name).clone())
    choice = choose_for(function, step, RecomputeOptions())
    assert any(attempt is choice.chosen for attempt in choice.tried)
    assert choice.chosen.planned.attempt.chain is (name == "tied.small.mlir")


@pytest.mark.slow("unet", "gpt_train")
@pytest.mark.parametrize("name", ["chain.small.mlir", "mlp.small.mlir", "unet.small.mlir"])
def test_module_attempts_reach_predicted_peaks(name: str) -> None:
    """The best of three attempts may follow once more, with chained copy groups."""
    items = list(module_attempts(original(name), RecomputeOptions(attempts=3)))
    assert 1 < len(items) <= 4
    for tried in items:
        module = original(name).clone()
        assert rewrite_in_place(module, RecomputeOptions(calls=False).with_planned(tried.plans)).copies > 0
        assert peaks_of(module).xla == tried.peak_bytes


@dataclass(frozen=True)
class GrowingXlaPeak(PlainStep):
    """An estimate of XLA's peak that grows with the number of operations."""

    def peak_bytes(self, rewritten: SimulatedProgram) -> int:
        return len(rewritten.operations)


NOTHING_READ = GrowingXlaPeak(program_of(Block()), {})


@pytest.mark.parametrize("selection", [AUTO, Selection(segments="block*")], ids=["auto", "named"])
def test_higher_xla_peak_alone_rejects_no_plan(selection: Selection) -> None:
    """A plan is chosen for its peak in program order although XLA gains nothing: other executors use that order."""
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    choice = choose(step, RecomputeOptions(selection, attempts=1), Forecast(step.graph, lambda: NOTHING_READ))
    assert choice.chosen.peaks.in_order < choice.before.in_order
    assert choice.refused is None and choice.chosen.peaks.xla > choice.before.xla


def test_program_order_target_ignores_xla_peak() -> None:
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    assert (
        choose(
            step, RecomputeOptions(attempts=1), Forecast(step.graph, lambda: NOTHING_READ, keeps_barriers=False)
        ).refused
        is None
    )


@dataclass(frozen=True)
class StatedXlaPeak(PlainStep):
    """An estimate that returns the peak given in `bytes` for the number of operations."""

    bytes: Mapping[int, int]

    def peak_bytes(self, rewritten: SimulatedProgram) -> int:
        return self.bytes.get(len(rewritten.operations), 1000)


def test_structural_cuts_win_if_named_segments_raise_peak() -> None:
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    tried = choose(step, RecomputeOptions(attempts=9), Forecast(step.graph, lambda: NOTHING_READ)).tried
    # The estimate is the number of operations, which a named and a structural attempt may share.
    sizes = {attempt.peaks.xla: 1005 for attempt in tried if attempt.cut_method is not None}
    sizes |= {attempt.peaks.xla: 1020 for attempt in tried if attempt.cut_method is None}
    forecast = Forecast(step.graph, lambda: StatedXlaPeak(NOTHING_READ.program, {}, sizes))
    chosen = choose(step, RecomputeOptions(attempts=9), forecast).chosen.planned.attempt
    assert chosen.segmentation.cuts is not None


CUTS = {"blocks": Cuts((0, 1, 2), 1, 1, CutMethod.BLOCKS), "structure": Cuts((0, 1, 2), 1, 1)}
BY_TRUST = [
    ({"named": 1000, "blocks": 920, "structure": 920}, "named segments"),
    ({"named": 1000, "blocks": 880, "structure": 880}, "blocks"),
    ({"blocks": 1000, "structure": 950}, "blocks"),
    ({"blocks": 1000, "structure": 880}, "structure"),
    ({"named": 1000, "blocks": 950, "structure": 860}, "structure"),
    ({"named": 1000, "structure": 920}, "named segments"),
]


@pytest.mark.parametrize(("sizes", "chosen"), BY_TRUST)
def test_names_and_blocks_are_preferred_to_cuts_by_structure(sizes: dict[str, int], chosen: str) -> None:
    """Names are preferred, then blocks: since the models err, cuts by structure must need clearly less to be chosen."""
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    planned = plan_attempt(step, AUTO, DEFAULT_ATTEMPT, AttemptTargets.of(step, AUTO))
    tried = [
        ScoredAttempt(
            replace(planned, attempt=Attempt(Segmentation(CUTS.get(kind)))),
            Peaks.from_values(1000, 1000, lambda size=size: size),
        )
        for kind, size in sizes.items()
    ]
    result = best_attempt(tried, Peaks.from_values(2000, 2000, lambda: 2000), keeps_barriers=True)
    assert str(result.planned.attempt).endswith(chosen)


def test_large_steps_copy_named_segments_in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copying of named segments is varied for small steps, and if the user leaves the search no other choice."""
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    varied = {(False, False), (True, False), (True, True)}

    def copy_variants(selection: Selection) -> set[tuple[bool, bool]]:
        named = [
            attempt
            for attempt in attempts_at(step, selection, named_segments(step.phases, selection))
            if attempt.segmentation.cuts is None
        ]
        return {(attempt.splits_only_concurrent, attempt.segmentation.own_outputs) for attempt in named}

    assert copy_variants(AUTO) == varied
    monkeypatch.setattr(proposed_attempts, "MANY_OPERATIONS", len(step.graph))
    assert copy_variants(AUTO) == {(True, False)}
    assert copy_variants(Selection(segments="block*")) == {(True, False), (False, False)}


@pytest.mark.parametrize("is_large", [True, False])
def test_xla_model_is_skipped_for_losing_attempts(is_large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For large steps the XLA:CPU model is evaluated only for attempts that can win by the other peaks, and for one
    segment of everything."""
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    planned = plan_attempt(step, AUTO, DEFAULT_ATTEMPT, AttemptTargets.of(step, AUTO))
    monkeypatch.setattr(best_attempt_module, "MANY_OPERATIONS", len(step.graph) + (not is_large))
    items = list[int]()

    def attempt(in_order: int, eager: int, cuts: Cuts | None = None) -> ScoredAttempt:
        peaks = Peaks.from_values(in_order, eager, lambda: items.append(in_order) or in_order)
        return ScoredAttempt(replace(planned, attempt=Attempt(Segmentation(cuts))), peaks)

    whole = attempt(1900, 1900, Cuts((0, 1), 1, 1, CutMethod.WHOLE))
    tried = [attempt(1000, 1000), attempt(1300, 1000), attempt(1301, 1000), attempt(500, 2500), whole]
    best_attempt(tried, Peaks.from_values(2000, 2000, lambda: 2000), keeps_barriers=True)
    assert set(items) == ({1000, 1300, 1900} if is_large else {1000, 1300, 1301, 1900})


def test_user_given_segments_are_not_varied() -> None:
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    for selection in (Selection(segments="block*"), Selection(checkpoints=("x",)), Selection(skip=(0,))):
        tried = attempts_at(step, selection, named_segments(step.phases, selection))
        assert {attempt.segmentation for attempt in tried} == {Segmentation()}
    step.phases.order.operations[0].attributes[Names.SEGMENT] = StringAttr("head")
    marked = attempts_at(step, AUTO, named_segments(step.phases, AUTO))
    assert {attempt.segmentation for attempt in marked} == {Segmentation()}
