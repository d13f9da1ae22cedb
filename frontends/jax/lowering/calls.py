"""A call of a step: its static arguments, and the key under which its compiled step is cached."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.core as jax_core
from jax.core import Tracer

from ..internals.private import Statics, is_under_a_trace, trace_context

_CORE: Any = jax_core
_TREE: Any = jax.tree
"""Typed as `Any`, because the types of the library are incomplete."""


@dataclass(frozen=True)
class Call:
    """The arguments of a call: the arguments that the compiled step takes, and the static arguments by index or
    name."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    static: tuple[tuple[int | str, Any], ...]

    @staticmethod
    def of(statics: Statics, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        numbers = {number + len(args) if number < 0 else number for number in statics.indices}
        static = [
            *((number, value) for number, value in enumerate(args) if number in numbers),
            *((name, kwargs[name]) for name in sorted(kwargs.keys() & set(statics.names))),
        ]
        return Call(
            tuple(value for number, value in enumerate(args) if number not in numbers),
            {name: value for name, value in kwargs.items() if name not in statics.names},
            tuple(static),
        )

    @property
    def is_traced(self) -> bool:
        """Whether the call is traced: under `jax.jit`, `jax.grad`, `jax.vmap` or another transformation."""
        leaves = _TREE.leaves((self.args, dict(self.kwargs)))
        return is_under_a_trace() or any(isinstance(leaf, Tracer) for leaf in leaves)


def complete_arguments(
    static: Sequence[tuple[int | str, Any]], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a call, with the static arguments back at their positions."""
    positional, named = list(args), dict(kwargs)
    for place, value in static:
        if isinstance(place, int):
            positional.insert(place, value)
        else:
            named[place] = value
    return positional, named


def key_of(call: Call) -> Hashable | None:
    """Return a key that is equal for calls that can share a compiled step; None if JAX rejects the arguments."""
    try:
        leaves, tree = _TREE.flatten((call.args, dict(call.kwargs)))
        static = tuple((place, _type_of(value), value) for place, value in call.static)
        key: Hashable = (tree, tuple([_kind(leaf) for leaf in leaves]), static, trace_context())
        hash(key)
    except TypeError:
        return None
    return key


def _type_of(value: object) -> Hashable:
    """Return the type of a static value. The type distinguishes `1`, `1.0` and `True`, which are equal but trace
    differently."""
    return type(value)


def _kind(leaf: Any) -> tuple[Hashable, ...]:
    """Return the shape, element type and weak type of a leaf, and for a committed array also its sharding and layout.

    JAX places an uncommitted array where the other arguments are, so its placement does not distinguish calls.
    """
    if isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer) and leaf.committed:
        layout = getattr(getattr(leaf, "format", None), "layout", None)
        return (jax.typeof(leaf), leaf.sharding, layout)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        aval: Hashable = _CORE.ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
        return (aval,) if leaf.sharding is None else (aval, leaf.sharding, None)
    return (jax.typeof(leaf),)
