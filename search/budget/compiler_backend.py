"""The interface between a budget search that compiles candidates and the compiler that it uses."""

from __future__ import annotations

from dataclasses import dataclass
from logging import Logger, getLogger
from typing import Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...options.recompute_options import RecomputeOptions
from ...planning.plan_file import StepPlan
from ...planning.solvers.result import Stop
from ...support.progress import ProgressLine
from ..candidate_plans.pool import ModuleCandidate, Pool

_LOG = getLogger("recompute.search")


class CandidateRewrite(Protocol):
    """The properties of a candidate's rewrite from which its extra work is computed."""

    @property
    def plans(self) -> tuple[StepPlan, ...]: ...
    @property
    def copies(self) -> int: ...
    @property
    def extra_flops(self) -> int: ...


R = TypeVar("R", bound=CandidateRewrite)
"""The type of the rewrite by a candidate."""
T = TypeVar("T")
"""The type of a compiled step."""


class CompilerBackend(Protocol[R, T]):
    """The rewriter and the compiler of one step with one set of options.

    Only the JAX frontend implements this interface. The search under Inductor
    (`frontends/torch/inductor/budget_search.py`) has candidates without plans, and shares only `Rounds` with this
    search.
    """

    @property
    def key(self) -> str:
        """A string that is equal for backends that measure the same sizes."""
        ...

    def pool(self, stop: Stop) -> Pool:
        """Return the candidates of the step. `stop`: a predicate that ends the planning of more candidates."""
        ...

    def rewrite(self, candidate: ModuleCandidate | None) -> R | None:
        """Apply the plans of a candidate; if it is None, apply the choice that is made without a budget. Return None if
        the plans do not apply, or if nothing is recomputed."""
        ...

    def compile(self, rewritten: R, is_final: bool) -> T:
        """Compile a rewritten step. `is_final`: whether the result must be ready to run; otherwise, it is compiled only
        to measure it."""
        ...

    def measured_bytes(self, compiled: T) -> int:
        """Return the temporaries of a compiled step in bytes."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """The inputs of the search for one step with one set of options.

    Attributes:
        name: The name of the step.
        module: The plain step, with its marks.
        options: The options of the rewrite.
        budget: The budget as the user wrote it.
        plain_bytes: The temporaries of the plain step in bytes.
        limit_bytes: The bytes that the budget leaves for temporaries; None for the budget `min`.
        line: The line on which progress is shown.
        stop: A predicate that ends the search with the best candidate so far.
        time_limit: The seconds after which the search ends; None for no limit.
        log: The logger that reports each compiled candidate.
    """

    name: str
    module: ModuleOp
    options: RecomputeOptions
    budget: str
    plain_bytes: int
    limit_bytes: int | None
    line: ProgressLine
    stop: Stop
    time_limit: float | None = None
    log: Logger = _LOG
