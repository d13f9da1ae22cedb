"""Checks of the option values of `recompute.jax.jit`, derived from the types of the option fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import partial
from typing import Any, cast

from xdsl.passes import ModulePass

from ....driver.pipeline import passes_of
from ....options.loop_schedule import LoopSchedule, schedule_of
from ....options.option_facts import EntryPoint, option_facts_of, options_with
from ....options.recompute_options import RecomputeOptions
from ....options.segment_budgets import SegmentBudgets, budget_texts
from ....options.selection import Selection
from ....planning.plan_file import StepPlan, from_option
from ....rules.costs.cost import cost_named
from ....rules.costs.device import BadCost
from .budget_option import checked_budget


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, "a str", value)
    if not value:
        raise ValueError(f"recompute.jax.jit: {name} must not be empty")
    return value


def _cost(name: str, value: Any) -> str:
    """Check the option `cost`. Raises `BadCost`, a `ValueError`."""
    try:
        cost_named(_text(name, value))
    except BadCost as error:
        raise BadCost(f"recompute.jax.jit: {name}: {error}") from error
    return value


def _offload(name: str, value: Any) -> str:
    return value if value == "" else _text(name, value)


def _policy(name: str, value: Any) -> Any:
    if not isinstance(value, str) and not callable(value):
        raise _wrong_type(name, "a str, a policy of jax.checkpoint_policies or a function", value)
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(name, "True or False", value)
    return value


def _count(name: str, value: Any, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(name, "an int", value)
    if value < least:
        raise ValueError(f"recompute.jax.jit: {name} must be at least {least}, not {value}")
    return value


def _count_from_zero(name: str, value: Any) -> int:
    return _count(name, value, least=0)


def _sequence(name: str, value: Any, check: Callable[[str, Any], Any], elements: str) -> tuple[Any, ...]:
    if isinstance(value, str) and elements == "str":
        raise TypeError(f"recompute.jax.jit: {name} must be a sequence of str, not str: give ({value!r},)")
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong_type(name, f"a sequence of {elements}", value)
    return tuple([check(name, element) for element in value])  # pyright: ignore[reportUnknownVariableType]


def _texts(name: str, value: Any) -> tuple[str, ...]:
    return _sequence(name, value, _text, "str")


def _texts_or_none(name: str, value: Any) -> tuple[str, ...] | None:
    return None if value is None else _texts(name, value)


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    return _sequence(name, value, _count_from_zero, "int")


def _plan(name: str, value: Any) -> tuple[StepPlan, ...] | None:
    """Check the option `plan`. Raises `BadPlan`, a ValueError, for a string that is not a plan."""
    if value is None:
        return None
    return from_option(value) if isinstance(value, str) else _sequence(name, value, _step_plan, "StepPlan, or its text")


def _step_plan(name: str, value: Any) -> StepPlan:
    if not isinstance(value, StepPlan):
        raise _wrong_type(name, "the text of a plan or a sequence of StepPlan", value)
    return value


def _pipeline(name: str, value: Any) -> tuple[ModulePass, ...] | None:
    """Check the option `pipeline`. Raises `BadPipeline`, a ValueError."""
    if value is None:
        return None
    if not isinstance(value, str | Sequence):
        raise _wrong_type(name, "a str such as 'recompute-inline,recompute-mark', or a sequence of passes", value)
    return passes_of(value)  # pyright: ignore[reportUnknownArgumentType]


def _planner(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise _wrong_type(name, "a function from a Graph to a Plan", value)
    return value


def _loops(name: str, value: Any) -> LoopSchedule:
    """Check the option `loops`. Raises `BadSchedule`, a ValueError."""
    if not isinstance(value, bool | str):
        raise _wrong_type(name, "True, False, or a str such as 'keep(50%)' or 'periodic(8)'", value)
    return schedule_of(value)


def _segment_budgets(name: str, value: Any) -> tuple[str, ...]:
    """Return segment budgets in the form of the pass option. Raises `BadSelection`, a ValueError."""
    if value is None:
        return ()
    if not isinstance(value, str | Mapping):
        raise _wrong_type(name, "a dict such as {'layer*': '30%'}, or a str", value)
    if isinstance(value, Mapping):
        _check_limits(name, cast(Mapping[Any, Any], value))
    return budget_texts(cast(SegmentBudgets, value))


def _check_limits(name: str, budgets: Mapping[Any, Any]) -> None:
    for pattern, budget in budgets.items():
        if not isinstance(pattern, str):
            raise _wrong_type(f"a key of {name}", "a str, the pattern of segment names", pattern)
        if isinstance(budget, bool) or not isinstance(budget, str | int | float):
            raise _wrong_type(f"the limit of '{pattern}' in {name}", "a str, a share (float) or bytes (int)", budget)


def _measure(name: str, value: Any) -> bool | str:
    if not isinstance(value, bool) and value != "auto":
        raise ValueError(f"recompute.jax.jit: {name} must be 'auto', True or False, not {value!r}")
    return value


def _budget(name: str, value: Any) -> str | None:
    return None if value is None else checked_budget(value)


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(name, "a number of seconds", value)
    if not value > 0:
        raise ValueError(f"recompute.jax.jit: {name} must be a positive number of seconds, not {value}")
    return float(value)


def _wrong_type(name: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"recompute.jax.jit: {name} must be {expected}, not {type(value).__name__}")


OptionCheck = Callable[[str, Any], Any]
"""A function that checks a keyword, given its name and value.

It returns the converted value, and raises `TypeError` or `ValueError`.
"""
_BY_TYPE: Mapping[str, OptionCheck] = {
    "bool": _flag,
    "str": _text,
    "tuple[str, ...]": _texts,
    "tuple[str, ...] | None": _texts_or_none,
    "tuple[int, ...]": _numbers,
}
"""The check for each type of an option's field."""
_BY_NAME: Mapping[str, OptionCheck] = {
    "policy": _policy,
    "segment_budgets": _segment_budgets,
    "budget": _budget,
    "cost": _cost,
    "loops": _loops,
    "measure": _measure,
    "offload": _offload,
    "pipeline": _pipeline,
    "plan": _plan,
    "planner": _planner,
    "search": _count_from_zero,
    "time_limit": _seconds,
}
"""The checks of options with a special syntax or type, by option name."""


def _check_of(option: Field[Any]) -> OptionCheck:
    facts = option_facts_of(option)
    if option.name in _BY_NAME:
        return _BY_NAME[option.name]
    return _BY_TYPE[str(option.type)] if facts.minimum is None else partial(_count, least=facts.minimum)


OPTION_CHECKS: Mapping[str, OptionCheck] = {
    **_BY_NAME,
    **{
        option.name: _check_of(option)
        for option in (*fields(Selection), *options_with(RecomputeOptions, EntryPoint.JIT))
    },
}
"""The check of each option, by option name."""
