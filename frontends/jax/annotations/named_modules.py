"""Copies of flax nnx and equinox modules whose calls run in named scopes.

    def loss(model, x):                       # flax nnx or equinox
        model = recompute.jax.named(model)    # calls to its modules run in scopes such as LM/blocks0/attention
        return jnp.mean(model(x) ** 2)

A module is named after the attribute of its parent that refers to it. The name of a module in a list consists of the
attribute and the index. The outermost module, and modules to which no attribute refers, are named after their class.

`named` changes neither the model nor its classes. It returns a copy that shares all arrays and variables. The modules
of the copy are instances of subclasses whose `__call__` enters the scope. Make the copy inside the function that is
differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import jax
from jax.extend import source_info_util

from .scopes import SEPARATORS

# Operations get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)
M = TypeVar("M")
_MODULES = (("equinox", "Module"), ("flax.nnx", "Module"))
_LINEN = (("flax.linen", "Module"),)
IS_NAMED = "__recompute_is_named__"
"""The attribute that marks classes whose calls already enter a scope."""
_PLAIN: Mapping[type[Any], Any] = {kind: kind for kind in (list, tuple, dict)}
"""The types of containers whose elements are copied. Instances of subclasses of these types are not copied."""


def named(model: M) -> M:
    """Return a copy of a model whose modules run in named scopes.

    Args:
        model: A flax nnx or equinox module. A flax linen module is returned unchanged, because its calls already run in
            such scopes.

    Raises:
        TypeError: For a model that is not a module of flax or equinox.
    """
    if is_one_of(model, _LINEN):
        return model
    if not is_one_of(model, _MODULES):
        raise TypeError(f"named takes a module of flax nnx or equinox, not {type(model).__name__}")
    return _Copies().of_module(model, "")


def is_one_of(value: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """Return whether the class of a value derives from one of these classes, given by name.

    The framework is not imported.
    """
    return any(
        base.__name__ == name and base.__module__.startswith(package)
        for base in type(value).__mro__
        for package, name in kinds
    )


class _Copies:
    """The copies of modules, by the identity of the original. A shared module stays shared, and keeps the name of its
    first occurrence."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def of(self, value: Any, name: str) -> Any:
        if is_one_of(value, _MODULES):
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
            copy.__dict__.update(self._members(module.__dict__, name))  # `setattr` is forbidden for frozen modules.
        return self._copies[id(module)]

    def _members(self, members: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return copies of the members. The members of a list module are named by an index, appended to `name`."""
        return {key: self.of(member, f"{name}{key}" if key.isdigit() else key) for key, member in members.items()}


def _type_of(value: object) -> type[Any]:
    return type(value)


@cache
def _in_a_scope(kind: type[Any], name: str) -> type[Any]:
    """Return a subclass with calls that run in a scope. Return the class itself if it has no `__call__` or if the name
    is empty."""
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
