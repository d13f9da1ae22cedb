"""Collect candidate plans for a module with their forecast memory needs, for callers that measure the rewritten or
compiled module.

A pool begins with the attempts that `recompute` compares without a budget. `Pool.search` adds plans with little more
work than the cheapest plan that is expected to fit. This module rewrites nothing. Candidates refer to operations by
index, and each plan is checked against the step when it is applied. `pool_cache.py` caches the pools of recent modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ...analysis.forecasts.peaks import Forecast, Peaks
from ...analysis.step.module_steps import numbered_steps
from ...analysis.step.step import Step
from ...options.loop_schedule import UNCUT, LoopSchedule
from ...options.recompute_options import ATTEMPTS, RecomputeOptions
from ...planning.calibrated_search import Prediction, Ratio
from ...planning.host_moves import Offload
from ...planning.plan import Plan
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Stop, never_stop
from ...support.timing import part
from ...transforms.plans.misfits import for_each_step
from ..checked_options import cost_option
from ..choice.best_attempt import ScoredAttempt
from ..choice.choose import choose, policy_attempts
from ..loop_choices import loop_choices
from ..prepare import prepare
from .candidates import StepCandidates
from .plan_origin import PlanOrigin, PlanSource
from .step_forecasts import StepCandidate

MAX_ATTEMPTS = ATTEMPTS + 1
"""Maximum number of attempts for each step, one more than without a budget. Further attempts are not planned."""
NEED_LEVELS = 10
"""The approximate number of needs at which the plans of several steps are combined. Without this limit, there would be
a candidate for each combination of plans."""
PLAIN_NEED_SHARE = 1.0
"""The need of the plain step. All needs are shares of this need."""


@dataclass(frozen=True)
class CandidateKey:
    """The identity of a candidate in its pool. Two candidates are the same if they have the same loop schedule, and
    their plans have the same origins and forecast.

    The comparison ignores the plans themselves and the values that they move to the host, so two plans of one origin
    differ only if their forecasts differ.

    Attributes:
        loops: The loop schedule.
        origins: The distinct origins of the plans, in the order of the steps.
        prediction: The forecast need, the extra work, and the kinds of the plans.
    """

    loops: LoopSchedule
    origins: tuple[PlanOrigin, ...]
    prediction: Prediction


@dataclass(frozen=True)
class ModuleCandidate:
    """A plan for each step of the module, made after its loops were cut according to the schedule `loops`.

    Attributes:
        origins: The distinct origins of the plans.
        plans: A plan for each step.
        loops: The loop schedule.
        prediction: The forecast need, as a share of the forecast need of the plain step, and the extra work.
    """

    origins: tuple[PlanOrigin, ...]
    plans: tuple[StepPlan, ...]
    loops: LoopSchedule
    prediction: Prediction

    @property
    def key(self) -> CandidateKey:
        """The identity of the candidate in its pool."""
        return CandidateKey(self.loops, self.origins, self.prediction)

    @property
    def words(self) -> str:
        """The origins as a string, for remarks and reports."""
        return "; ".join(map(str, self.origins))


@dataclass(frozen=True)
class _Variant:
    """The candidates for one loop schedule and one set of offloading options.

    Attributes:
        loops: The loop schedule.
        offload: The options of offloading.
        extra_flops: The extra FLOPs of recomputation in loops.
        steps: The candidates of each step, by the name of its function.
    """

    loops: LoopSchedule
    offload: Offload
    extra_flops: int
    steps: dict[str, StepCandidates]

    def candidates(self) -> Iterator[ModuleCandidate]:
        """Yield the combinations of the candidates of all steps."""
        for combination in _combinations([step.forecasts.candidates for step in self.steps.values()]):
            plans = tuple(
                StepPlan(name, step.graph.fingerprint, chosen.plan, chosen.notes, self.offload)
                for (name, step), chosen in zip(self.steps.items(), combination, strict=True)
            )
            work = self.extra_flops + sum(chosen.work for chosen in combination)
            origins = tuple(dict.fromkeys(chosen.origin for chosen in combination))
            kinds = tuple(dict.fromkeys(chosen.origin.kind for chosen in combination))
            need_share = max(chosen.need_share for chosen in combination)
            yield ModuleCandidate(origins, plans, self.loops, Prediction(need_share, float(work), kinds))


@dataclass
class Pool:
    """The candidate plans for a module, with their forecasts and measurements.

    Attributes:
        candidates: The candidates that have been forecast. Their positions are stable, because new ones are appended.
        measured: The measured needs of candidates, stored for later searches. The outer key is the key of the measuring
            compiler (`CompilerBackend.key`), and the inner key is the position in `candidates`.
        unbudgeted: The measured need of the choice without a budget, by compiler key.
    """

    candidates: list[ModuleCandidate] = field(default_factory=list[ModuleCandidate])
    measured: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])
    unbudgeted: dict[str, float] = field(default_factory=dict[str, float])
    _variants: list[_Variant] = field(default_factory=list[_Variant])

    @classmethod
    @part("plan")
    def of(cls, module: ModuleOp, options: RecomputeOptions, stop: Stop = never_stop) -> Pool:
        """Return the pool of a module. The module stays unchanged.

        Args:
            stop: A predicate that ends the planning of more variants.

        Raises:
            Refusal: In the same cases as `recompute`.
        """
        references, pool = dict[str, Peaks](), cls()
        for offload in (options.moves, *options.moves.variants()):
            for loops in loop_choices(module, options):
                if pool.candidates and stop():
                    break
                variant = _variant_of(module, replace(options, loops=loops, offload=offload), references)
                if variant is not None:
                    pool._variants.append(variant)
                    pool._update()
        return pool

    @property
    def predictions(self) -> Sequence[Prediction]:
        """The predictions of all candidates, in their order."""
        return [candidate.prediction for candidate in self.candidates]

    def search(self, ratio: Ratio, stop: Stop = never_stop) -> Sequence[Prediction]:
        """Add candidates with little more work than the cheapest candidate that is expected to fit.

        Args:
            ratio: Maps a prediction to the expected need, as a multiple of the limit.
            stop: A predicate that ends the search.

        Returns:
            The predictions of all candidates.
        """
        for variant in self._variants:
            for step in variant.steps.values():
                if not stop():
                    step.search(ratio, stop)
        self._update()
        return self.predictions

    def _update(self) -> None:
        """Append the candidates of all variants that are not in the pool yet."""
        keys = {candidate.key for candidate in self.candidates}
        for variant in self._variants:
            for candidate in variant.candidates():
                if candidate.key not in keys:
                    keys.add(candidate.key)
                    self.candidates.append(candidate)


def _variant_of(module: ModuleOp, options: RecomputeOptions, references: dict[str, Peaks]) -> _Variant | None:
    """Return the variant for the loop schedule and the offloading options; None if the schedule cuts loops, but no loop
    can be cut.

    `references`: the peaks of each plain step, by function name. The first variant fills this dictionary.
    """
    prepared = prepare(module, options)
    offload = options.moves
    choosing = replace(options, selection=prepared.selection, attempts=MAX_ATTEMPTS)
    if options.loop_schedule != UNCUT and not prepared.rolled.copies:
        return None
    numbered = numbered_steps(prepared.module, costs=cost_option(prepared.module, options.cost).of)
    forecasts = {function: Forecast.of(function, step, options.emission).detach() for function, step in numbered}
    attempts = for_each_step(numbered, lambda function, step: _attempts(step, choosing, forecasts[function]))
    steps = dict[str, StepCandidates]()
    for function, step in numbered:
        name, forecast = function.sym_name.data, forecasts[function]
        plain_peaks = forecast.without_copies()
        share_of = partial(_need_share, offload, references.setdefault(name, plain_peaks))
        loops_alone = [_without_copies(PlanSource.LOOPS_ALONE, share_of(plain_peaks))] if prepared.rolled.copies else []
        limits = prepared.limits.of.get(name)
        steps[name] = StepCandidates.of(
            step,
            attempts.get(function, ()),
            forecast=forecast,
            share_of=share_of,
            limits=limits,
            first=loops_alone,
        )
    return _Variant(options.loop_schedule, offload, prepared.rolled.extra_flops, steps)


def _attempts(step: Step, options: RecomputeOptions, forecast: Forecast) -> tuple[ScoredAttempt, ...]:
    """Return the attempts at a step. Raises `BadSelection` if the selection does not apply to the step."""
    tried = choose(step, options, forecast).tried
    return (*tried, *policy_attempts(step, options, forecast, tried))


def _need_share(offload: Offload, plain: Peaks, needed: Peaks) -> float:
    """Return the need as a share of the need of the plain step. Needs are peaks under the XLA:CPU model, or peaks in
    program order if values may move to the host, because XLA:CPU cannot move them."""
    return needed.in_order / max(plain.in_order, 1) if offload.offers else needed.xla / max(plain.xla, 1)


def _combinations(per_step: Sequence[Sequence[StepCandidate]]) -> Iterator[Sequence[StepCandidate]]:
    """Yield combinations of one candidate for each step. For a single step, yield each of its candidates. For several
    steps, select some memory shares, and combine the cheapest candidates of all steps within each share."""
    if len(per_step) == 1:
        yield from ([candidate] for candidate in per_step[0])
        return
    shares = sorted({candidate.need_share for candidates_of_step in per_step for candidate in candidates_of_step})
    for share in shares[:: max(1, len(shares) // NEED_LEVELS)]:
        yield [_cheapest(candidates_of_step, share) for candidates_of_step in per_step]


def _cheapest(candidates_of_step: Sequence[StepCandidate], most_share: float) -> StepCandidate:
    """Return the candidate with the least work among those with a need share of at most `most_share`. If there are
    none, return the candidate with the lowest need."""
    within = [candidate for candidate in candidates_of_step if candidate.need_share <= most_share]
    if within:
        return min(within, key=lambda candidate: candidate.work)
    nothing = _without_copies(PlanSource.NO_COPIES, PLAIN_NEED_SHARE)
    return min(candidates_of_step, key=lambda candidate: candidate.need_share, default=nothing)


def _without_copies(source: PlanSource, need_share: float) -> StepCandidate:
    return StepCandidate(PlanOrigin(source), Plan(), (), need_share, 0)
