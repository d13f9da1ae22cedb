"""`recompute.jax.jit`: lower a step with JAX, rewrite it, and compile it with JAX, once for each combination of
argument types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import jax
from jax.extend import source_info_util
from typing_extensions import Unpack

from ...driver.rewrites.rewritten import Explanations
from ...support.progress import progress
from ...support.remarks import Remark, Topic
from .internals import private
from .keywords.jit_options import JitOptions, options_of, signature
from .keywords.keywords import JitKeywords
from .keywords.off_switch import RAN_SWITCHED_OFF, is_disabled
from .lowering.calls import Call, key_of
from .lowering.lowered import Lowered
from .lowering.nested import CallableStep
from .lowering.rewrite_lowered import unchanged_step
from .lowering.step_tracer import StepTracer
from .messages import why_plain
from .messages.call_site_warnings import MarkWithoutEffect, warn
from .messages.lost_updates import reject_lost_updates
from .messages.no_effect import no_effect_warning
from .messages.tracebacks import shorten, shortened
from .reports.step_report import Report

P = ParamSpec("P")
R = TypeVar("R")
_JAX: Any = jax
"""Typed as `Any`, because the types of JAX are incomplete."""
# Operations get the location of the user's line, not of the line here that makes JAX trace the function.
source_info_util.register_exclusion(__file__)


@dataclass
class _Results(Generic[P, R]):
    """The stored results of a step: by the key of a call (`key_of`), and for `within`, by the budget."""

    compiled: dict[Hashable, jax.stages.Compiled] = field(default_factory=dict[Hashable, jax.stages.Compiled])
    lowered: dict[Hashable, Lowered] = field(default_factory=dict[Hashable, Lowered])
    explained: dict[Hashable, Explanations] = field(default_factory=dict[Hashable, Explanations])
    nested: dict[Hashable, CallableStep | None] = field(default_factory=dict[Hashable, "CallableStep | None"])
    """The steps of calls that another transformation traces; None if the plain step runs there."""
    within: dict[str, Jitted[P, R]] = field(default_factory=dict[str, "Jitted[P, R]"])


class Jitted(Generic[P, R]):
    """The result of `recompute.jax.jit`: it is called like the function, and stores the steps compiled for its
    calls."""

    __name__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self, function: Callable[P, R], options: JitOptions, jitted: Any = None, package: str = why_plain.PACKAGE
    ):
        """Wrap a function.

        Args:
            function: The step.
            options: The checked options.
            jitted: The result of `jax.jit` that is lowered and run; the default is `jax.jit` of the function.
            package: The package that progress lines name.
        """
        self._options = options
        name = str(getattr(function, "__name__", type(function).__name__))
        checked = reject_lost_updates(function, name) if callable(function) else function
        self._plain: Any = _JAX.jit(checked, **options.jit) if jitted is None else jitted
        self._statics = private.statics_of(self._plain)
        self._name = name
        self._package = package
        self._tracer = StepTracer(name, function, self._plain, options, package)
        self._results = _Results[P, R]()
        self._ran_switched_off = False
        self._dispatch: Any = self._new_dispatch()
        update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the step. Warns `NothingSaved` if the plain step runs, and `MarkWithoutEffect` for marks.

        Raises the errors of `jax.jit` and of `lower`.
        """
        try:
            if _JAX.config.jax_disable_jit:
                return self._plain(*args, **kwargs)
            if is_disabled():
                self._ran_switched_off = True
                return self._plain(*args, **kwargs)
            try:
                if self._dispatch is None:
                    return cast(R, self._miss(*args, **kwargs)[0])
                return cast(R, self._dispatch(*args, **kwargs))
            except Exception as error:
                private.raise_invalid_values(error, self._plain.__wrapped__, args, kwargs)
                raise
        except Exception as error:
            shorten(error)
            raise

    def _new_dispatch(self) -> Any:
        """Return an empty dispatch cache for compiled calls; None if the installed JAX does not offer one."""
        return private.dispatcher(self._name, self._plain.__wrapped__, self._miss, self._statics)

    def _miss(self, *args: Any, **kwargs: Any) -> private.Missed:
        """Compile and run a call that misses JAX's dispatch cache."""
        call = Call.of(self._statics, args, kwargs)
        key = key_of(call)
        if call.is_traced:
            return self._tracer.run_inside_trace(call, key, self._results.nested, args, kwargs), None, False
        compiled = None if key is None else self._results.compiled.get(key)
        if compiled is None:
            with progress(f"{self._package}: {self._name}") as line:
                line.set_phase("tracing")
                lowered = self.lower_quietly(*args, **kwargs)
                choice = lowered.compiled_step
            if (warning := lowered.warning) is not None:
                warn(warning)
            if choice.rewritten is not None:
                _warn_of_request(self._name, (*choice.rewritten.remarks, *lowered.unused_marks))
            compiled = choice.compiled
            if key is not None:
                self._results.compiled[key] = compiled
        return private.call_compiled(compiled, call.args, call.kwargs)

    def __repr__(self) -> str:
        count = len(self._results.lowered)
        summaries = [summary for lowered in self._results.lowered.values() if (summary := lowered.summary) is not None]
        last = "the last compiled one: " if count > 1 else ""
        verdict = f": {last}{summaries[-1]}" if summaries else ""
        calls = f"{count or 'no'} call{'' if count == 1 else 's'}"
        plain = f"; {RAN_SWITCHED_OFF}" if self._ran_switched_off else ""
        return f"<recompute.jax.jit({self._name}), lowered for {calls}{verdict}{plain}>"

    @property
    def package(self) -> str:
        """The public package that messages and progress lines name, such as `recompute.nnx`."""
        return self._package

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return a bound method if the step is accessed through an instance."""
        return self if instance is None else MethodType(self, instance)

    @shortened
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower and rewrite the step. Warns `NothingSaved` if nothing is recomputed, and `MarkWithoutEffect` for marks.

        If the choice between the plain and the rewritten step is still open, because the plain step may need less
        memory or has its own `jax.checkpoint`, `compile` gives the warning instead.

        Args:
            *args: The arguments of the step, arrays or `jax.ShapeDtypeStruct`.
            **kwargs: The keyword arguments of the step.

        Returns:
            The lowered step. It has `compile`, `as_text`, the remarks and the rewrite.

        Raises:
            ValueError: For a selection that does not apply to the step.
            Refusal: For a budget that no candidate meets, and with `strict` or a plan, for a step that cannot be
                rewritten.
            NotProved: With `strict` or a plan, for a result that is not proved equal.
        """
        lowered = self.lower_quietly(*args, **kwargs)
        if lowered.is_surely_plain and lowered.why and self._options.budget is None and not is_disabled():
            warn(lowered.why)
        if lowered.why is None and lowered.rewritten is not None:
            _warn_of_request(self._name, (*lowered.rewritten.remarks, *lowered.unused_marks))
        return lowered

    def lower_quietly(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower as `lower` does, but give no warning. The attribute `why` of the result holds the text of the warning.

        Calls, `report` and `lower` share the result for arguments of equal types.
        """
        if is_disabled():
            return unchanged_step(self._name, self._plain.lower(*args, **kwargs), self._options)
        key = key_of(Call.of(self._statics, args, kwargs))
        if key is None or key not in self._results.lowered:
            lowered = self._tracer.lower(args, kwargs)
            if key is None:
                return lowered
            self._results.lowered[key] = lowered
        return self._results.lowered[key]

    def within(self, budget: str) -> Jitted[P, R]:
        """Return a step like this one, with a budget in place of its plan, planner or pipeline.

        All calls with the same budget return the same step, so that a repeated request searches and compiles nothing.
        """
        if budget == self._options.budget:
            return self
        if budget not in self._results.within:
            rewrite = replace(self._options.rewrite, plan=None, planner=None, pipeline=None, budget=budget)
            options = replace(self._options, rewrite=rewrite, search=0)
            self._results.within[budget] = Jitted(self.__wrapped__, options, self._plain, self._package)
        return self._results.within[budget]

    @shortened
    def explain(self, *args: Any, **kwargs: Any) -> Explanations:
        """Explain which values the step saves, and the effect of recomputing each segment.

        The segments are the named scopes, or other segments if a call of the step would choose them. For a step on
        several devices, bytes are counted for one device. To measure its temporaries, the plain step is compiled once
        for all explanations and reports. Calls with arguments of equal types share the result.

        Raises `Refusal` for a step without a gradient.
        """
        key = key_of(Call.of(self._statics, args, kwargs))
        if key is None:
            return self._tracer.explain(args, kwargs, None)
        if key not in self._results.explained:
            self._results.explained[key] = self._tracer.explain(args, kwargs, self._results.lowered.get(key))
        return self._results.explained[key]

    @shortened
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Compile the plain and the rewritten step, and report on their memory and work.

        The report also lists the saved values, with reasons, and the recomputed operations.
        """
        with progress(f"{self._package}: {self._name}") as line:
            line.set_phase("tracing")
            return self.lower_quietly(*args, **kwargs).comparison

    @shortened
    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced:
        """Trace as `jax.jit` does. Errors about unknown keywords, and about modules that `jax.jit` rejects, suggest a
        remedy.

        The method `lower` of the result returns what `Jitted.lower` returns. With `lowering_platforms=`, and under
        `jax.export`, it returns JAX's own `Lowered` of the rewritten step, which is not compiled and not measured.
        """
        traced = self._tracer.trace(args, kwargs)
        # The arguments of steps of flax and equinox are their internal state, so they are not traced a second time.
        if is_disabled() or self._package != why_plain.PACKAGE:
            return traced
        return private.with_lower(traced, partial(self._tracer.lower_traced, self, args, kwargs))

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate shapes as `jax.jit` does."""
        return self._plain.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Delete the compiled steps, as `jax.jit` does."""
        self._results = _Results[P, R]()
        self._ran_switched_off = False
        self._plain.clear_cache()
        self._dispatch = self._new_dispatch()


def _warn_of_request(name: str, remarks: Iterable[Remark]) -> None:
    """Warn about the marks and options of a step that is rewritten: `MarkWithoutEffect` if some have no effect,
    `NothingSaved` if the copies that marks and options demand raise a peak.
    """
    remarks = list(remarks)
    for remark in remarks:
        if remark.topic is Topic.PEAK_RAISED:
            warn(f"{name}: {remark.reason}")
    if (words := no_effect_warning(name, remarks)) is not None:
        warn(words, MarkWithoutEffect)


@overload
def jit(fn: Callable[P, R], /, **keywords: Unpack[JitKeywords]) -> Jitted[P, R]: ...
@overload
def jit(**keywords: Unpack[JitKeywords]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@shortened
def jit(*fn: Any, **keywords: Any) -> Any:
    """Wrap a training step, including its gradient, as `jax.jit` does, so that it needs less memory.

    It is proved that the rewritten step computes each result by the same operations on the same values as the plain
    step. Therefore, the results are equal bit for bit if operations run one by one. Compiled code may round the two
    steps differently, as with `jax.checkpoint` (docs/bits.md).

    Args:
        fn: The step. Without it, `jit` is a decorator.
        segments, policy, save, ...: The fields of `recompute.Selection`, which select the operations to recompute.
            A policy may be one of `jax.checkpoint_policies`, or a function.
        budget: A limit on memory, met with the least extra work: bytes of the device (`"8GiB"` or an int), a share of
            the temporaries of the plain step (`0.5` or `"50%"`), `"min"`, or `"device"` for the free memory of the
            device. Candidates are compiled until the bytes that XLA reports are within the budget.
        time_limit: Seconds after which the search for a budget ends with the best plan so far. The time starts when the
            compilation of the plain step starts. A call may take several times as long: a rewrite or a compilation that
            has begun is completed, and the plain step, one candidate and the step that runs are always compiled.
        plan, planner, pipeline: A plan of `recompute.rewrite` or its text, a function Graph -> Plan, or passes by
            name or as objects. Each replaces the selection. At most one of these and `budget` may be given.
        copies, loops, cost, proof, ...: As in `recompute.RecomputeOptions`. On a CPU, whose memory is host memory,
            `offload` has no effect, and a remark reports that.
        measure: Whether to also compile the plain step, and run the variant with fewer bytes of temporaries:
            `True`, `False`, or `"auto"`, which does so if the predicted memory reduction is small. Unlike `measure` in
            `RecomputeOptions`, it is not a function.
        search: Without a budget: the number of attempts to compile. The attempt with the fewest bytes of temporaries
            runs; FLOPs break ties. With 0, the XLA:CPU model chooses.
        static_argnums, donate_argnums, ...: The keywords of `jax.jit`.

    Returns:
        A function like the result of `jax.jit`, with `lower`, `trace`, `report` and `explain`.

    Raises:
        TypeError: For a keyword of the wrong type, before anything is compiled.
        ValueError: For a keyword with an invalid value, and for keywords that contradict one another.
        Refusal: When called, for a budget that no candidate meets.

    Example:
        >>> step = recompute.jax.jit(train_step, donate_argnums=0)  # doctest: +SKIP
    """
    options = options_of(keywords)
    if len(fn) > 1:
        raise TypeError(f"recompute.jax.jit takes one function, not {len(fn)} positional arguments")
    return Jitted(fn[0], options) if fn else partial(Jitted, options=options)


# The implementation accepts any keyword, so that `options_of` can report a misspelt one.
cast(Any, jit).__signature__ = signature()
