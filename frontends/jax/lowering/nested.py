"""Steps that are called inside another `jax.jit`. Each step is a single primitive in the outer trace, and is rewritten
when the outer function is lowered.

    jax.jit(lambda state, batches: lax.scan(step, state, batches))      # step = recompute.jax.jit(…)

The module of the step, as `jax.export` returns it, is rewritten, and the rewritten module is called in place of the
step. Under `jax.grad` and `jax.vmap`, the step runs as with `jax.jit`, and a warning is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import jax
from jax.extend import source_info_util
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from xdsl.utils.exceptions import ParseError

from ....dialects.cloning import clone_of
from ....dialects.mark_calls import MARKS
from ....driver.api import rewrite
from ....driver.rewrites.rewritten import Rewritten
from ....driver.verification.verified import NotProved
from ....mlir_io.parser import parse_module
from ....mlir_io.printer import print_module
from ....options.recompute_options import RecomputeOptions
from ....options.selection import BadSelection
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....transforms.calls.templates import strip_operation
from ..annotations.value_marks import WRITTEN_AS_CALLS
from ..bridge.crossing import demand_lowered
from ..compilation.compiler_options import are_kept_by_flags, merges_copies
from ..internals import private
from ..keywords.budget_option import DEVICE
from ..keywords.jit_options import JitOptions
from ..keywords.name_check import demand_names
from ..messages import why_plain
from ..messages.call_site_warnings import BarriersDropped, NothingSaved, warn
from ..messages.tracebacks import shortened
from .calls import Call, complete_arguments

source_info_util.register_exclusion(__file__)
_JAX: Any = jax
_RULES: Any = SimpleNamespace(ad=ad, batching=batching, mlir=mlir)
"""Typed as `Any`, because the types of the library are incomplete."""
_STEP: Any = Primitive("recompute_step")
_STEP.multiple_results = True


@dataclass(frozen=True, eq=False)
class CallableStep:
    """A step for arguments with a fixed tree structure.

    Attributes:
        name: The name of the step.
        options: The options of the step.
        flat: The jitted step as a function from argument leaves to result leaves.
        out: The abstract values of the result leaves.
        tree: The tree structure of the results.
        warned: The warnings that have been given.
    """

    name: str
    options: JitOptions
    flat: Any
    out: tuple[Any, ...]
    tree: Any
    warned: set[str] = field(default_factory=set[str])

    def __repr__(self) -> str:
        """Return the name of the step, for printed jaxprs."""
        return self.name

    def warn_once(self, words: str, kind: type[Warning] = NothingSaved) -> None:
        """Give a warning, unless this step has already given it."""
        if words not in self.warned:
            self.warned.add(words)
            warn(words, kind)


def nested_step(name: str, options: JitOptions, plain: Callable[..., Any], call: Call) -> CallableStep | None:
    """Return the step for these arguments. If the step has effects, closes over traced values, or is called on each
    device under `jax.shard_map`, warn and return None.

    Args:
        name: The name of the step.
        options: The options of the step.
        plain: The result of `jax.jit` of the step.
        call: The arguments.
    """
    if _JAX.sharding.get_abstract_mesh().manual_axes:
        warn(why_plain.under_shard_map(name))
        return None
    leaves, arguments = _JAX.tree.flatten((call.args, dict(call.kwargs)))
    # `flat` must not refer to `call`, since the arguments are tracers, and the step outlives them.
    static, trees = call.static, list[Any]()

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = complete_arguments(static, *_JAX.tree.unflatten(arguments, leaves))
        out, tree = _JAX.tree.flatten(plain(*args, **kwargs))
        trees.append(tree)
        return out

    jitted = _JAX.jit(flat)
    traced = jitted.trace(*leaves)
    if traced.jaxpr.effects or len(traced.jaxpr.in_avals) != len(leaves):
        warn(why_plain.not_alone(name))
        return None
    return CallableStep(name, options, jitted, tuple(traced.jaxpr.out_avals), trees[-1])


def call_nested(step: CallableStep, call: Call) -> Any:
    """Bind the step as a single primitive of the current trace."""
    leaves = [_JAX.numpy.asarray(leaf) for leaf in _JAX.tree.leaves((call.args, dict(call.kwargs)))]
    return _JAX.tree.unflatten(step.tree, _STEP.bind(*leaves, step=step))


def _impl(*leaves: Any, step: CallableStep) -> Any:
    return step.flat(*leaves)


def _abstract_eval(*_: Any, step: CallableStep) -> Any:
    return list(step.out)


def _jvp(primals: Any, tangents: Any, *, step: CallableStep) -> Any:
    step.warn_once(why_plain.under_differentiation(step.name))
    zero, instantiate = _RULES.ad.Zero, _RULES.ad.instantiate_zeros
    tangents = [instantiate(tangent) if isinstance(tangent, zero) else tangent for tangent in tangents]
    return _JAX.jvp(step.flat, tuple(primals), tuple(tangents))


def _batch(arguments: Any, dimensions: Any, *, step: CallableStep) -> Any:
    step.warn_once(why_plain.under_vmap(step.name))
    out = _JAX.vmap(step.flat, in_axes=tuple(dimensions), out_axes=0)(*arguments)
    return out, [0] * len(out)


@shortened
def _lower(ctx: Any, *operands: Any, step: CallableStep) -> Any:
    platforms = ctx.module_context.platforms
    if len(platforms) > 1:
        step.warn_once(why_plain.several_platforms(step.name, platforms))
        return _RULES.mlir.lower_fun(step.flat, multiple_results=True)(ctx, *operands)
    try:
        exported = _export(step, ctx.avals_in, platforms)
    except (ValueError, NotImplementedError) as error:
        step.warn_once(str(why_plain.PlainReason(step.name, f"jax.export: {error}")))
        exported = None
    rewritten = None if exported is None else _rewrite(step, exported)
    if rewritten is not None and merges_copies(platforms) and not are_kept_by_flags():
        exports = private.is_for_export(ctx)
        text = why_plain.barriers_are_dropped_after_export if exports else why_plain.barriers_are_dropped
        step.warn_once(text(step.name), BarriersDropped)
    return _RULES.mlir.lower_fun(rewritten or step.flat, multiple_results=True)(ctx, *operands)


def _export(step: CallableStep, avals: Sequence[Any], platforms: Sequence[str]) -> Any:
    """Export the step. Raises `ValueError` and `NotImplementedError` if `jax.export` does not support it."""
    return _JAX.export.export(
        step.flat,
        platforms=platforms,
        disabled_checks=[_JAX.export.DisabledSafetyCheck.custom_call(target) for target in MARKS],
        _override_lowering_rules=WRITTEN_AS_CALLS,
    )(*avals)


def _rewrite(step: CallableStep, exported: Any) -> Callable[..., Any] | None:
    """Return a function that calls the rewritten module. If nothing is recomputed, warn and return None.

    Raises the errors of `Jitted.lower`.
    """
    if step.options.named:
        demand_names(step.name, parse_module(exported.mlir_module(), step.name), step.options.named)
    try:
        rewritten = rewrite(exported.mlir_module(), _rewrite_options(step.options), name=step.name)
    except (Refusal, NotProved, ParseError) as error:
        if isinstance(error.__cause__, BadSelection) or step.options.demands(error):
            raise
        return step.warn_once(str(why_plain.refused(step.name, error)))
    if not rewritten.copies:
        step.warn_once(str(why_plain.nothing_recomputed(step.name, rewritten.remarks)))
        return None
    demand_lowered(rewritten.module)
    try:
        serialized = _serialize(rewritten)
    except ValueError as error:
        reason = f"MLIR cannot serialize the rewritten step: {error}"
        return step.warn_once(str(why_plain.PlainReason(step.name, reason)))
    return replace(exported, mlir_module_serialized=serialized).call


def _rewrite_options(options: JitOptions) -> RecomputeOptions:
    """Return the options of the rewrite.

    A budget is checked with the XLA:CPU model, since the step is not compiled separately.
    """
    if options.budget is None:
        return options.rewrite
    if options.budget == DEVICE:
        raise ValueError('budget="device" does not apply to a step inside another jax.jit: give bytes or a share')
    return replace(options.rewrite, memory_model="xla")


def _serialize(rewritten: Rewritten) -> bytes:
    """Return the rewritten module as a portable artifact, without attributes that StableHLO does not define.

    Raises `ValueError` if MLIR cannot serialize the module.
    """
    module = clone_of(rewritten.module)
    for op in every_operation(module):
        strip_operation(op)
    return private.portable_artifact(print_module(module, debuginfo=True))


_STEP.def_impl(_impl)
_STEP.def_abstract_eval(_abstract_eval)
_RULES.ad.primitive_jvps[_STEP] = _jvp
_RULES.batching.primitive_batchers[_STEP] = _batch
_RULES.mlir.register_lowering(_STEP, _lower)
