"""Trace a step, and lower or run its calls by the trace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import jax
from jax.extend import source_info_util

from ....analysis.step.module_steps import ForwardOverReverse, NoGradient
from ....driver.rewrites.rewritten import Explanations
from ....support.progress import progress
from ..keywords.jit_options import JitOptions
from ..messages import why_plain
from ..messages.call_site_warnings import OptionsIgnored, warn
from .argument_hint import demand_keywords, hint, package_for
from .calls import Call
from .explain_traced import explain_traced
from .lowered import Lowered
from .nested import CallableStep, call_nested, nested_step
from .rewrite_lowered import lower_and_rewrite

# Operations get the location of the user's line, not of the line here that makes JAX trace the function.
source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""
_OUTER: ContextVar[str | None] = ContextVar("the step that is being traced", default=None)


@dataclass(frozen=True, eq=False)
class StepTracer:
    """Traces one step. It stores no results.

    Attributes:
        name: The name of the step.
        function: The step as the user wrote it.
        plain: The result of `jax.jit` of the step.
        options: The options of the step.
        package: The public package that messages and progress lines name.
    """

    name: str
    function: Callable[..., Any]
    plain: Any
    options: JitOptions
    package: str

    def trace(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> jax.stages.Traced:
        """Trace the plain step. Errors about its arguments suggest a remedy."""
        demand_keywords(self.name, self.function, kwargs)
        token = _OUTER.set(self.name)
        try:
            return self.plain.trace(*args, **kwargs)
        except TypeError as error:
            if (remedy := hint(self.name, args, kwargs)) is not None:
                error.args = (f"{error}\n{remedy}",)
            raise
        finally:
            _OUTER.reset(token)

    def lower(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
        """Lower and rewrite the step, and reword messages to name the functions of the step's package.

        Raises as `Jitted.lower` does.
        """
        in_terms = self._in_terms_for(args, kwargs)
        with progress(f"{self.package}: {self.name}"):
            try:
                lowered = lower_and_rewrite(self.name, self.trace(args, kwargs), self.options)
            except NoGradient as error:
                if isinstance(error, ForwardOverReverse):
                    raise
                refusal = NoGradient(error.operation, in_terms(error.reason))
                raise refusal.with_traceback(error.__traceback__) from error.__cause__
        reason = None if lowered.plain_reason is None else lowered.plain_reason.reworded(in_terms)
        return replace(lowered, plain_reason=reason, package=self.package)

    def lower_traced(
        self, step: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], **lowering: Any
    ) -> Lowered | jax.stages.Lowered:
        """Lower a traced call, as the method `lower` of `jax.stages.Traced` does.

        Args:
            step: The result of `recompute.jax.jit`.
            args, kwargs: The arguments of the call.
            **lowering: The keywords of `jax.stages.Traced.lower`. If any is given, JAX traces and lowers a function
                that calls the step.
        """
        if all(value is None for value in lowering.values()):
            return step.lower(*args, **kwargs)

        @wraps(self.function)
        def caller(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs)

        return _JAX.jit(caller, **self.options.jit).trace(*args, **kwargs).lower(**lowering)

    def explain(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], lowered: Lowered | None) -> Explanations:
        """Explain a call. `lowered`: the lowered step of the call; None if it was not lowered before."""
        in_terms = self._in_terms_for(args, kwargs)
        return explain_traced(self.name, self.trace(args, kwargs), self.options, lowered, in_terms)

    def run_inside_trace(
        self,
        call: Call,
        key: Hashable | None,
        steps: dict[Hashable, CallableStep | None],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Run the step while another transformation of JAX traces its caller.

        If the caller is another step of `recompute.jax.jit`, this step becomes a part of the caller.

        Args:
            call: The call.
            key: The key of the call; None if it has none.
            steps: The steps of earlier calls by their keys, to which the step of this call is added; None for a call
                that runs the plain step.
            args, kwargs: The arguments of the call.
        """
        if (outer := _OUTER.get()) is not None:
            if not self.options.are_default:
                warn(why_plain.options_are_ignored(self.name, outer), OptionsIgnored)
            return self.plain(*args, **kwargs)
        if key is None:
            return self.plain(*args, **kwargs)
        if key not in steps:
            steps[key] = nested_step(self.name, self.options, self.plain, call)
        step = steps[key]
        return self.plain(*args, **kwargs) if step is None else call_nested(step, call)

    def _in_terms_for(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[str], str]:
        """Return a function that rewords a message to name the functions of the step's package."""
        return partial(why_plain.in_terms_of, self.package, arguments_package=package_for(args, kwargs))
