"""Parse memory budgets, and convert them to bytes of temporaries for each function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ...analysis.memory.timeline import Timeline
from ...analysis.step.order import functions_of
from ...support.diagnostics import DynamicShape, Refusal
from ...support.suggestions import suggestion
from ...support.units import format_bytes, is_share, parse_budget, readable_bytes
from ...transforms.preparation.timelines import MODELS, ORDER, XLA, timelines_of

ERROR = "which is 0.93 to 1.11 times what XLA:CPU allocates on the examples"
"""The error of the model `xla`, as measured by `benchmarks/calibrate_xla_model.py` on plain and rewritten steps."""
LARGEST_SHAPES = "lower the step for the largest shapes that must fit"


@dataclass(frozen=True)
class Budget:
    """A memory budget under a memory model.

    Attributes:
        text: `8GiB` of the device, `50%` or `0.5` of the temporaries of the plain step, or `min`.
        model: `order` (program order) or `xla`.
    """

    text: str
    model: str

    @classmethod
    def of(cls, text: str, model: str, target: str) -> Budget:
        """Validate a budget. `model`: "" for the default of the target. Raises `ValueError` for an invalid budget, and
        for an unknown model."""
        parse_budget(text, 1)
        if model not in ("", *MODELS):
            raise ValueError(f"unknown memory model '{model}'{suggestion(model, MODELS)}")
        return cls(text, model or (ORDER if target == "none" else XLA))

    @property
    def by(self) -> str:
        """The model as a phrase for messages."""
        return "in program order" if self.model == ORDER else "by the model of XLA:CPU"


@dataclass(frozen=True)
class BudgetLimits:
    """The bytes of temporaries of each public function: of the plain step (`plain`), and their limit (`bytes`), which
    is None for the budget `min`."""

    plain: Mapping[str, int]
    bytes: Mapping[str, int] | None

    @property
    def is_kept(self) -> bool:
        """Whether the plain step keeps the budget."""
        return self.bytes is not None and all(self.plain[name] <= most for name, most in self.bytes.items())

    def share(self, peaks: Mapping[str, int]) -> float:
        """Return the largest ratio of a peak to its limit, or for `min` to the peak of the plain step."""
        of = self.plain if self.bytes is None else self.bytes
        return max((peaks[name] / max(most, 1) for name, most in of.items()), default=0.0)

    def over(self, peaks: Mapping[str, int]) -> int:
        """Return the largest excess over a limit in bytes; negative if all limits are kept."""
        limits = self.bytes or {}
        return max((peaks[name] - most for name, most in limits.items()), default=0)


def budget_limits(module: ModuleOp, budget: Budget) -> BudgetLimits:
    """Convert a budget to bytes of temporaries for each function.

    Raises:
        Refusal: For dynamic shapes, and if arguments and results alone exceed the budget.
    """
    try:
        lines = dict(timelines_of(module, budget.model))
    except DynamicShape as error:
        raise Refusal(error.operation, f"{error.reason}: {LARGEST_SHAPES}") from error
    plain = {name: timeline.peak_bytes for name, timeline in lines.items()}
    if parse_budget(budget.text, 1) is None:
        return BudgetLimits(plain, None)
    return BudgetLimits(plain, {name: _temporaries(module, budget, name, timeline) for name, timeline in lines.items()})


def _temporaries(module: ModuleOp, budget: Budget, name: str, line: Timeline) -> int:
    """Return the limit on temporaries in bytes. Arguments and results are subtracted from a budget in bytes."""
    limit = parse_budget(budget.text, line.peak_bytes)
    assert limit is not None, "the budget `min` has no limit"
    if is_share(budget.text):
        return limit
    around = line.device_bytes - line.peak_bytes
    if limit < around:
        function = next((subject for subject in functions_of(module) if subject.sym_name.data == name), module)
        raise Refusal(
            function,
            f"no plan keeps the budget of {budget.text}, {format_bytes(limit)} of the device: arguments and results of "
            f"@{name}, which no plan changes, need {readable_bytes(around)}",
        )
    return limit - around
