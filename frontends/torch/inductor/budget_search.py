"""Meet a budget under Inductor: plan in program order, compile, measure, correct the forecasts, and re-plan.

The peak of a compiled step differs from the peak in program order, since Inductor fuses and reorders operations. The
search is the same as for compiled JAX steps (`search/budget/rounds.py`). Each round adds a plan for the bound in
program order at which the compiled step is expected to be within the budget. If no such plan is expected, other kinds
of candidates are added: a plan by segments, and the partitions of PyTorch's own partitioner if they are correct.

Inductor does not implement the `CompilerBackend` of compiled JAX steps. The candidates of a `CompilerBackend` are plans
for a module, and the step that runs is one of the compiled candidates. Here, the partitions of PyTorch are candidates
without a plan, new plans are made for bounds that depend on the measurements, and Inductor itself compiles the chosen
step again.

All budgets for a step share measurements: a step that was compiled for one budget is a candidate for the others
(`measurements.py`). If the step chosen for a larger budget is also within a smaller budget, it is used without a
further search, so that peaks never rise when budgets fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ....planning.calibrated_search import Prediction, Ratio
from ....planning.solvers.result import Stop, never_stop
from ....search.budget.refusal_text import refusal_text
from ....search.budget.rounds import Rounds
from ....search.limits import bytes_left
from ....support.units import MINIMUM, readable_bytes
from ..fx.halves import Halves
from ..partition.joint_graph_step import JointStep
from ..partition.options import Options
from ..partition.partitioner import BudgetNotKept
from ..reports.compile_report import GraphReport, Round
from .candidates import PLAN, Candidate, Splitter
from .compiled_step import devices_of, measured_peak
from .measurements import Measurement, Measurements

MAX_COMPILES = 4
"""The maximum number of steps to compile for one budget, not counting the plain step."""
NEARLY_FULL = 0.95
"""The search ends when a measured peak is within the limit and at least this share of it, because a looser plan would
need hardly less work."""
AIMED_SHARE = 0.99
"""The largest expected peak of a new plan, as a share of the limit. It is below 1, because forecasts between two
measured plans have errors of about one percent."""
LOOSER_BOUNDS = (1.1, 1.25)
"""The looser bounds to try for the budget `min`, as multiples of the peak of the smallest plan."""


def partition_within(step: JointStep, options: Options) -> tuple[Halves, GraphReport]:
    """Split the step so that its compiled peak is within the budget, with the least extra work that the search finds.

    Raises `BudgetNotKept` if no compiled step is within the budget, and `NotMeasured` if the plain step cannot be
    measured.
    """
    return _BudgetSearch(Splitter(step, options), options, Measurements.of(step, options)).best()


@dataclass
class PlanPool:
    """The candidates of one step, to which the search adds plans for bounds that it derives from measurements.

    Attributes:
        splitter: Creates the candidates.
        candidates: The candidates so far.
    """

    splitter: Splitter
    candidates: list[Candidate]
    _has_other_kinds: bool = False

    @property
    def predictions(self) -> Sequence[Prediction]:
        return [self.splitter.prediction(candidate) for candidate in self.candidates]

    def search(self, ratio: Ratio, stop: Stop = never_stop) -> Sequence[Prediction]:
        """Add the plan for the largest bound that is expected to meet the limit. Return all forecasts.

        If no plan is expected to meet the limit, also add candidates of other kinds.
        """
        if stop():
            return self.predictions
        bound = largest_fitting_bound(ratio, self.splitter.unchanged_report.plain_bytes)
        plan = self.splitter.within(bound) or self.splitter.smallest()
        if plan is not None:
            self.add(plan)
        if (plan is None or ratio(self.splitter.prediction(plan)) > 1) and not self._has_other_kinds:
            self._has_other_kinds = True
            for candidate in (self.splitter.by_segments(), *self.splitter.by_torch()):
                if candidate is not None:
                    self.add(candidate)
        return self.predictions

    def add(self, candidate: Candidate) -> None:
        """Add a candidate, unless the pool has a candidate of the same kind with the same peak in program order."""
        key = (candidate.kind, candidate.planned_bytes)
        if key not in [(other.kind, other.planned_bytes) for other in self.candidates]:
            self.candidates.append(candidate)


def largest_fitting_bound(ratio: Ratio, most: int) -> int:
    """Return the largest peak in program order, up to `most`, at which a plan is expected to meet the limit.

    The plan is expected to need at most `AIMED_SHARE` of the limit.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if ratio(Prediction(middle, 0.0, PLAN)) <= AIMED_SHARE:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True)
