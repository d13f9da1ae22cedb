"""Marks in a model: keep this value, compute it again, move it away; and the names of `checkpoint_name`.

A mark is the identity, and under plain `jax.jit` it is nothing at all. `recompute.jax.jit` lowers it to a call that
`recompute-take-marks` turns into an attribute; it never reaches the compiler. Only the value is marked: not its
tangent, not its cotangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import jax
from jax import ad_checkpoint
from jax.extend import source_info_util
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import ad, batching, mlir

from ...dialects.marks import NAME
from ...dialects.names import Names

T = TypeVar("T")
# Marks come from the user's lines, not from those here.
source_info_util.register_exclusion(__file__)
_MARK: Any = Primitive("recompute_mark")
_JAX: Any = jax
_NAMES: Any = ad_checkpoint
_RULES: Any = SimpleNamespace(ad=ad, batching=batching, mlir=mlir)
_STABLEHLO: Any = stablehlo
_IR: Any = ir
"""Partly unknown to type checkers."""


def save(x: T) -> T:
    """Keep these values for the backward pass, whatever the segments and the policy say. Any pytree."""
    return _marked(x, "save")


def again(x: T) -> T:
    """Compute these values again when the backward pass needs them, in segments and outside of them. Any pytree."""
    return _marked(x, "again")


def offload(x: T) -> T:
    """Keep these values; with `recompute.jax.jit(…, offload="marked")` in the host's memory where the platform has one.
    Any pytree."""
    return _marked(x, "offload")


def checkpoints(x: jax.Array, names: Sequence[str], values: Sequence[jax.Array] = ()) -> jax.Array:
    """Say, on one array that a step computes, that its segments lie between the values of these names, and these."""
    return _MARK.bind(_JAX.numpy.asarray(x), *values, kind="checkpoints", said=",".join(names))


def _marked(x: T, kind: str) -> T:
    def mark(leaf: Any) -> Any:
        return _MARK.bind(_JAX.numpy.asarray(leaf), kind=kind, said="")

    return _JAX.tree.map(mark, x)


def _jvp(primals: Any, tangents: Any, **said: str) -> Any:
    return _MARK.bind(*primals, **said), tangents[0]


def _batched(arguments: Any, dimensions: Any, **said: str) -> Any:
    return _MARK.bind(*arguments, **said), dimensions[0]


def _transposed(cotangent: Any, _: Any, *others: Any, **said: str) -> Any:
    return [cotangent, *(None for _ in others)]


def _same(x: Any, *others: Any, **said: str) -> Any:
    return x


def _unmarked(ctx: Any, x: Any, *others: Any, **said: str) -> Any:
    return [x]


_MARK.def_impl(_same)
_MARK.def_abstract_eval(_same)
_RULES.ad.primitive_jvps[_MARK] = _jvp
_RULES.ad.primitive_transposes[_MARK] = _transposed
_RULES.batching.primitive_batchers[_MARK] = _batched
_RULES.mlir.register_lowering(_MARK, _unmarked)


def _as_call(ctx: Any, *operands: Any, kind: str, said: str) -> Any:
    return _call(operands, Names.PREFIX + kind, said)


def _name_as_call(ctx: Any, x: Any, *, name: str) -> Any:
    return _call([x], NAME, name)


def _call(operands: Sequence[Any], target: str, said: str) -> Any:
    kind = operands[0].type
    return _STABLEHLO.CustomCallOp([kind], operands, target, backend_config=_IR.StringAttr.get(said)).results


def _primitive_of_names() -> Any:
    """The primitive behind `checkpoint_name`, which JAX lowers to nothing."""
    traced = _JAX.make_jaxpr(partial(_NAMES.checkpoint_name, name="name"))(0.0)
    return traced.eqns[0].primitive


WRITTEN_AS_CALLS = ((_MARK, _as_call), (_primitive_of_names(), _name_as_call))
"""How a step is lowered for us: rules in place of JAX's own."""
