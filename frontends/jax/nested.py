"""A step that is called inside of another `jax.jit`: one operation there, and rewritten where that is lowered.

    jax.jit(lambda state, batches: lax.scan(step, state, batches))      # step = recompute.jax.jit(…)

`jax.export` gives the module of the step, which is rewritten and called in its place. Under `jax.grad` and `jax.vmap`
the step is what `jax.jit` makes of it, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Primitive
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir
from xdsl.utils.exceptions import ParseError

from ...dialects.marks import MARKS
from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...mlir_io.printer import print_module
from ...options.recompute_options import RecomputeOptions
from ...options.selection import BadSelection
from ...support.diagnostics import Refusal
from ...support.walk import every_operation
from ...transforms.calls.templates import strip
from . import warning
from .barriers import are_kept_by_flags
from .budget import DEVICE
from .calls import Call, completed
from .marks import WRITTEN_AS_CALLS
from .options import Options

source_info_util.register_exclusion(__file__)
_JAX: Any = jax
_RULES: Any = SimpleNamespace(ad=ad, batching=batching, mlir=mlir)
_STABLEHLO: Any = stablehlo
"""Partly unknown to type checkers."""
_STEP: Any = Primitive("recompute_step")
_STEP.multiple_results = True


@dataclass(frozen=True, eq=False)
class NestedStep:
    """A step for arguments of one kind. `flat`: from leaves to leaves, as `jax.jit` has it. `out`: leaves and tree."""

    name: str
    options: Options
    flat: Any
    out: tuple[Any, ...]
    tree: Any
    said: set[str] = field(default_factory=set[str])

    def say(self, words: str) -> None:
        """Once."""
        if words not in self.said:
            self.said.add(words)
            warning.warn(words)


def nested_step(name: str, options: Options, plain: Callable[..., Any], call: Call) -> NestedStep | None:
    """The step for these arguments; None, with a warning, where it has effects, or reads what others trace."""
    leaves, arguments = _JAX.tree.flatten((call.args, dict(call.kwargs)))
    static, trees = call.static, list[Any]()  # not the call: its arguments are traced, and the step lives on

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = completed(static, *_JAX.tree.unflatten(arguments, leaves))
        out, tree = _JAX.tree.flatten(plain(*args, **kwargs))
        trees.append(tree)
        return out

    jitted = _JAX.jit(flat)
    traced = jitted.trace(*leaves)
    if traced.jaxpr.effects or len(traced.jaxpr.in_avals) != len(leaves):
        warning.warn(warning.not_alone(name))
        return None
    return NestedStep(name, options, jitted, tuple(traced.jaxpr.out_avals), trees[-1])


def call_nested(step: NestedStep, call: Call) -> Any:
    """One operation of whoever traces."""
    leaves = [_JAX.numpy.asarray(leaf) for leaf in _JAX.tree.leaves((call.args, dict(call.kwargs)))]
    return _JAX.tree.unflatten(step.tree, _STEP.bind(*leaves, step=step))


def _run(*leaves: Any, step: NestedStep) -> Any:
    return step.flat(*leaves)


def _shapes(*_: Any, step: NestedStep) -> Any:
    return list(step.out)


def _jvp(primals: Any, tangents: Any, *, step: NestedStep) -> Any:
    step.say(warning.under_a_trace(step.name))
    zero, instantiate = _RULES.ad.Zero, _RULES.ad.instantiate_zeros
    tangents = [instantiate(tangent) if isinstance(tangent, zero) else tangent for tangent in tangents]
    return _JAX.jvp(step.flat, tuple(primals), tuple(tangents))


def _batched(arguments: Any, dimensions: Any, *, step: NestedStep) -> Any:
    step.say(warning.under_a_trace(step.name))
    out = _JAX.vmap(step.flat, in_axes=tuple(dimensions), out_axes=0)(*arguments)
    return out, [0] * len(out)


def _lowered(ctx: Any, *operands: Any, step: NestedStep) -> Any:
    platforms = ctx.module_context.platforms
    try:
        exported = _exported(step, ctx.avals_in, platforms)
    except (ValueError, NotImplementedError) as error:
        step.say(warning.nothing_recomputed(step.name, f"jax.export: {error}"))
        exported = None
    called = None if exported is None else _rewritten(step, exported)
    if called is not None and "cpu" in platforms and not are_kept_by_flags():
        step.say(warning.barriers_are_dropped(step.name))
    return _RULES.mlir.lower_fun(called or step.flat, multiple_results=True)(ctx, *operands)


def _exported(step: NestedStep, avals: Sequence[Any], platforms: Sequence[str]) -> Any:
    """Raises `ValueError` and `NotImplementedError` for what `jax.export` does not do."""
    return _JAX.export.export(
        step.flat,
        platforms=platforms,
        disabled_checks=[_JAX.export.DisabledSafetyCheck.custom_call(target) for target in MARKS],
        _override_lowering_rules=WRITTEN_AS_CALLS,
    )(*avals)


def _rewritten(step: NestedStep, exported: Any) -> Callable[..., Any] | None:
    """The function of the rewritten module; None, with a warning, where nothing is recomputed. Raises as `lower`."""
    try:
        done = rewrite(exported.mlir_module(), _request(step.options), name=step.name)
    except (Refusal, NotProved, ParseError) as error:
        if isinstance(error.__cause__, BadSelection) or step.options.demands(error):
            raise
        return step.say(warning.refused(step.name, error))
    if not done.copies:
        step.say(warning.nothing_recomputed(step.name, warning.why_nothing(done.remarks)))
        return None
    return replace(exported, mlir_module_serialized=_serialized(done)).call


def _request(options: Options) -> RecomputeOptions:
    """Somebody else compiles it: a budget is kept by the model of XLA:CPU."""
    if options.budget is None:
        return options.rewrite
    if options.budget.lower() == DEVICE:
        raise ValueError('budget="device" says nothing of a step inside of another jax.jit: give bytes or a share')
    return replace(options.rewrite, budget=options.budget, memory_model="xla")


def _serialized(done: Rewritten) -> bytes:
    """Portable artifacts have no room for attributes that StableHLO does not know."""
    module = done.module.clone()
    for op in every_operation(module):
        strip(op)
    text = print_module(module, debuginfo=True)
    return _STABLEHLO.serialize_portable_artifact_str(text, _STABLEHLO.get_current_version())


_STEP.def_impl(_run)
_STEP.def_abstract_eval(_shapes)
_RULES.ad.primitive_jvps[_STEP] = _jvp
_RULES.batching.primitive_batchers[_STEP] = _batched
_RULES.mlir.register_lowering(_STEP, _lowered)
