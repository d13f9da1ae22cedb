"""Run the calls of all modules of a framework in named scopes, while a step is traced.

As in `named_modules.py`, a module is named after the attribute of the calling module that refers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

import jax
from jax.extend import source_info_util

from .named_modules import IS_NAMED

# Operations get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)
_running: ContextVar[tuple[Any, ...]] = ContextVar(
    "the modules whose calls are running, the outermost first", default=()
)


@contextmanager
def module_scopes(
    root: type[Any], is_layer: Callable[[type[Any]], bool] = lambda _: True, step: Any = None
) -> Generator[None, None, None]:
    """Within the context, run calls to modules in named scopes.

    Args:
        root: The base class of the modules.
        is_layer: A predicate that returns whether calls to instances of a class run in scopes.
        step: A module that is not a part of the model, because its call is the whole step, including the gradient.
    """
    kinds = [kind for kind in _subclasses(root) if "__call__" in vars(kind) and is_layer(kind)]
    calls = [(kind, vars(kind)["__call__"]) for kind in kinds]
    for kind, call in calls:
        _set_call(kind, _in_its_scope(call))
    token = _running.set(() if step is None else (step,))
    try:
        yield
    finally:
        _running.reset(token)
        for kind, call in calls:
            _set_call(kind, call)


def _set_call(kind: type[Any], call: Any) -> None:
    type.__setattr__(kind, "__call__", call)  # A metaclass may forbid `setattr`.


def _subclasses(root: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all classes that derive from it, each once."""
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
        # A call to a base class belongs to the scope of its module, and a module of `recompute.jax.named` has a scope.
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
    """Return the elements of a list, a tuple, a dict, or a list module of flax nnx."""
    if isinstance(member, dict):
        values: list[Any] = list(member.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return values
    is_sequence = isinstance(member, list | tuple) or type(member).__name__ == "List"
    elements: list[Any] = list(member) if is_sequence else []  # pyright: ignore[reportUnknownArgumentType]
    return elements
