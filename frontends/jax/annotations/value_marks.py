"""Marks with which a model requests that values be saved, recomputed or offloaded, and their lowering.

A mark is an identity function. Plain `jax.jit` lowers it to nothing. `recompute.jax.jit` lowers a mark, and also a
`checkpoint_name`, to a custom call. The pass `recompute-take-marks` turns this call into an attribute, so that the call
never reaches the compiler. Only the value is marked, not its tangent or cotangent.
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

from ....dialects.names import Names

T = TypeVar("T")
# Marks get the location of the user's source line, not of this file.
source_info_util.register_exclusion(__file__)
MARK_NAME = "recompute_mark"
"""The name of the primitive of marks."""
LEAF_KINDS = frozenset({"save", "again", "offload"})
"""The kinds of marks on single arrays."""
_MARK: Any = Primitive(MARK_NAME)
_JAX: Any = jax
_NAMES: Any = ad_checkpoint
_RULES: Any = SimpleNamespace(ad=ad, batching=batching, mlir=mlir)
_STABLEHLO: Any = stablehlo
_IR: Any = ir
"""Typed as `Any`, because the types of the library are incomplete."""


def save(x: T) -> T:
    """Mark values to be saved for the backward pass, regardless of the segments and the policy.

    Args:
        x: A pytree of arrays.

    Returns:
        The same values.
    """
    return _mark_leaves(x, "save")


def again(x: T) -> T:
    """Mark values to be recomputed for the backward pass, inside or outside segments.

    Args:
        x: A pytree of arrays.

    Returns:
        The same values.
    """
    return _mark_leaves(x, "again")


def offload(x: T) -> T:
    """Mark values to be saved in host memory.

    This requires `recompute.jax.jit(…, offload="marked")`, and a platform whose host memory is separate. If
    either is missing, the values are saved on the device.

    Args:
        x: A pytree of arrays.

    Returns:
        The same values.
    """
    return _mark_leaves(x, "offload")


def checkpoints(x: jax.Array, names: Sequence[str], values: Sequence[jax.Array] = ()) -> jax.Array:
    """Record the names and values of the step's checkpoints as a mark on an array, which may be any array of the step.

    Args:
        x: The array that carries the mark.
        names: The names of the values that are checkpoints.
        values: Further values that are checkpoints.

    Returns:
        The same array.
    """
    return _MARK.bind(_JAX.numpy.asarray(x), *values, kind="checkpoints", config=",".join(names))


def _mark_leaves(x: T, kind: str) -> T:
    def mark(leaf: Any) -> Any:
        return _MARK.bind(_JAX.numpy.asarray(leaf), kind=kind, config="")

    return _JAX.tree.map(mark, x)


def _jvp(primals: Any, tangents: Any, **params: str) -> Any:
    return _MARK.bind(*primals, **params), tangents[0]


def _batch(arguments: Any, dimensions: Any, **params: str) -> Any:
    return _MARK.bind(*arguments, **params), dimensions[0]


def _transpose(cotangent: Any, _: Any, *others: Any, **params: str) -> Any:
    return [cotangent, *(None for _ in others)]


def _identity(x: Any, *others: Any, **params: str) -> Any:
    return x


def _lower_to_nothing(ctx: Any, x: Any, *others: Any, **params: str) -> Any:
    return [x]


_MARK.def_impl(_identity)
_MARK.def_abstract_eval(_identity)
_RULES.ad.primitive_jvps[_MARK] = _jvp
_RULES.ad.primitive_transposes[_MARK] = _transpose
_RULES.batching.primitive_batchers[_MARK] = _batch
_RULES.mlir.register_lowering(_MARK, _lower_to_nothing)


def _lower_mark(ctx: Any, *operands: Any, kind: str, config: str) -> Any:
    return _custom_call(operands, Names.PREFIX + kind, config)


def _lower_name(ctx: Any, x: Any, *, name: str) -> Any:
    return _custom_call([x], Names.NAME, name)


def _custom_call(operands: Sequence[Any], target: str, config: str) -> Any:
    kind = operands[0].type
    return _STABLEHLO.CustomCallOp([kind], operands, target, backend_config=_IR.StringAttr.get(config)).results


def _name_primitive() -> Any:
    """Return the primitive of `checkpoint_name`. JAX lowers it to nothing."""
    traced = _JAX.make_jaxpr(partial(_NAMES.checkpoint_name, name="name"))(0.0)
    return traced.eqns[0].primitive


WRITTEN_AS_CALLS = ((_MARK, _lower_mark), (_name_primitive(), _lower_name))
"""Lowering rules that emit marks and names as custom calls, in place of JAX's own rules."""
