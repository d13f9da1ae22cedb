"""The keywords of `recompute.jax.jit`, checked before anything is lowered: its own options, and those for `jax.jit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import partial
from typing import Any, cast, get_type_hints

import jax
from xdsl.passes import ModulePass

from ...analysis.request.policies import saves_of
from ...driver.pipeline import passes_of
from ...options.loop_schedule import Loops, demand_proof, schedule_of
from ...options.offload_option import offload_named
from ...options.option_facts import EntryPoint, facts_of, options_with
from ...options.recompute_options import RecomputeOptions
from ...options.segment_budgets import budget_texts, read_budgets
from ...options.selection import Selection
from ...planning.plan_file import StepPlan, from_option
from ...rules.costs.cost import FLOPS, cost_named
from ...rules.costs.device import BadCost
from ...support.suggestions import did_you_mean
from ...transforms.phase import NoGradient
from .budget_option import checked_budget
from .keywords import OWN_KEYWORDS, Keywords
from .policies import selection_with

SELECTION = tuple(option.name for option in fields(Selection))
REWRITE = tuple(option.name for option in options_with(RecomputeOptions, EntryPoint.JIT) if option.name != "budget")
SELECTING = tuple(option.name for option in fields(Selection) if facts_of(option).selects)
"""The options that select what is recomputed; a plan replaces them."""


@dataclass(frozen=True)
class Options:
    """The options of one step.

    Attributes:
        rewrite: The options of the rewrite.
        measure: Whether the plain step is compiled and measured: True, False or "auto".
        search: The number of candidates to compile; 0 to choose by the model.
        jit: The keywords for `jax.jit`.
        budget: The budget as text; None without one.
        named: The names of values in the options `save` and `names`, by option.
    """

    rewrite: RecomputeOptions
    measure: bool | str
    search: int
    jit: Mapping[str, Any]
    budget: str | None = None
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def demands(self, error: Exception) -> bool:
        """Return whether to raise an error instead of running the plain step: with `strict`, budgets or a plan."""
        rewrite = self.rewrite
        is_planned = rewrite.plan is not None or rewrite.planner is not None or rewrite.pipeline is not None
        is_planned = is_planned or bool(rewrite.selection.segment_budgets)
        return rewrite.strict or self.budget is not None or (is_planned and not isinstance(error, NoGradient))


def options_of(keywords: Mapping[str, Any]) -> Options:
    """Check the keywords of `recompute.jax.jit`.

    Raises:
        TypeError: For an unknown keyword, and for a value of the wrong type.
        ValueError: For an invalid value, and for keywords that contradict one another.
    """
    demand_known(keywords, "recompute.jax.jit")
    ours = {name: value for name, value in keywords.items() if name in OWN_KEYWORDS}
    checked = {name: _CHECKS[name](name, value) for name, value in ours.items()}
    selection = selection_with(**_only(checked, SELECTION))
    _check_agreement(selection, checked)
    jit = {name: value for name, value in keywords.items() if name not in ours}
    rewrite = RecomputeOptions(selection, **_only(checked, REWRITE))
    named = _only(checked, ("save", "names"))
    return Options(rewrite, checked.get("measure", "auto"), checked.get("search", 0), jit, checked.get("budget"), named)


def demand_known(keywords: Iterable[str], caller: str, more: Iterable[str] = ()) -> None:
    """Raise `TypeError` for an unknown keyword.

    Args:
        keywords: The names to check.
        caller: The function that messages name.
        more: Names that the caller accepts in addition to those of `recompute.jax.jit`.
    """
    known = [*Keywords.__annotations__, *(name for name in _OF_JAX if name not in Keywords.__annotations__), *more]
    for name in keywords:
        if name not in known:
            raise TypeError(f"{caller} got an unexpected keyword argument '{name}'{did_you_mean(name, known)}")


def signature() -> inspect.Signature:
    """Return the signature of `recompute.jax.jit` for `help` and editors, with the type and default of each keyword."""
    options = RecomputeOptions()
    defaults = {option.name: getattr(options, option.name) for option in fields(options)}
    defaults |= {option.name: option.default for option in fields(Selection)}
    defaults |= {"measure": "auto", "search": 0, "segment_budgets": None} | {
        name: parameter.default for name, parameter in _OF_JAX.items()
    }
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
        for name, kind in get_type_hints(Keywords).items()
        if name in defaults
    ]
    function = inspect.Parameter("fn", inspect.Parameter.POSITIONAL_ONLY, default=None, annotation=Callable[..., Any])
    return inspect.Signature([function, *keywords], return_annotation=Any)


_OF_JAX: Mapping[str, inspect.Parameter] = {
    name: parameter
    for name, parameter in inspect.signature(cast(Any, jax).jit).parameters.items()
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY
}
"""The keywords of the installed version of `jax.jit`."""


def _only(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _check_agreement(selection: Selection, checked: Mapping[str, Any]) -> None:
    """Raise `ValueError` for options that contradict one another."""
    saves_of(selection)
    planned = [name for name in ("plan", "planner", "pipeline", "budget") if checked.get(name) is not None]
    if len(planned) > 1:
        raise ValueError(f"recompute.jax.jit: give {planned[0]}= or {planned[1]}=, not both")
    default = Selection()
    chosen = [name for name in SELECTING if getattr(selection, name) != getattr(default, name)]
    if planned and chosen and planned != ["budget"]:
        raise ValueError(f"recompute.jax.jit: {planned[0]}= selects what is recomputed, and so does {chosen[0]}=")
    if planned and checked.get("search"):
        raise ValueError(f"recompute.jax.jit: {planned[0]}= selects what is recomputed, and so does search=")
    if checked.get("time_limit") is not None and checked.get("budget") is None:
        raise ValueError("recompute.jax.jit: time_limit= limits the search for a budget: give budget= too")
    offload_named(checked.get("offload", ""), checked.get("cost", FLOPS))
    if selection.segment_budgets and checked.get("search"):
        raise ValueError("recompute.jax.jit: segment_budgets= selects what is saved, and so does search=")
    if checked.get("proof", True):
        demand_proof(checked.get("loops", True))
    if selection.checkpoints is not None and selection.segments != default.segments:
        raise ValueError("recompute.jax.jit: give segments= or checkpoints=, not both")


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
    if isinstance(value, str) or not callable(value):
        return _text(name, value)
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
    """Check the option `plan`. Raises `BadPlan`, a ValueError, for a text that is not a plan."""
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
        raise _wrong_type(name, "a text such as 'recompute-inline,recompute-mark', or a sequence of passes", value)
    return passes_of(value)  # pyright: ignore[reportUnknownArgumentType]


def _planner(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise _wrong_type(name, "a function, Graph -> Plan", value)
    return value


def _loops(name: str, value: Any) -> Loops:
    """Check the option `loops`. Raises `BadSchedule`, a ValueError."""
    if not isinstance(value, bool | str):
        raise _wrong_type(name, "True, False, or a text such as 'keep(50%)' or 'periodic(8)'", value)
    schedule_of(value)
    return value


def _segment_budgets(name: str, value: Any) -> tuple[str, ...]:
    """Return the budgets as a pass option spells them. Raises `BadSelection`, a ValueError."""
    if value is None:
        return ()
    if isinstance(value, str):
        read_budgets((value,))
        return (value,)
    if not isinstance(value, Mapping):
        raise _wrong_type(name, "a dict such as {'layer*': '30%'}, or a str", value)
    budgets = cast(Mapping[Any, Any], value)
    for pattern, budget in budgets.items():
        if not isinstance(pattern, str) or isinstance(budget, bool) or not isinstance(budget, str | int | float):
            raise _wrong_type(name, "a dict of str to a text, a share or bytes", budget)
    return budget_texts(budgets)


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


Check = Callable[[str, Any], Any]
"""A function of the name and the value of a keyword. It returns the value, converted, and raises `TypeError` and
`ValueError`."""
_BY_TYPE: Mapping[str, Check] = {
    "bool": _flag,
    "str": _text,
    "tuple[str, ...]": _texts,
    "tuple[str, ...] | None": _texts_or_none,
    "tuple[int, ...]": _numbers,
}
"""The checks of options, by the type of their field."""
_BY_NAME: Mapping[str, Check] = {
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
"""The checks of options with a syntax or a type of their own."""


def _check_of(option: Field[Any]) -> Check:
    facts = facts_of(option)
    if option.name in _BY_NAME:
        return _BY_NAME[option.name]
    return _BY_TYPE[str(option.type)] if facts.minimum is None else partial(_count, least=facts.minimum)


_CHECKS: Mapping[str, Check] = {
    **_BY_NAME,
    **{
        option.name: _check_of(option)
        for option in (*fields(Selection), *options_with(RecomputeOptions, EntryPoint.JIT))
    },
}
