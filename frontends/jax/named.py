"""The modules of a model as scopes: `blocks3/attention`, as flax linen names them by itself.

    def loss(model, x):                       # flax nnx or equinox
        model = recompute.jax.named(model)    # calls of its modules stand in scopes of their names
        return jnp.mean(model(x) ** 2)

Neither the model nor its classes are changed: what is called is a copy that shares all arrays and variables, of
subclasses whose `__call__` enters the scope. Make it inside of the function that is differentiated.
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


_PLAIN: Mapping[type[Any], Any] = {kind: kind for kind in (list, tuple, dict)}
"""Containers that are looked into, but not those of subclasses."""


def named(model: M) -> M:
    """The same model; the modules inside of it, called, are scopes, named by attribute and, in lists, by number.

    A module of flax linen comes back as it is. Raises `TypeError` for what is no module.
    """
    if _is_one_of(model, _LINEN):
        return model
    if not _is_one_of(model, _MODULES):
        raise TypeError(f"named: a module of flax nnx or equinox, not {type(model).__name__}")
    return _Copies().of_module(model, "")


def _is_one_of(value: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """By name: a framework that is not there is not imported."""
    return any(
        base.__name__ == name and base.__module__.startswith(package)
        for base in type(value).__mro__
        for package, name in kinds
    )


class _Copies:
    """A module that is shared stays one module, with the name that it is found by first."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def of(self, value: Any, name: str) -> Any:
        if _is_one_of(value, _MODULES):
            return self.of_module(value, name)
        kind: Any = _PLAIN.get(_type_of(value))
        if kind is dict:
            return {key: self.of(one, f"{name}.{key}") for key, one in value.items()}
        return value if kind is None else kind([self.of(one, f"{name}{index}") for index, one in enumerate(value)])

    def of_module(self, module: Any, name: str) -> Any:
        if id(module) not in self._made:
            copy: Any = object.__new__(_in_a_scope(_type_of(module), _as_scope(name)))
            self._made[id(module)] = copy
            copy.__dict__.update(self._members(module.__dict__, name))  # past what freezes a module
        return self._made[id(module)]

    def _members(self, members: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Those of a list are called by numbers."""
        return {key: self.of(one, f"{name}{key}" if key.isdigit() else key) for key, one in members.items()}


def _type_of(value: object) -> type[Any]:
    return type(value)


@cache
def _in_a_scope(kind: type[Any], name: str) -> type[Any]:
    """The class, with calls in a scope."""
    call = getattr(kind, "__call__", None)  # noqa: B004
    if call is None or not name:
        return kind

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        with jax.named_scope(name):
            return call(self, *args, **kwargs)

    members = {"__call__": __call__, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    of_its_kind: Any = type(kind)
    return of_its_kind(kind.__name__, (kind,), {**members, "__doc__": kind.__doc__})


def _as_scope(name: str) -> str:
    return "".join("." if letter in SEPARATORS else letter for letter in name)
