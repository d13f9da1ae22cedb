"""Name the modules of a model as scopes: `blocks3/attention`, as flax linen does by itself.

    def loss(model, x):                       # flax nnx or equinox
        model = recompute.jax.named(model)    # calls of its modules run in scopes with their names
        return jnp.mean(model(x) ** 2)

Neither the model nor its classes change: the result is a copy that shares all arrays and variables. Its classes are
subclasses whose `__call__` enters the scope. Make the copy inside the function that is differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import jax

from .block import SEPARATORS

M = TypeVar("M")
_MODULES = (("equinox", "Module"), ("flax.nnx", "Module"))
_LINEN = (("flax.linen", "Module"),)


IS_NAMED = "__recompute_is_named__"
"""The attribute of classes whose calls enter a scope."""
_PLAIN: Mapping[type[Any], Any] = {kind: kind for kind in (list, tuple, dict)}
"""Containers whose elements are copied; instances of subclasses are not."""


def named(model: M) -> M:
    """Copy the model so that calls of its modules run in scopes, named by attribute and, in lists, by number.

    model: A module of flax nnx or equinox. A module of flax linen comes back as it is. Raises `TypeError` for anything
    else.
    """
    if _is_one_of(model, _LINEN):
        return model
    if not _is_one_of(model, _MODULES):
        raise TypeError(f"named takes a module of flax nnx or equinox, not {type(model).__name__}")
    return _Copies().of_module(model, "")


def _is_one_of(value: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """Compares names, so that no framework is imported."""
    return any(
        base.__name__ == name and base.__module__.startswith(package)
        for base in type(value).__mro__
        for package, name in kinds
    )


class _Copies:
    """Copies of modules by the identity of the originals. A shared module stays shared, under its first name."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def of(self, value: Any, name: str) -> Any:
        if _is_one_of(value, _MODULES):
            return self.of_module(value, name)
        kind: Any = _PLAIN.get(_type_of(value))
        if kind is dict:
            return {key: self.of(element, f"{name}.{key}") for key, element in value.items()}
        if kind is None:
            return value
        return kind([self.of(element, f"{name}{index}") for index, element in enumerate(value)])

    def of_module(self, module: Any, name: str) -> Any:
        if id(module) not in self._copies:
            copy: Any = object.__new__(_in_a_scope(_type_of(module), _as_scope(name)))
            self._copies[id(module)] = copy
            copy.__dict__.update(self._members(module.__dict__, name))  # Frozen modules forbid setattr.
        return self._copies[id(module)]

    def _members(self, members: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The members, copied. A member of a list module has a number for a name, and is called `name` plus number."""
        return {key: self.of(member, f"{name}{key}" if key.isdigit() else key) for key, member in members.items()}


def _type_of(value: object) -> type[Any]:
    return type(value)


@cache
def _in_a_scope(kind: type[Any], name: str) -> type[Any]:
    """A subclass whose calls run in the scope; the class itself if it has no `__call__` or the name is empty."""
    call = getattr(kind, "__call__", None)  # noqa: B004
    if call is None or not name:
        return kind

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        with jax.named_scope(name):
            return call(self, *args, **kwargs)

    members = {"__call__": __call__, IS_NAMED: True, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    metaclass: Any = type(kind)
    return metaclass(kind.__name__, (kind,), {**members, "__doc__": kind.__doc__})


def _as_scope(name: str) -> str:
    return "".join("." if letter in SEPARATORS else letter for letter in name)
