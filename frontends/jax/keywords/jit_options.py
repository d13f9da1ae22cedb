"""The keywords of `recompute.jax.jit`, checked before anything is lowered: its own options, and the options of
`jax.jit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast, get_type_hints

import jax

from ....analysis.request.policies import saves_of
from ....options.loop_schedule import demand_proof
from ....options.offload_option import parse_offload
from ....options.option_facts import EntryPoint, option_facts_of, options_with
from ....options.recompute_options import RecomputeOptions
from ....options.selection import Selection
from ....rules.costs.cost import FLOPS
from ....support.suggestions import did_you_mean
from ....transforms.phase import NoGradient
from .keywords import OWN_KEYWORDS, JitKeywords
from .option_checks import OPTION_CHECKS
from .policy_option import names_of_policy, selection_with

_JIT = "recompute.jax.jit"
SELECTION = tuple(option.name for option in fields(Selection))
REWRITE = tuple(option.name for option in options_with(RecomputeOptions, EntryPoint.JIT) if option.name != "budget")
SELECTING = tuple(option.name for option in fields(Selection) if option_facts_of(option).selects)
"""The options that select the values to recompute; a plan replaces them."""


@dataclass(frozen=True)
class JitOptions:
    """The options of one step.

    Attributes:
        rewrite: The options of the rewrite.
        measure: Whether the plain step is compiled and measured: True, False or "auto".
        search: The number of attempts to compile; 0 to choose by the model.
        jit: The keywords for `jax.jit`.
        budget: The budget as text; None without one.
        named: The names of values in the options `save`, `names` and `policy`, by option.
    """

    rewrite: RecomputeOptions
    measure: bool | str
    search: int
    jit: Mapping[str, Any]
    budget: str | None = None
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def are_default(self) -> bool:
        """Whether all options except the options of `jax.jit` have their defaults."""
        return replace(self, jit={}) == options_of({})

    @property
    def chooses_segments(self) -> bool:
        """Whether the rewrite chooses the segments, without a budget, a plan, a planner or a pipeline."""
        rewrite = self.rewrite
        return self.budget is None and rewrite.plan is rewrite.planner is rewrite.pipeline is None

    def demands(self, error: Exception) -> bool:
        """Return whether to raise an error instead of running the plain step: with `strict`, budgets or a plan."""
        rewrite = self.rewrite
        is_planned = rewrite.plan is not None or rewrite.planner is not None or rewrite.pipeline is not None
        is_planned = is_planned or bool(rewrite.selection.segment_budgets)
        return rewrite.strict or self.budget is not None or (is_planned and not isinstance(error, NoGradient))


def options_of(keywords: Mapping[str, Any], caller: str = _JIT) -> JitOptions:
    """Check the keywords of `recompute.jax.jit`.

    Args:
        keywords: The keywords.
        caller: The function that messages name.

    Raises:
        TypeError: For an unknown keyword, and for a value of the wrong type.
        ValueError: For an invalid value, and for keywords that contradict one another.
    """
    try:
        return _checked_options(keywords)
    except (TypeError, ValueError) as error:
        # The checks of single keywords name `recompute.jax.jit`.
        if str(error).startswith(_JIT):
            error.args = (caller + str(error).removeprefix(_JIT),)
        raise


def _checked_options(keywords: Mapping[str, Any]) -> JitOptions:
    demand_known(keywords, _JIT)
    ours = {name: value for name, value in keywords.items() if name in OWN_KEYWORDS}
    checked = {name: OPTION_CHECKS[name](name, value) for name, value in ours.items()}
    selection = selection_with(**_only(checked, SELECTION))
    _check_agreement(selection, checked)
    jit = {name: value for name, value in keywords.items() if name not in ours}
    rewrite = RecomputeOptions(selection, **_only(checked, REWRITE))
    named = _only(checked, ("save", "names"))
    if names := names_of_policy(checked.get("policy")):
        named["policy"] = names
    return JitOptions(
        rewrite, checked.get("measure", "auto"), checked.get("search", 0), jit, checked.get("budget"), named
    )


def demand_known(keywords: Iterable[str], caller: str, more: Iterable[str] = ()) -> None:
    """Raise `TypeError` for an unknown keyword.

    Args:
        keywords: The names to check.
        caller: The function that messages name.
        more: Names that the caller accepts in addition to the options of `recompute.jax.jit`.
    """
    known = [
        *JitKeywords.__annotations__,
        *(name for name in _OF_JAX if name not in JitKeywords.__annotations__),
        *more,
    ]
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
        for name, kind in get_type_hints(JitKeywords).items()
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


def _both_select(option: str, other: str, verb: str) -> str:
    """Return the error for two options that select the values to recompute, or to save."""
    return f"recompute.jax.jit: {option}= and {other}= both select the values to {verb}: give one of them"


def _check_agreement(selection: Selection, checked: Mapping[str, Any]) -> None:
    """Raise `ValueError` for options that contradict one another."""
    saves_of(selection)
    planned = [name for name in ("plan", "planner", "pipeline", "budget") if checked.get(name) is not None]
    if len(planned) > 1:
        raise ValueError(f"recompute.jax.jit: give {planned[0]}= or {planned[1]}=, not both")
    default = Selection()
    chosen = [name for name in SELECTING if getattr(selection, name) != getattr(default, name)]
    if planned and chosen and planned != ["budget"]:
        raise ValueError(_both_select(planned[0], chosen[0], "recompute"))
    if planned and checked.get("search"):
        raise ValueError(_both_select(planned[0], "search", "recompute"))
    if checked.get("time_limit") is not None and checked.get("budget") is None:
        raise ValueError("recompute.jax.jit: time_limit= limits the search for a budget: give budget= too")
    parse_offload(checked.get("offload", ""), checked.get("cost", FLOPS))
    if selection.segment_budgets and checked.get("search"):
        raise ValueError(_both_select("segment_budgets", "search", "save"))
    if checked.get("proof", True):
        demand_proof(checked.get("loops", True))
    if selection.checkpoints is not None and selection.segments != default.segments:
        raise ValueError("recompute.jax.jit: give segments= or checkpoints=, not both")
