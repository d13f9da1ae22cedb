"""The types of the options when they are given as keywords. A test compares the types with the fields of `Selection`
and `RecomputeOptions`.

The docstrings of these two classes describe the options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from xdsl.dialects.builtin import ModuleOp

from ..planning.plan_file import StepPlan
from .loop_schedule import Loops
from .recompute_options import Pipeline, Planner
from .selection import Selection


class SelectionKeywords(TypedDict, total=False):
    """The fields of `Selection`, except for `policy`. `recompute.jax.jit` also accepts a policy as an object."""

    segments: str
    segment_count: int
    checkpoints: Sequence[str] | None
    skip: Sequence[int]
    outputs: bool
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


class CommonKeywords(TypedDict, total=False):
    """The fields of `RecomputeOptions` that `recompute.rewrite` and `recompute.jax.jit` have in common."""

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


class RewriteKeywords(SelectionKeywords, CommonKeywords, total=False):
    """The options of `recompute.rewrite` as keywords."""

    selection: Selection
    policy: str
    target: str
    memory_model: str
    measure: Callable[[ModuleOp], int] | None
    workers: int
    merge_remat: bool
