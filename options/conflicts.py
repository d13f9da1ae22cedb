"""The options that exclude one another, as a table for all entry points.

A message names the entry point and spells the options as its users write them: `recompute.jax.jit: give plan= or
budget=, not both`, but `recompute: give plan or budget, not both`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import NamedTuple

from .loop_schedule import demand_proof
from .option_facts import EntryPoint, option_facts_of, options_with
from .recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from .selection import AUTO, Selection

EVERYWHERE = frozenset(EntryPoint)
IN_JIT = frozenset({EntryPoint.JIT})
WITH_PIPELINE = frozenset({EntryPoint.REWRITE, EntryPoint.JIT})
ONE_OF = "give {option} or {other}, not both"
BOTH_RECOMPUTE = "{option} and {other} both select the values to recompute: give one of them"
BOTH_SAVE = "{option} and {other} both select the values to save: give one of them"
IN_PIPELINE = "{other} is an option of the pass 'recompute': with {option}, give it there"
PLANNING = ("plan", "planner", "pipeline", "budget")
"""The options that each determine a plan."""
SELECTING = tuple(option.name for option in fields(Selection) if option_facts_of(option).selects)
"""The options that select the values to recompute. A plan replaces them."""
OF_PASS = (
    *(option.name for option in fields(Selection)),
    *(option.name for option in options_with(RecomputeOptions, EntryPoint.RECOMPUTE_PASS) if option.name != "strict"),
)
"""The options that, with a pipeline, must be given to its passes."""


class Conflict(NamedTuple):
    """A rule that no option of one group may be given together with an option of a second group.

    Attributes:
        options: The names of the options in the first group.
        others: The names of the options in the second group.
        message: The reason or the remedy, as a format string with the fields `option` and `other`.
        entry_points: The entry points to which the rule applies.
    """

    options: Collection[str]
    others: Collection[str]
    message: str
    entry_points: frozenset[EntryPoint]


CONFLICTS = (
    Conflict(PLANNING, PLANNING, ONE_OF, EVERYWHERE),
    Conflict(("plan", "planner"), ("segment_budgets",), BOTH_RECOMPUTE, EVERYWHERE),
    Conflict(("plan", "planner", "pipeline"), SELECTING, BOTH_RECOMPUTE, IN_JIT),
    Conflict(PLANNING, ("search",), BOTH_RECOMPUTE, IN_JIT),
    Conflict(("segment_budgets",), ("search",), BOTH_SAVE, IN_JIT),
    Conflict(("segments",), ("checkpoints",), ONE_OF, IN_JIT),
    Conflict(("pipeline",), OF_PASS, IN_PIPELINE, WITH_PIPELINE),
    Conflict(("pipeline",), ("measure", "workers", "merge_remat"), ONE_OF, frozenset({EntryPoint.REWRITE})),
)


def demand_agreement(options: RecomputeOptions, entry_point: EntryPoint, beside: Iterable[str] = ()) -> None:
    """Check that the given options do not exclude one another, that a time limit and a memory model come with a budget,
    and that the proof covers the loop schedule.

    Args:
        options: The options. An option is given if it differs from its default.
        entry_point: The interface that the user calls.
        beside: The names of given options that are not fields of `options`.

    Raises:
        ValueError: For options that exclude one another, and for a time limit or a memory model without a
            budget.
    """
    given = {*given_options(options), *beside}
    for conflict in CONFLICTS:
        pair = _given_pair(conflict, given)
        if entry_point in conflict.entry_points and pair is not None:
            option, other = map(entry_point.spelling, pair)
            raise ValueError(f"{entry_point.value}: {conflict.message.format(option=option, other=other)}")
    for name in ("time_limit", "memory_model") if "budget" not in given else ():
        if name in given and not (name == "memory_model" and _has_default_budget(entry_point, given)):
            limit, budget = map(entry_point.spelling, (name, "budget"))
            raise ValueError(
                f"{entry_point.value}: {limit} has no effect without {budget}: give {budget} as well, or omit {limit}"
            )
    if options.proof:
        demand_proof(options.loop_schedule)


def _has_default_budget(entry_point: EntryPoint, given: Collection[str]) -> bool:
    """Return whether a step without a budget option gets the budget `min`."""
    return entry_point is EntryPoint.PLAN_PASS and "segment_budgets" not in given


def given_options(options: RecomputeOptions) -> frozenset[str]:
    """Return the names of the options that differ from their defaults, including the options of the selection."""
    own = [option.name for option in fields(RecomputeOptions) if option.name != "selection"]
    given = {name for name in own if getattr(options, name) != getattr(DEFAULT_OPTIONS, name)}
    of_selection = [option.name for option in fields(Selection)]
    given |= {name for name in of_selection if getattr(options.selection, name) != getattr(AUTO, name)}
    if type(options.selection) is not Selection:  # The policy is a function.
        given.add("policy")
    return frozenset(given)


def _given_pair(conflict: Conflict, given: Collection[str]) -> tuple[str, str] | None:
    """Return the first pair of given options that exclude one another according to the rule; None if there is none."""
    options = [option for option in conflict.options if option in given]
    others = [other for other in conflict.others if other in given]
    return next(((option, other) for option in options for other in others if option != other), None)
