"""Parse memory budgets, and convert them to limits on the temporaries of each function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..analysis.memory.timeline import Timeline
from ..analysis.step.order import functions_of
from ..options.memory_model import ORDER, XLA, demand_memory_model
from ..support.diagnostics import Refusal
from ..support.interface import interface_wording
from ..support.units import format_bytes, is_share, parse_budget, readable_bytes
from ..transforms.preparation.timelines import timelines_of

MODEL_ERROR = (
    "0.93 to 1.11 times what XLA:CPU allocates on the examples, compiled without its pass cse_barrier_expander "
    "(docs/command_line.md)"
)
"""The error of the model `xla`, as measured by `benchmarks/cost_models/calibrate_xla_model.py` on plain and
rewritten steps."""
ORDER_ERROR_FACTOR = 5.3
"""The largest ratio of the peak in program order to the memory that XLA:CPU allocates, measured on the examples, plain
and recomputed (docs/memory.md)."""


@dataclass(frozen=True)
class Budget:
    """A memory budget under a memory model.

    Attributes:
        text: The budget as the user gives it: `8GiB` of device memory, `50%` or `0.5` of the temporaries of the plain
            step, or `min`.
        model: `order` (program order) or `xla`.
    """

    text: str
    model: str

    @classmethod
    def of(cls, text: str, model: str, target: str) -> Budget:
        """Validate a budget. `model`: the name of the memory model; "" for the default of the target. Raises
        `ValueError` if the budget is invalid or the model is unknown."""
        parse_budget(text, 1)
        demand_memory_model(model)
        return cls(text, model or (ORDER if target == "none" else XLA))

    @property
    def model_phrase(self) -> str:
        """A phrase that names the memory model, for messages."""
        return "in program order" if self.model == ORDER else "by the XLA:CPU model"


@dataclass(frozen=True)
class BudgetLimits:
    """The temporaries of each public function, and their limits.

    Attributes:
        plain_bytes: The temporaries of the plain step.
        limit_bytes: The maximum temporaries within the budget; None for the budget `min`.
        fixed_bytes: The bytes of arguments and results, which count towards a budget in bytes; empty for shares and for
            `min`.
    """

    plain_bytes: Mapping[str, int]
    limit_bytes: Mapping[str, int] | None
    fixed_bytes: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def wording(self) -> str:
        """The limits of all functions as a phrase for messages, such as `14.0 KiB of temporaries beside 8.0 KiB of
        arguments and results`."""
        return ", ".join(
            f"{format_bytes(limit)} of temporaries{self._beside(name)}"
            for name, limit in (self.limit_bytes or {}).items()
        )

    @property
    def wording_with_plain(self) -> str:
        """The limits as in `wording`, each with the temporaries of the plain step: `14.0 KiB of 20.0 KiB of temporaries
        beside 8.0 KiB of arguments and results`."""
        return ", ".join(
            f"{format_bytes(limit)} of {format_bytes(self.plain_bytes[name])} of temporaries{self._beside(name)}"
            for name, limit in (self.limit_bytes or {}).items()
        )

    def _beside(self, name: str) -> str:
        """Return a phrase with the bytes of arguments and results; "" for a share."""
        return f" beside {format_bytes(self.fixed_bytes[name])} of arguments and results" if self.fixed_bytes else ""

    @property
    def is_within_budget(self) -> bool:
        """Whether the plain step is within the budget."""
        return self.limit_bytes is not None and all(
            self.plain_bytes[name] <= limit for name, limit in self.limit_bytes.items()
        )

    def largest_ratio(self, peaks: Mapping[str, int]) -> float:
        """Return the largest ratio of a peak to its limit. For the budget `min`, the peaks of the plain step are used
        as the limits."""
        reference_bytes = self.plain_bytes if self.limit_bytes is None else self.limit_bytes
        return max((peaks[name] / max(size, 1) for name, size in reference_bytes.items()), default=0.0)

    def excess_bytes(self, peaks: Mapping[str, int]) -> int:
        """Return the largest excess of a peak over its limit, in bytes. The result is negative if all peaks are below
        their limits."""
        limits = self.limit_bytes or {}
        return max((peaks[name] - limit for name, limit in limits.items()), default=0)


def budget_limits(module: ModuleOp, budget: Budget) -> BudgetLimits:
    """Convert a budget to a limit on the temporaries of each function, in bytes.

    Raises:
        Refusal: If shapes are dynamic, or if arguments and results alone exceed the budget.
    """
    lines = dict(timelines_of(module, budget.model))
    plain_bytes = {name: timeline.peak_bytes for name, timeline in lines.items()}
    if parse_budget(budget.text, 1) is None:
        return BudgetLimits(plain_bytes, None)
    limit_bytes = {name: _limit_of(module, budget, name, timeline) for name, timeline in lines.items()}
    fixed_bytes = {name: timeline.device_bytes - timeline.peak_bytes for name, timeline in lines.items()}
    return BudgetLimits(plain_bytes, limit_bytes, {} if is_share(budget.text) else fixed_bytes)


def _limit_of(module: ModuleOp, budget: Budget, name: str, line: Timeline) -> int:
    """Return the limit on the temporaries of the function with this name, in bytes."""
    function = next((subject for subject in functions_of(module) if subject.sym_name.data == name), module)
    limit = temporaries_limit(
        function, budget.text, line.peak_bytes, line.device_bytes - line.peak_bytes, f"arguments and results of @{name}"
    )
    assert limit is not None, "the caller handles the budget `min`"
    return limit


def bytes_left(budget: str, plain_bytes: int, fixed_bytes: int) -> int | None:
    """Return the bytes that a budget leaves in addition to fixed bytes, such as arguments; None for the budget `min`.

    A share is relative to `plain_bytes`. The result is negative if the fixed bytes alone exceed a budget in bytes.
    Raises `ValueError` for an invalid budget.
    """
    limit = parse_budget(budget, plain_bytes)
    return limit if limit is None or is_share(budget) else limit - fixed_bytes


def temporaries_limit(
    op: Operation, budget: str, plain_bytes: int, fixed_bytes: int, fixed_values: str = "arguments and results"
) -> int | None:
    """Return the bytes that a budget leaves for temporaries; None for the budget `min`.

    A share is relative to the temporaries of the plain step. A budget in bytes limits the device memory, which includes
    arguments and results.

    Args:
        op: The operation at which a refusal is reported.
        budget: The budget as a string.
        plain_bytes: The temporaries of the plain step.
        fixed_bytes: The bytes of arguments and results, which no plan changes.
        fixed_values: The phrase that denotes arguments and results in a refusal.

    Raises:
        Refusal: If arguments and results alone exceed the budget.
        ValueError: If the budget is invalid.
    """
    limit = bytes_left(budget, plain_bytes, fixed_bytes)
    if limit is not None and limit < 0:
        minimum = interface_wording("budget=min", 'budget="min"')
        raise Refusal(
            op,
            f"no plan is within the budget of {budget} ({format_bytes(limit + fixed_bytes)} of device memory): "
            f"{fixed_values}, which no plan changes, need {readable_bytes(fixed_bytes)}; {minimum} finds the smallest "
            "budget that a plan can meet",
        )
    return limit
