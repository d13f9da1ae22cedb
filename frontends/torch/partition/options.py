"""The options of `recompute.torch`. They have the same names as the options of `recompute.jax.jit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from ....options.conflicts import demand_agreement
from ....options.option_facts import EntryPoint
from ....options.recompute_options import Planner, RecomputeOptions
from ....options.segment_budgets import SegmentBudgets
from ....options.selection import Selection
from ....planning.plan_file import StepPlan
from ....support.suggestions import suggestion
from ....support.units import MINIMUM, budget_text, is_share, parse_budget, parse_bytes


class Keywords(TypedDict, total=False):
    """The keywords of `recompute.torch.compile` and `backend`."""

    segments: str
    segment_count: int
    checkpoints: Sequence[str] | None
    skip: Sequence[int]
    outputs: bool
    policy: str | Callable[..., Any]
    names: Sequence[str]
    save: Sequence[str]
    exclude: Sequence[str]
    segment_budgets: SegmentBudgets
    collectives: bool
    copies: int
    plan: str | Sequence[StepPlan] | None
    planner: Planner | None
    budget: str | float | None
    reserve: str | int
    strict: bool
    attempts: int
    cost: str


OURS = frozenset(Keywords.__annotations__)
_SELECTION_OPTIONS = frozenset(field.name for field in fields(Selection)) - {"segment_budgets"}
_SEQUENCES = frozenset({"checkpoints", "skip", "names", "save", "exclude"})


@dataclass(frozen=True)
class Options:
    """The options of a step.

    Attributes:
        rewrite: The options of the rewrite. Their target is `none`, because program order already delays the copies.
    """

    rewrite: RecomputeOptions

    @property
    def budget(self) -> str | None:
        """The budget in the options of the rewrite."""
        return self.rewrite.budget


def options_of(keywords: Mapping[str, Any]) -> Options:
    """Build the options from keywords.

    Raises `TypeError` for an unknown keyword, and `ValueError` for an invalid value.
    """
    unknown = sorted(keywords.keys() - OURS)
    if unknown:
        raise TypeError(f"recompute.torch: unknown option '{unknown[0]}'{suggestion(unknown[0], sorted(OURS))}")
    settings = {name: _value(name, value) for name, value in keywords.items() if name not in ("budget", "reserve")}
    stated, reserve = keywords.get("budget"), keywords.get("reserve", 0)
    budget = None if stated is None else budget_within(stated, reserve)
    selection = Selection(**{name: settings.pop(name) for name in _SELECTION_OPTIONS & settings.keys()})
    rewrite = RecomputeOptions(
        selection, target="none", stagger=False, calls=False, loops=False, budget=budget, **settings
    )
    demand_agreement(rewrite, EntryPoint.TORCH)
    return Options(rewrite)


def budget_within(budget: str | float, reserve: str | int) -> str:
    """Subtract the reserve for tensors outside the graph from the budget. Return the result as a string.

    Raises `ValueError` for an invalid budget, for a reserve with a budget that is not in bytes, and for a reserve that
    leaves no memory.
    """
    text = budget_text(budget)
    most = parse_budget(text, 1)
    held = parse_bytes(reserve) if isinstance(reserve, str) else reserve
    if not held:
        return MINIMUM if most is None else text
    if is_share(text) or most is None:
        reason = f"can only be subtracted from a budget in bytes, but the budget is '{text}'"
        raise ValueError(f"reserve={reserve!r} {reason}")
    if held >= most:
        raise ValueError(f"reserve={reserve!r} uses up the whole budget of {text}: it must be smaller than the budget")
    return f"{most - held}B"


def _value(name: str, value: Any) -> Any:
    return tuple(value) if name in _SEQUENCES and value is not None else value
