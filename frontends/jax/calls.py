"""A call of a step: what is static in it, and which calls are alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.core as jax_core
from jax.core import Tracer

from .private import Statics, is_under_a_trace, trace_context

_CORE: Any = jax_core
_TREE: Any = jax.tree
"""Partly unknown to type checkers."""


@dataclass(frozen=True)
class Call:
    """Arguments apart: those that a compiled step takes, and the static ones, by number or name."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: tuple[tuple[int | str, Any], ...]

    @staticmethod
    def of(statics: Statics, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        numbers = {number + len(args) if number < 0 else number for number in statics.numbers}
        static = [
            *((number, one) for number, one in enumerate(args) if number in numbers),
            *((name, kwargs[name]) for name in sorted(kwargs.keys() & set(statics.names))),
        ]
        return Call(
            tuple(one for number, one in enumerate(args) if number not in numbers),
            {name: one for name, one in kwargs.items() if name not in statics.names},
            tuple(static),
        )

    @property
    def is_traced(self) -> bool:
        """Whether JAX is looking on: under `jax.jit`, `jax.grad`, `jax.vmap` and the like."""
        leaves = _TREE.leaves((self.args, dict(self.kwargs)))
        return is_under_a_trace() or any(isinstance(leaf, Tracer) for leaf in leaves)


def completed(
    static: Sequence[tuple[int | str, Any]], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, the static ones back in their places."""
    whole, named = list(args), dict(kwargs)
    for place, value in static:
        if isinstance(place, int):
            whole.insert(place, value)
        else:
            named[place] = value
    return whole, named


def key_of(call: Call) -> Hashable | None:
    """Equal for calls that one compiled step can serve. None where JAX has an error to raise about the arguments."""
    try:
        leaves, tree = _TREE.flatten((call.args, dict(call.kwargs)))
        static = tuple((place, _type_of(one), one) for place, one in call.static)
        key: Hashable = (tree, tuple([_kind(leaf) for leaf in leaves]), static, trace_context())
        hash(key)
    except TypeError:
        return None
    return key


def _type_of(value: object) -> Hashable:
    """`1`, `1.0` and `True` are equal, and are not the same to a step."""
    return type(value)


def _kind(leaf: Any) -> tuple[Hashable, ...]:
    """Shape, type and weakness, and where a committed array lies. An uncommitted one goes where the others are."""
    if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer) and leaf.committed:
        layout = getattr(getattr(leaf, "format", None), "layout", None)
        return (jax.typeof(leaf), leaf.sharding, layout)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        aval: Hashable = _CORE.ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
        return (aval,) if leaf.sharding is None else (aval, leaf.sharding, None)
    return (jax.typeof(leaf),)
