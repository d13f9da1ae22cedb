"""Check the keywords of `recompute.jax.jit`, including those of `jax.jit`, before anything is lowered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast, get_type_hints

import jax

from ....analysis.request.policies import policy_of
from ....analysis.step.module_steps import NoGradient
from ....driver.option_checks import OPTION_CHECKS, OptionCheck, count_from_zero, wrong_type
from ....options.conflicts import demand_agreement
from ....options.option_facts import EntryPoint, options_with
from ....options.recompute_options import RecomputeOptions
from ....options.selection import Selection
from ....support.suggestions import unexpected_keyword
from .budget_option import checked_budget
from .keywords import OWN_KEYWORDS, JitKeywords
from .policy_option import names_of_policy, selection_with

_JIT = EntryPoint.JIT.value
SELECTION = tuple(option.name for option in fields(Selection))
REWRITE = tuple(option.name for option in options_with(RecomputeOptions, EntryPoint.JIT))


def _policy(name: str, value: Any) -> Any:
    if not isinstance(value, str) and not callable(value):
        raise wrong_type(name, "a str, a policy of jax.checkpoint_policies or a function", value)
    return value


def _measure(name: str, value: Any) -> bool | str:
    if not isinstance(value, bool) and value != "auto":
        raise ValueError(f"{name} must be 'auto', True or False, not {value!r}")
    return value


def _budget(_: str, value: Any) -> str | None:
    return None if value is None else checked_budget(value)


_CHECKS: Mapping[str, OptionCheck] = {
    **OPTION_CHECKS,
    "policy": _policy,
    "measure": _measure,
    "budget": _budget,
    "search": count_from_zero,
}
"""The check of each option, by option name. Four of these checks differ from those of `recompute.rewrite`."""


@dataclass(frozen=True, kw_only=True)
class JitOptions:
    """The options of one step.

    Attributes:
        rewrite: The options of the rewrite, with the budget and its time limit.
        measure: Whether the plain step is compiled and measured: True, False or "auto".
        search: The number of attempts to compile; 0 if the XLA:CPU model chooses among them.
        jit: The keywords for `jax.jit`.
        named: The names of values that the options `save`, `names` and `policy` contain, by option.
    """

    rewrite: RecomputeOptions
    measure: bool | str
    search: int
    jit: Mapping[str, Any]
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def budget(self) -> str | None:
        """The budget in the options of the rewrite."""
        return self.rewrite.budget

    @property
    def rewrite_without_budget(self) -> RecomputeOptions:
        """The options of a single rewrite. `recompute.jax.jit` searches within the budget itself, since it compiles the
        candidates."""
        return replace(self.rewrite, budget=None, time_limit=None)

    @property
    def are_default(self) -> bool:
        """Whether all options except the options of `jax.jit` have their default values."""
        return replace(self, jit={}) == options_of({})

    @property
    def chooses_segments(self) -> bool:
        """Whether the rewrite chooses the segments, because there is no budget, plan, planner or pipeline."""
        rewrite = self.rewrite
        return self.budget is None and rewrite.plan is rewrite.planner is rewrite.pipeline is None

    def without_names(self, unmatched: Collection[str]) -> JitOptions:
        """Return the options without the given names in the selection."""
        if not unmatched:
            return self
        selection = self.rewrite.selection
        names = tuple(name for name in selection.names if name not in unmatched)
        return replace(self, rewrite=replace(self.rewrite, selection=replace(selection, names=names)))

    def demands(self, error: Exception) -> bool:
        """Return whether the options (`strict`, a budget or a plan) require that this error is raised. Otherwise, the
        plain step runs.
        """
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
        # The messages for single keywords begin with `recompute.jax.jit`.
        if str(error).startswith(_JIT):
            error.args = (caller + str(error).removeprefix(_JIT),)
        raise


def _checked_options(keywords: Mapping[str, Any]) -> JitOptions:
    demand_known(keywords, _JIT)
    ours = {name: value for name, value in keywords.items() if name in OWN_KEYWORDS}
    checked = {name: _CHECKS[name](f"{_JIT}: {name}", value) for name, value in ours.items()}
    selection = selection_with(**_only(checked, SELECTION))
    policy_of(selection)
    rewrite = RecomputeOptions(selection, **_only(checked, REWRITE))
    demand_agreement(rewrite, EntryPoint.JIT, ["search"] if checked.get("search") else [])
    jit = {name: value for name, value in keywords.items() if name not in ours}
    named = _only(checked, ("save", "names"))
    if names := names_of_policy(checked.get("policy")):
        named["policy"] = names
    return JitOptions(
        rewrite=rewrite,
        measure=checked.get("measure", "auto"),
        search=checked.get("search", 0),
        jit=jit,
        named=named,
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
            raise unexpected_keyword(caller, name, known)


def signature() -> inspect.Signature:
    """Return the signature of `recompute.jax.jit`, with the types and defaults of keywords, for `help` and editors."""
    defaults = {option.name: option.default for option in (*fields(RecomputeOptions), *fields(Selection))}
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
