"""Checks of option values that are given as keywords, derived from the types of the option fields.

`recompute.rewrite` and `recompute.jax.jit` use these checks. The name that a check receives begins with the function
that the user called, as in `recompute.jax.jit: budget`. For plans, loop schedules and moves to the host, only the
Python type is checked here, because the constructor of `RecomputeOptions` parses their values for every interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import partial
from typing import Any, cast

from xdsl.passes import ModulePass

from ..options.loop_schedule import Loops
from ..options.option_facts import OptionFacts, option_facts_of
from ..options.recompute_options import RecomputeOptions
from ..options.segment_budgets import SegmentBudgets, budget_texts
from ..options.selection import Selection
from ..planning.plan_file import StepPlan
from ..rules.costs.cost import cost_named
from ..rules.costs.device import BadCost
from ..support.units import budget_text, parse_budget, python_number
from .pipelines.pipeline import passes_of

MIN_BYTES = 1024
"""The smallest integer that is accepted as a number of bytes. A smaller one was probably meant in a different unit."""


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type(name, "a str", value)
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


def _cost(name: str, value: Any) -> str:
    """Check the option `cost`. Raises `BadCost`, a `ValueError`."""
    try:
        cost_named(_text(name, value))
    except BadCost as error:
        raise BadCost(f"{name}: {error}") from error
    return value


def _text_or_empty(name: str, value: Any) -> str:
    return value if value == "" else _text(name, value)


def check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value)
    return value


def _count(name: str, value: Any, facts: OptionFacts) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(name, "an int", value)
    facts.demand_in_range(name, value)
    return value


def count_from_zero(name: str, value: Any) -> int:
    return _count(name, value, OptionFacts(minimum=0))


def _sequence(name: str, value: Any, check: Callable[[str, Any], Any], elements: str) -> tuple[Any, ...]:
    if isinstance(value, str) and elements == "str":
        raise TypeError(f"{name} must be a sequence of str, not str: give ({value!r},)")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise wrong_type(name, f"a sequence of {elements}", value)
    return tuple([check(name, element) for element in value])  # pyright: ignore[reportUnknownVariableType]


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return _sequence(name, value, _text, "str")


def _texts_or_none(name: str, value: Any) -> tuple[str, ...] | None:
    return None if value is None else _texts(name, value)


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    return _sequence(name, value, count_from_zero, "int")


def _plan(name: str, value: Any) -> str | tuple[StepPlan, ...] | None:
    if value is None or isinstance(value, str):
        return value
    return _sequence(name, value, _step_plan, "StepPlan, or its text")


def _step_plan(name: str, value: Any) -> StepPlan:
    if not isinstance(value, StepPlan):
        raise wrong_type(name, "the text of a plan or a sequence of StepPlan", value)
    return value


def _pipeline(name: str, value: Any) -> tuple[ModulePass, ...] | None:
    """Check the option `pipeline`. Raises `BadPipeline`, a ValueError."""
    if value is None:
        return None
    if not isinstance(value, str | Sequence):
        raise wrong_type(name, "a str such as 'recompute-inline,recompute-mark', or a sequence of passes", value)
    return passes_of(value)  # pyright: ignore[reportUnknownArgumentType]


def _planner(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise wrong_type(name, "a function from a Graph to a Plan", value)
    return value


def _loops(name: str, value: Any) -> Loops:
    if not isinstance(value, bool | str):
        raise wrong_type(name, "True, False, or a str such as 'keep(50%)' or 'periodic(8)'", value)
    return value


def _segment_budgets(name: str, value: Any) -> tuple[str, ...]:
    """Return segment budgets in the form of the pass option. Raises `BadSelection`, a ValueError."""
    if value is None:
        return ()
    if not isinstance(value, str | Mapping):
        raise wrong_type(name, "a dict such as {'layer*': '30%'}, or a str", value)
    if isinstance(value, Mapping):
        _check_limits(name, cast(Mapping[Any, Any], value))
    return budget_texts(cast(SegmentBudgets, value))


def _check_limits(name: str, budgets: Mapping[Any, Any]) -> None:
    for pattern, budget in budgets.items():
        if not isinstance(pattern, str):
            raise wrong_type(f"{name}: a key", "a str (a pattern of segment names)", pattern)
        if isinstance(number := python_number(budget), bool) or not isinstance(number, str | int | float):
            raise wrong_type(f"{name}: the limit of '{pattern}'", "a str, a share (float) or bytes (int)", budget)


def _budget(name: str, value: Any) -> str | None:
    if value is None:
        return None
    demand_plausible_budget(name, value)
    try:
        text = budget_text(value)
        parse_budget(text, 1)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return text


def demand_plausible_budget(name: str, value: Any) -> None:
    """Raise `TypeError` for a budget of the wrong type, and `ValueError` for an int that is implausibly small for a
    number of bytes."""
    value = python_number(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong_type(name, "a str, a share (float) or bytes (int)", value)
    if isinstance(value, int) and 0 < value < MIN_BYTES:
        raise ValueError(f"{name}={value} is a number of bytes; did you mean '{value}GiB'? (for bytes: '{value}B')")


def _selection(name: str, value: Any) -> Selection:
    if not isinstance(value, Selection):
        raise wrong_type(name, "a recompute.Selection", value)
    return value


def _function(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise wrong_type(name, "a function from a module to a number of bytes", value)
    return value


def _seconds(name: str, value: Any, facts: OptionFacts) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(name, "a number of seconds", value)
    facts.demand_in_range(name, value)
    return float(value)


def wrong_type(name: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {expected}, not {type(value).__name__}")


OptionCheck = Callable[[str, Any], Any]
"""A function that checks a keyword, given its name and value.

It returns the converted value, and raises `TypeError` or `ValueError`.
"""
_BY_TYPE: Mapping[str, OptionCheck] = {
    "bool": check_flag,
    "str": _text,
    "tuple[str, ...]": _texts,
    "tuple[str, ...] | None": _texts_or_none,
    "tuple[int, ...]": _numbers,
}
"""The check for each type that an option field may have."""
_BY_NAME: Mapping[str, OptionCheck] = {
    "segment_budgets": _segment_budgets,
    "budget": _budget,
    "cost": _cost,
    "loops": _loops,
    "measure": _function,
    "memory_model": _text_or_empty,
    "offload": _text_or_empty,
    "pipeline": _pipeline,
    "plan": _plan,
    "planner": _planner,
    "selection": _selection,
}
"""The checks of options with a special syntax or type, by option name."""


def _check_of(option: Field[Any]) -> OptionCheck:
    facts = option_facts_of(option)
    if option.name in _BY_NAME:
        return _BY_NAME[option.name]
    if facts.is_duration:
        return partial(_seconds, facts=facts)
    return _BY_TYPE[str(option.type)] if facts.minimum is None else partial(_count, facts=facts)


OPTION_CHECKS: Mapping[str, OptionCheck] = {
    **_BY_NAME,
    **{option.name: _check_of(option) for option in (*fields(Selection), *fields(RecomputeOptions))},
}
"""The check of each option of `recompute.rewrite`, by option name."""
