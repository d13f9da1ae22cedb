"""Candidate plans for a module with their forecast needs, for callers that measure the rewritten or compiled result.

The candidates are those of `recompute` without a budget, whole and with fewer segments, and the plans of the solvers
under budgets in program order, whole and with fewer copies: those go first that come first in the backward pass, or
that free least for their work. Nothing is rewritten here.

The candidates of recent steps are cached, so that several budgets on one step share them: they do not depend on the
budget. They refer to a step by numbers, and each plan is checked
against the step when it is applied.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.step.phase_sources import sources
from ..analysis.step.step import Step
from ..mlir_io.printer import print_module
from ..options.loop_schedule import Loops
from ..options.recompute_options import DEFAULT, RecomputeOptions
from ..options.selection import BadSelection
from ..planning.calibrated_search import Prediction
from ..planning.graph import Graph
from ..planning.host_moves import Offload
from ..planning.pairs import plan_of_pairs
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import Note, StepPlan
from ..planning.solvers.result import Stop, never
from ..rules.names import name_of
from ..rules.registry import BUILT_IN
from ..support.diagnostics import Refusal
from ..support.timing import part
from ..support.walk import every_operation
from ..transforms.mark import write_marks
from ..transforms.per_device.outline import is_stand_in
from ..transforms.phase import numbered_steps
from ..transforms.plans.limit_segments import SegmentLimits
from ..transforms.plans.misfits import Misfits
from ..transforms.plans.notes import notes_of, write_notes
from .budget.beside_segments import BesideSegments
from .budget.loop_choices import loop_choices
from .carry_out import cost_option
from .choose import ScoredAttempt, choose
from .prepare import prepare

SOLVED, LOOPS = "solver", "loops alone"
TRIED = 8
"""Number of segment-based candidates."""
THINNED = 4
"""Of these, how many of the smallest, half by each measure, are also tried with segments left out."""
SHARES = (0.85, 0.7, 0.55, 0.5, 0.45, 0.4, 0.37, 0.34, 0.31, 0.28, 0.25, 0.22, 0.19, 0.16)
"""Budgets of the solvers, as shares of the peak in program order. There are many, because a lower budget in program
order does not imply a lower need under XLA:CPU."""
LARGE = 6000
"""Number of operations from which the solvers get half as many budgets and variants."""
LEVELS = 10
"""Number of combinations of the plans of several steps."""


@dataclass(frozen=True)
class Candidate:
    """A plan for each step of the module after its loops were cut as `loops` says, with a description in words.

    `prediction`: the forecast need, as a share of the forecast of the plain step, and the extra FLOPs."""

    words: str
    plans: tuple[StepPlan, ...]
    loops: Loops
    prediction: Prediction


@dataclass(frozen=True)
class _StepCandidate:
    """A plan for one step; `work` is its extra cost."""

    words: str
    kind: str
    plan: Plan
    notes: tuple[Note, ...]
    need: float
    work: int


@part("plan")
def candidates(module: ModuleOp, options: RecomputeOptions, stop: Stop = never) -> list[Candidate]:
    """All candidates; the module is left unchanged. Raises `Refusal` as `recompute` does."""
    references, pool = dict[str, Peaks](), list[Candidate]()
    for offload in (options.moves, *options.moves.variants()):
        for loops in loop_choices(module, options):
            if pool and stop():
                break
            pool.extend(_candidates(module, replace(options, loops=loops, offload=offload), stop, references))
    return pool


def _candidates(
    module: ModuleOp, options: RecomputeOptions, stop: Stop, references: dict[str, Peaks]
) -> Iterator[Candidate]:
    """The candidates for one choice of loops and moves. `references`: the forecast of each plain step, filled here."""
    prepared, emission, offload = prepare(module, options), options.emission, options.moves
    selected = replace(options, selection=prepared.selection)
    if options.loops is not False and not prepared.rolled.copies:
        return
    steps = numbered_steps(prepared.module, costs=cost_option(prepared.module, options.cost).of)
    per_step = list[tuple[str, Step, list[_StepCandidate]]]()
    for function, step in steps:
        name = function.sym_name.data
        forecast = Forecast.of(function, step, emission.is_ordered, emission.staggered).read()
        plain = forecast.without_copies()
        share = partial(_share, offload, references.setdefault(name, plain))
        demand = prepared.demands.of.get(name)
        nothing = [_StepCandidate(LOOPS, LOOPS, Plan(), (), share(plain), 0)] if prepared.rolled.copies else []
        step_candidates = [*nothing, *_of_step(function, step, selected, stop, forecast, share, demand)]
        per_step.append(
            (
                name,
                step,
                [chosen for chosen in step_candidates if demand is None or not demand.broken(step.graph, chosen.plan)],
            )
        )
    extra = prepared.rolled.extra_flops
    for together in _together([step_candidates for _, _, step_candidates in per_step]):
        plans = tuple(
            StepPlan(name, step.graph.fingerprint, chosen.plan, chosen.notes, offload)
            for (name, step, _), chosen in zip(per_step, together, strict=True)
        )
        work = extra + sum(chosen.work for chosen in together)
        words = "; ".join(dict.fromkeys(chosen.words for chosen in together))
        need, kind = (
            max(chosen.need for chosen in together),
            "; ".join(dict.fromkeys(chosen.kind for chosen in together)),
        )
        yield Candidate(words, plans, options.loops, Prediction(need, float(work), kind))


_Share = Callable[[Peaks], float]


def _share(offload: Offload, plain: Peaks, needed: Peaks) -> float:
    """The need as a share of the plain step's: by the model of XLA:CPU, or in program order with moves to the host,
    which XLA:CPU does not make."""
    return needed.in_order / max(plain.in_order, 1) if offload.offers else needed.xla / max(plain.xla, 1)


def _together(per_step: Sequence[Sequence[_StepCandidate]]) -> Iterator[Sequence[_StepCandidate]]:
    """Combinations of one plan for each step: every plan of a single step, otherwise the cheapest plans that keep a
    share of the need, for several shares."""
    if len(per_step) == 1:
        yield from ([candidate] for candidate in per_step[0])
        return
    needs = sorted({candidate.need for candidates_of_step in per_step for candidate in candidates_of_step})
    for need in needs[:: max(1, len(needs) // LEVELS)]:
        yield [_cheapest(candidates_of_step, need) for candidates_of_step in per_step]


def _cheapest(candidates_of_step: Sequence[_StepCandidate], need: float) -> _StepCandidate:
    within = [candidate for candidate in candidates_of_step if candidate.need <= need]
    if within:
        return min(within, key=lambda candidate: candidate.work)
    return min(
        candidates_of_step,
        key=lambda candidate: candidate.need,
        default=_StepCandidate("nothing", LOOPS, Plan(), (), 1.0, 0),
    )


def _of_step(
    function: FuncOp,
    step: Step,
    options: RecomputeOptions,
    stop: Stop,
    forecast: Forecast,
    share: Callable[[Peaks], float],
    demand: SegmentLimits | None,
) -> Iterator[_StepCandidate]:
    try:
        attempts = choose(step, options.selection, forecast, TRIED, options.copies).tried
    except BadSelection as error:
        if not any(map(is_stand_in, every_operation(function))):
            raise Refusal(function, str(error)) from error
        attempts = ()
    plain = tuple(notes_of(step))
    seen = list[Plan]()

    def distinct(
        words: str, kind: str, plan: Plan, notes: tuple[Note, ...], segments: Mapping[int, str]
    ) -> list[_StepCandidate]:
        if not plan.copies or plan in seen:
            return []
        seen.append(plan)
        need = share(forecast.of_plan(plan, segments))
        return [_StepCandidate(words, kind, plan, notes, need, plan.extra_cost(step.graph.cost))]

    thinned = {
        *_least(attempts, lambda candidate: candidate.peaks.xla),
        *_least(attempts, lambda candidate: candidate.planned.plan.extra_flops),
    }
    for at, candidate in enumerate(attempts):
        write_marks(candidate.planned.decided)
        notes, segments = tuple(notes_of(step)), candidate.planned.segments
        write_notes(step, plain)
        words = str(candidate.planned.attempt)
        yield from distinct(words, words, candidate.planned.plan, notes, segments)
        for names, plan in thinned_out(candidate.planned.plan) if at in thinned else ():
            thinned_words = f"{words}, {len(names)} of them"
            yield from distinct(thinned_words, words, plan, _but_for_others(notes, names), segments)
    solved = list[_StepCandidate]()
    for part_of_peak, plan in _solved(step, demand, stop):
        solved += distinct(f"a solver's plan for {part_of_peak:.0%} in program order", SOLVED, plan, plain, {})
    yield from solved
    for candidate in _front(solved):
        for left, plan in with_fewer_groups(
            step.graph, candidate.plan, STEPS if len(step.graph) < LARGE else STEPS // 2
        ):
            if stop():
                return
            yield from distinct(
                f"{candidate.words}, {left} of its {len(candidate.plan.groups)} places", SOLVED, plan, plain, {}
            )


def _least(attempts: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[int]:
    copying = [at for at, attempt in enumerate(attempts) if attempt.planned.plan.copies]
    return sorted(copying, key=lambda at: size(attempts[at]))[: THINNED // 2]


def _front(candidates_of_step: Sequence[_StepCandidate]) -> list[_StepCandidate]:
    """The Pareto front of work and need."""
    kept = list[_StepCandidate]()
    for candidate in sorted(candidates_of_step, key=lambda candidate: (candidate.work, candidate.need)):
        if not kept or candidate.need < kept[-1].need:
            kept.append(candidate)
    return kept


def _but_for_others(notes: Iterable[Note], names: frozenset[str]) -> tuple[Note, ...]:
    """The notes without the marks of other segments, whose operations keep the names of their segments."""
    return tuple(
        note if note.segment is None or note.segment in names else replace(note, recompute=None, checkpoint=False)
        for note in notes
    )


def _solved(step: Step, demand: SegmentLimits | None, stop: Stop) -> Iterator[tuple[float, Plan]]:
    # The solvers import numba, if it is installed: only callers that need them wait for it.
    from ..planning.liveness import peak_bytes
    from ..planning.solvers.result import NoPlan
    from ..planning.solvers.solve_graph import plan_within

    peak = peak_bytes(step.graph)
    segments = BesideSegments({} if demand is None else {step.graph.fingerprint: demand})
    for share in SHARES if len(step.graph) < LARGE else SHARES[1::2]:
        if stop():
            return
        try:
            yield share, segments.plan(step.graph, partial(plan_within, budget=int(share * peak), stop=stop))
        except NoPlan:
            return


T = TypeVar("T")
STEPS = 12
"""The approximate number of plans that are made of one plan in each of two orders."""


def thinned_out(plan: Plan) -> Iterator[tuple[frozenset[str], Plan]]:
    """Segment by segment, with the names of those that are left."""
    groups = dict[str, list[CopyGroup]]()
    for group in sorted(plan.groups, key=lambda group: group.before):
        groups.setdefault(group.segment, []).append(group)
    names = [name for name in groups if name]
    for order in (names, sorted(names, key=lambda name: _worth(groups[name]))):
        for kept in _fewer(order, STEPS):
            left = frozenset(kept)
            groups_left = tuple([group for group in plan.groups if not group.segment or group.segment in left])
            yield left, replace(plan, groups=groups_left)


def with_fewer_groups(graph: Graph, plan: Plan, steps: int) -> Iterator[tuple[int, Plan]]:
    """Place by place, with how many are left. What a copy read of one that is left out it reads of the original."""
    # The solvers import numba, if it is installed: only callers that need them wait for it.
    from ..planning.solvers.solve_graph import with_views

    in_turn = sorted(plan.groups, key=lambda group: group.before)
    for order in (in_turn, sorted(in_turn, key=lambda group: _worth([group]))):
        for left in _fewer(order, steps):
            pairs = {(group.before, op) for group in left for op in group.operations}
            yield len(left), plan_of_pairs(graph, with_views(graph, pairs))


def _fewer(order: Sequence[T], steps: int) -> Iterator[Sequence[T]]:
    """The sequence without its first elements, in about `steps` steps."""
    every = max(1, len(order) // steps)
    for count in range(every, len(order), every):
        yield order[count:]


def _worth(groups: Iterable[CopyGroup]) -> float:
    copied = list(groups)
    return sum(group.saved_bytes for group in copied) / (1 + sum(group.extra_flops for group in copied))


@dataclass(frozen=True)
class AttemptPlans:
    """`attempt`: the segmentation in words, with a plan for each step. `peak_bytes`: the largest forecast peak."""

    attempt: str
    plans: tuple[StepPlan, ...]
    peak_bytes: int

    @property
    def copies(self) -> int:
        return sum(plan.plan.copies for plan in self.plans)


def attempt_plans(module: ModuleOp, options: RecomputeOptions = DEFAULT) -> Iterator[AttemptPlans]:
    """The candidates of `recompute`, in their order. Where a step has fewer than another, its last one is repeated.

    Raises `Refusal` as `recompute` does.
    """
    emission, misfits = options.emission, Misfits()
    per_step = list[tuple[str, Step, tuple[ScoredAttempt, ...]]]()
    prepared = prepare(module, options)
    for function, step in numbered_steps(prepared.module):
        forecast = Forecast.of(function, step, emission.is_ordered, emission.staggered)
        chosen = partial(choose, step, prepared.selection, forecast, options.attempts, options.copies)
        choice = misfits.fitted(function, chosen)
        if choice is not None:
            per_step.append((function.sym_name.data, step, tuple(choice.tried)))
    misfits.refuse()
    for index in range(max((len(attempts) for _, _, attempts in per_step), default=0)):
        scored = [(name, step, attempts[min(index, len(attempts) - 1)]) for name, step, attempts in per_step]
        words = "; ".join(dict.fromkeys(str(attempt.planned.attempt) for _, _, attempt in scored))
        peaks = [attempt.peaks.xla if emission.is_ordered else attempt.peaks.in_order for _, _, attempt in scored]
        yield AttemptPlans(words, tuple(_step_plan(*attempt) for attempt in scored), max(peaks))


def _step_plan(name: str, step: Step, attempt: ScoredAttempt) -> StepPlan:
    """The plan with the notes of its marks; the step is left without them."""
    plain = tuple(notes_of(step))
    write_marks(attempt.planned.decided)
    notes = tuple(notes_of(step))
    write_notes(step, plain)
    return StepPlan(name, step.graph.fingerprint, attempt.planned.plan, notes)


MOST = 4
"""Size of the cache."""
_HOLDERS = {"builtin.module", "func.func"}
_pools: OrderedDict[object, tuple[Candidate, ...]] = OrderedDict()


def pool_of(module: ModuleOp, options: RecomputeOptions, stop: Stop = never) -> Sequence[Candidate]:
    """The result of `candidates`, cached by the text of the module. Raises `Refusal` as that does."""
    key = _key(module, options)
    if key is not None and key in _pools:
        _pools.move_to_end(key)
        return _pools[key]
    pool = tuple(candidates(module, options, stop))
    if key is not None and not stop():
        _pools[key] = pool
        while len(_pools) > MOST:
            _pools.popitem(last=False)
    return pool


def forget_pools() -> None:
    """Empty the cache."""
    _pools.clear()


def _key(module: ModuleOp, options: RecomputeOptions) -> object | None:
    """The cache key; None where the candidates depend on a file of costs or on registered rules."""
    names = set(map(name_of, every_operation(module)))
    declared = not names <= BUILT_IN.keys() | _HOLDERS
    if declared or Path(options.cost).exists():
        return None
    text = sha256(print_module(module, debuginfo=True).encode()).hexdigest()
    relevant = options.selection, options.copies, options.emission, options.loops, options.cost, options.moves
    return text, relevant, tuple(sources())
