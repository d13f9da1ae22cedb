"""The types of the keywords of `recompute.jax.jit`: the fields of its options, and the keywords of `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ....options.loop_schedule import Loops
from ....options.recompute_options import Pipeline, Planner
from ....planning.plan_file import StepPlan


class SelectionKeywords(TypedDict, total=False):
    """The fields of `Selection`."""

    segments: str
    segment_count: int
    checkpoints: Sequence[str] | None
    skip: Sequence[int]
    outputs: bool
    policy: str | Callable[..., Any]
    names: Sequence[str]
    save: Sequence[str]
    exclude: Sequence[str]
    segment_budgets: str | Mapping[str, str | float] | None
    collectives: bool
    preserve_rng_state: bool
    repeatable: Sequence[str]
    primal_results: Sequence[int]
    primal_values: Sequence[str]
    cotangents: Sequence[int]


class RewriteKeywords(TypedDict, total=False):
    """The fields of `RecomputeOptions` that apply to a step that JAX compiles."""

    copies: int
    stagger: bool
    calls: bool
    plan: str | Sequence[StepPlan] | None
    planner: Planner | None
    budget: str | float | None
    time_limit: float | None
    strict: bool
    attempts: int
    proof: bool
    loops: Loops
    cost: str
    offload: str
    pipeline: Pipeline | None


class CompilationKeywords(TypedDict, total=False):
    """The options that determine which variants of the step are compiled."""

    measure: bool | str
    search: int


class JaxJitKeywords(TypedDict, total=False):
    """The keywords of `jax.jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None


class JitKeywords(SelectionKeywords, RewriteKeywords, CompilationKeywords, JaxJitKeywords, total=False):
    """The keywords of `recompute.jax.jit`."""


OWN_KEYWORDS = frozenset(
    name for keywords in (SelectionKeywords, RewriteKeywords, CompilationKeywords) for name in keywords.__annotations__
)
"""The keywords that `jax.jit` lacks."""
