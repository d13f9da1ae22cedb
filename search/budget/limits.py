"""Memory budgets: parsed, as bytes of each function, and the problem of a rewrite within one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...analysis.memory.timeline import Timeline
from ...analysis.step.order import functions_of
from ...analysis.step.storage import DYNAMIC
from ...options.loop_schedule import Loops
from ...options.recompute_options import Planner, RecomputeOptions
from ...planning.objective import EAGER_SHARE
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Stop
from ...support.diagnostics import Refusal
from ...transforms.lower import TARGETS
from ...transforms.plans.counted import MODELS, ORDER, XLA, flat, timelines_of
from ..prepare import drop_dead

ERROR = "which is 0.93 to 1.11 times what XLA:CPU allocates on the examples"
"""What `benchmarks/calibrate_xla_model.py` finds of the model `xla`, plain and recomputed."""


BOUNDS = "a budget needs bounds, so lower the step for the largest shapes that are to fit"


@dataclass(frozen=True)
class Budget:
    """`text`: `8GiB` of the device, `50%` or `0.5` of the unmarked step's temporaries, or `min`; by the memory `model`,
    order or xla."""

    text: str
    model: str

    @classmethod
    def of(cls, text: str, model: str, target: str) -> Budget:
        """Parse a budget. `model`: empty for that of the target. Raises `ValueError` for an invalid budget or model."""
        from ...support.units import parse_budget

        parse_budget(text, 1)
        if model not in ("", *MODELS):
            raise ValueError(f"unknown memory model '{model}'; known are {', '.join(MODELS)}")
        return cls(text, model or (ORDER if target == "none" else XLA))

    @property
    def by(self) -> str:
        """The model, in words."""
        return "in program order" if self.model == ORDER else "by the model of XLA:CPU"


@dataclass(frozen=True)
class BudgetLimits:
    """Bytes of temporaries of each public function: of the plain step, and the limit; None for the minimum."""

    plain: Mapping[str, int]
    bytes: Mapping[str, int] | None

    @property
    def is_kept(self) -> bool:
        return self.bytes is not None and all(self.plain[name] <= most for name, most in self.bytes.items())

    def share(self, peaks: Mapping[str, int]) -> float:
        """The largest share of the limit, or of the plain step for the minimum."""
        of = self.plain if self.bytes is None else self.bytes
        return max((peaks[name] / max(most, 1) for name, most in of.items()), default=0.0)

    def over(self, peaks: Mapping[str, int]) -> int:
        """The most bytes above a limit; negative if all limits are kept."""
        limits = self.bytes or {}
        return max((peaks[name] - most for name, most in limits.items()), default=0)


def budget_limits(module: ModuleOp, budget: Budget) -> BudgetLimits:
    """Raises `Refusal` for dynamic shapes, and where arguments and results alone need more."""
    from ...support.units import parse_budget

    try:
        lines = dict(timelines_of(module, budget.model))
    except Refusal as error:
        if DYNAMIC not in error.reason:
            raise
        raise Refusal(error.operation, f"{error.reason}: {BOUNDS}") from error
    plain = {name: timeline.peak_bytes for name, timeline in lines.items()}
    if parse_budget(budget.text, 1) is None:
        return BudgetLimits(plain, None)
    return BudgetLimits(plain, {name: _temporaries(module, budget, name, timeline) for name, timeline in lines.items()})


def _temporaries(module: ModuleOp, budget: Budget, name: str, line: Timeline) -> int:
    """The limit on temporaries: a number of bytes includes arguments and results."""
    from ...support.units import is_share, parse_budget

    limit = parse_budget(budget.text, line.peak_bytes)
    assert limit is not None, "as little as can be was asked for elsewhere"
    if is_share(budget.text):
        return limit
    around = line.device_bytes - line.peak_bytes
    if limit < around:
        function = next((subject for subject in functions_of(module) if subject.sym_name.data == name), module)
        raise Refusal(
            function,
            f"no plan keeps the budget of {budget.text}, {limit} bytes of the device: arguments and results of "
            f"@{name}, which no plan changes, need {around}",
        )
    return limit - around


def budget_option(module: ModuleOp, text: str, model: str, target: str, plan: str = "") -> Budget:
    """The options of a pass. Raises `Refusal`."""
    if plan:
        raise Refusal(module, "a plan says what is recomputed, and so does a budget: give one of them")
    try:
        return Budget.of(text, model, target)
    except ValueError as error:
        raise Refusal(module, str(error)) from error


def check_target(module: ModuleOp, target: str) -> None:
    """Raises `Refusal` for one that is unknown."""
    if target not in TARGETS:
        raise Refusal(module, f"unknown target '{target}'; known are {', '.join(TARGETS)}")


class RewriteResult(Protocol):
    """The result of a rewrite. `eager`: the largest peak (bytes) of an executor that starts operations as soon as it
    can. `moved`: the number of values on the host. `extra_cost`: the cost that planners minimize."""

    @property
    def plans(self) -> tuple[StepPlan, ...]: ...
    @property
    def extra_flops(self) -> int: ...
    @property
    def extra_cost(self) -> int: ...
    @property
    def moved(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def eager(self) -> int: ...


O = TypeVar("O", bound=RewriteResult)  # noqa: E741
RunRewrite = Callable[[Sequence[StepPlan] | Planner | None, Loops], tuple[ModuleOp | None, O]]
"""Rewrites the module by plans, by a planner, or as without a budget: the new module, or None if it is unchanged, and
the outcome."""


@dataclass(frozen=True)
class Evaluated(Generic[O]):
    module: ModuleOp | None
    outcome: O
    peaks: Mapping[str, int]
    loops: Loops


@dataclass(frozen=True)
class BudgetProblem(Generic[O]):
    module: ModuleOp
    budget: Budget
    run: RunRewrite[O]
    limits: BudgetLimits
    options: RecomputeOptions
    stop: Stop

    def evaluate(self, planned: Sequence[StepPlan] | Planner | None, loops: Loops | None = None) -> Evaluated[O]:
        loops = self.options.loops if loops is None else loops
        module, outcome = self.run(planned, loops)
        peaks = {
            name: timeline.peak_bytes
            for name, timeline in timelines_of(module or self.module, self.budget.model)
            if name
        }
        return Evaluated(module, outcome, peaks, loops)

    def living(self, result: Evaluated[O]) -> Mapping[str, int]:
        """The peaks without dead code, which a rewrite drops, and which plans do not see."""
        if result.module is not None:
            return result.peaks
        module = flat(self.module)
        drop_dead(module)
        return {name: timeline.peak_bytes for name, timeline in timelines_of(module, self.budget.model)}

    def is_kept(self, result: Evaluated[O]) -> bool:
        return self.limits.bytes is not None and self.limits.over(result.peaks) <= 0

    def eager_excess(self, result: Evaluated[O]) -> int:
        """Bytes above the budget for an executor that starts operations as soon as it can, where tokens order it."""
        if not self.options.emission.is_ordered or self.limits.bytes is None:
            return 0
        return int(result.outcome.eager / EAGER_SHARE) - max(self.limits.bytes.values(), default=0)

    @property
    def wording(self) -> str:
        if self.limits.bytes is None:
            return f"{self.budget.text}"
        return f"of {self.budget.text} ({', '.join(map(str, self.limits.bytes.values()))} bytes of temporaries)"
