"""Scopes for the modules of flax nnx while a step is traced, as flax linen has them: `LM/blocks0/attention`.

A module that another one calls is named by its attribute there, in lists by attribute and number; the outermost one,
and a module without an attribute there, by its class. The names are those of segments, and of the rows of reports.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

import jax
from jax.extend import source_info_util

from .named import IS_NAMED

source_info_util.register_exclusion(__file__)
_running: ContextVar[tuple[Any, ...]] = ContextVar("the modules whose calls run, from the outside in", default=())


@contextmanager
def module_scopes(root: type[Any]) -> Generator[None, None, None]:
    """Inside of the context calls of modules run in scopes. `root`: the base class of the modules."""
    calls = [(kind, vars(kind)["__call__"]) for kind in _subclasses(root) if "__call__" in vars(kind)]
    for kind, call in calls:
        _set_call(kind, _in_its_scope(call))
    try:
        yield
    finally:
        for kind, call in calls:
            _set_call(kind, call)


def _set_call(kind: type[Any], call: Any) -> None:
    type.__setattr__(kind, "__call__", call)  # A metaclass may forbid setattr.


def _subclasses(root: type[Any]) -> Iterator[type[Any]]:
    """The class and everything that is derived from it, each once."""
    seen, ahead = set[type[Any]](), [root]
    while ahead:
        if (kind := ahead.pop()) not in seen:
            seen.add(kind)
            ahead.extend(type.__subclasses__(kind))
            yield kind


def _in_its_scope(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def scoped(self: Any, *args: Any, **kwargs: Any) -> Any:
        around = _running.get()
        # The call of a base class belongs to the scope of the module; `recompute.jax.named` makes scopes of its own.
        if (around and around[-1] is self) or getattr(self, IS_NAMED, False):
            return call(self, *args, **kwargs)
        token = _running.set((*around, self))
        try:
            with jax.named_scope(_name_of(self, around[-1] if around else None)):
                return call(self, *args, **kwargs)
        finally:
            _running.reset(token)

    return scoped


def _name_of(module: Any, parent: Any) -> str:
    members = cast(dict[str, Any], {} if parent is None else vars(parent))
    for name, member in members.items():
        if member is module:
            return name
        index = next((at for at, element in enumerate(_elements(member)) if element is module), None)
        if index is not None:
            return f"{name}{index}"
    return type(module).__name__


def _elements(member: Any) -> list[Any]:
    """The elements of a list, a tuple, a dict, or a list module of flax nnx."""
    if isinstance(member, dict):
        values: list[Any] = list(member.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return values
    is_sequence = isinstance(member, list | tuple) or type(member).__name__ == "List"
    elements: list[Any] = list(member) if is_sequence else []  # pyright: ignore[reportUnknownArgumentType]
    return elements