class _BudgetSearch:
    """The search for one step. `rounds`: the steps that the search has compiled."""

    splitter: Splitter
    options: Options
    measurements: Measurements
    rounds: list[Round] = field(default_factory=list[Round])

    def best(self) -> tuple[Halves, GraphReport]:
        self._demand_possible_budget()
        limit = self._limit
        chosen = self._fewest_flops_within(self._lowest_peak() if limit is None else limit)
        if limit is not None and (chosen is None or not self._is_settled(chosen, limit)):
            chosen = self._search(limit)
        if chosen is None:
            least_bytes = self.measurements.least_bytes or 0
            raise BudgetNotKept(
                _refusal_text(self.options.budget or "", limit or 0, self._plain_bytes, least_bytes, self.rounds)
            )
        halves = self.splitter.split(chosen.candidate)
        assert halves is not None, "a measured candidate can split the step again"
        if limit is not None:
            self.measurements.choices.append((limit, chosen.peak_bytes))
        report = self.splitter.report(chosen.candidate)
        return halves, replace(
            report, plain_bytes=self._plain_bytes, peak_bytes=chosen.peak_bytes, rounds=tuple(self.rounds)
        )

    def _demand_possible_budget(self) -> None:
        """Raise `BudgetNotKept` if weights, buffers and inputs alone exceed the budget, before anything is
        compiled."""
        budget, input_bytes = self.options.budget or MINIMUM, self.splitter.unchanged_report.input_bytes
        limit = bytes_left(budget, 0, input_bytes)
        if limit is not None and limit < 0:
            raise BudgetNotKept(
                f"no step is within the budget {budget}: weights and inputs, which no plan changes, need "
                f"{readable_bytes(input_bytes)}; budget='min' finds the lowest memory"
            )

    def _is_settled(self, chosen: Measurement, limit: int) -> bool:
        """Return whether the plain step, or the step that was chosen for an equal or larger budget, is within the
        limit."""
        return chosen.candidate.is_plain or self.measurements.is_settled(limit)

    def _search(self, limit: int) -> Measurement | None:
        """Compile candidates until one is within the limit with little extra work. Return None if no candidate is
        within the limit."""
        earlier = [each for each in self.measurements.measured if not each.candidate.is_plain]
        pool = PlanPool(self.splitter, [each.candidate for each in earlier])
        needs = {position: float(each.peak_bytes) for position, each in enumerate(earlier)}
        plain = (float(self.splitter.plain.planned_bytes), float(self._plain_bytes))

        def is_over() -> bool:
            return any(self._is_good_enough(each, limit) for each in self.measurements.measured)

        def measure(candidate: Candidate, _: float) -> tuple[float, Measurement] | None:
            measurement = self._measure(candidate, limit)
            return None if measurement is None else (float(measurement.peak_bytes), measurement)

        return Rounds(
            pool=pool,
            limit=float(limit),
            plain_needs=plain,
            measure=measure,
            stop=never_stop,
            is_over=is_over,
            measured_needs=needs,
            extra_candidates=0,
        ).best(MAX_COMPILES)

    def _is_good_enough(self, measurement: Measurement, limit: int) -> bool:
        """Return whether a measured step is within the limit, and a further search would gain little.

        A further search gains little if the step needs no extra work, or if it uses nearly the whole limit.
        """
        fits = measurement.peak_bytes <= limit
        is_free = measurement.candidate.flops <= self.splitter.plain.flops
        return fits and (is_free or measurement.peak_bytes >= NEARLY_FULL * limit)

    def _lowest_peak(self) -> int:
        """Compile candidates for the budget `min`. Return the lowest peak of all steps compiled so far.

        The candidates are the smallest plan in program order, two plans with looser bounds, and one plan by segments.
        """
        least_bytes = self._plain_bytes
        smallest = self.splitter.smallest()
        if smallest is not None:
            pool = PlanPool(self.splitter, [smallest])
            looser = (self.splitter.within(int(multiple * smallest.planned_bytes)) for multiple in LOOSER_BOUNDS)
            for candidate in (*looser, self.splitter.by_segments()):
                if candidate is not None:
                    pool.add(candidate)
            measured = [self._measure(candidate, None) for candidate in pool.candidates]
            least_bytes = min(least_bytes, *(each.peak_bytes for each in measured if each is not None))
        return min(least_bytes, self.measurements.least_bytes or least_bytes)

    def _fewest_flops_within(self, limit: int) -> Measurement | None:
        """Return the measured step with the fewest FLOPs, among the steps within the limit that can be split again;
        None if there is none."""
        fitting = self.measurements.within(limit)
        return next((each for each in fitting if self.splitter.split(each.candidate) is not None), None)

    @cached_property
    def _limit(self) -> int | None:
        """The limit of the step in bytes, excluding weights, buffers and inputs; None for the budget `min`."""
        input_bytes = self.splitter.unchanged_report.input_bytes
        return bytes_left(self.options.budget or MINIMUM, self._plain_bytes, input_bytes)

    @cached_property
    def _plain_bytes(self) -> int:
        peak = self.measurements.plain_bytes
        if peak is None:
            plain = self.splitter.plain
            peak = self._compiled_peak(plain)
            self.measurements.add(Measurement(plain, peak))
        return peak

    def _measure(self, candidate: Candidate, limit: int | None) -> Measurement | None:
        """Return the measurement of a candidate, and compile the candidate if it was not measured for another budget.

        Return None if the candidate's plan is not proved.
        """
        measurement = self.measurements.find(candidate)
        if self.splitter.split(candidate) is None or measurement is not None:
            return measurement
        measurement = Measurement(candidate, self._compiled_peak(candidate))
        self.measurements.add(measurement)
        fits = None if limit is None else measurement.peak_bytes <= limit
        self.rounds.append(
            Round(candidate.words, candidate.planned_bytes, measurement.peak_bytes, candidate.flops, fits)
        )
        return measurement

    def _compiled_peak(self, candidate: Candidate) -> int:
        step = self.splitter.step
        halves = self.splitter.split(candidate)
        assert halves is not None, "the search compiles only candidates that can split the step"
        (device,) = devices_of(step.joint)
        return measured_peak(halves, step.num_fwd_outputs, device)


def _refusal_text(budget: str, limit: int, plain_bytes: int, least_bytes: int, rounds: list[Round]) -> str:
    """Return the message for a budget that no compiled step meets.

    The message gives the lowest peak of all steps that were compiled for any budget, then lists the steps that were
    compiled for this budget.
    """
    failure = f"no compiled step is within the budget {budget}"
    limits = f"{readable_bytes(limit)} of {readable_bytes(plain_bytes)} in addition to weights and inputs"
    of_rounds = min((each.peak_bytes for each in rounds), default=plain_bytes)
    least = "no other step is left to compile"
    if rounds:
        smallest = "the compiled step" if len(rounds) == 1 else f"the smallest of {len(rounds)} compiled steps"
        least = f"{smallest} needs {readable_bytes(of_rounds)}"
    if least_bytes < of_rounds:
        least += f"; a step compiled for another budget needs {readable_bytes(least_bytes)}"
    return refusal_text(failure, limits, least, rounds, separator="; ")
