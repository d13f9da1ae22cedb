"""Detect flax nnx modules that a step changes in place, because `jax.jit` and `recompute.jax.jit` lose such updates.

Example:

    def train_step(model, optimizer, x):       # jax.jit traces it with copies of model and optimizer:
        optimizer.update(model, gradients)     # the copies are updated, and discarded
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import jax
from jax.extend import source_info_util

source_info_util.register_exclusion(__file__)
_TREE: Any = jax.tree
"""Typed as `Any`, because the types of the library are incomplete."""

LOST_UPDATE = (
    "{name} changes {kinds}, which {is_are} given to it as {an_argument}: jax.jit and recompute.jax.jit trace it "
    "with a copy, so the update is lost and nothing is trained. Use recompute.nnx.jit, which writes the update back:\n"
    "    {name} = recompute.nnx.jit({name})"
)


class LostUpdate(TypeError):
    """Raised if a step changes a flax nnx module among its arguments, because the update would be lost."""


def reject_lost_updates(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a step so that it raises `LostUpdate` if it changes a flax nnx module among its arguments.

    A step that returns the changed arrays is accepted. The check runs only while the step is traced, so that it takes
    no time in a compiled step.

    `name`: the name of the step.
    """

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        modules = _modules_in(args, kwargs)
        before = [_values_of(module) for module in modules]
        result = function(*args, **kwargs)
        returned = {id(leaf) for leaf in _TREE.leaves(result)} if modules else set[int]()
        changed = [
            type(module).__name__
            for module, values in zip(modules, before, strict=True)
            if not all(id(new) in returned for new in _changes(values, _values_of(module)))
        ]
        if changed:
            kinds = " and ".join(dict.fromkeys(changed))
            several = len(set(changed)) > 1
            words = {"is_are": "are" if several else "is", "an_argument": "arguments" if several else "an argument"}
            raise LostUpdate(LOST_UPDATE.format(name=name, kinds=kinds, **words))
        return result

    return checked


def _modules_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the outermost flax nnx modules in the arguments; none if flax is not imported."""
    nnx = sys.modules.get("flax.nnx")
    if nnx is None:
        return []
    is_module: Callable[[Any], bool] = lambda leaf: isinstance(leaf, nnx.Module)  # noqa: E731
    return [leaf for leaf in _TREE.leaves((args, dict(kwargs)), is_leaf=is_module) if is_module(leaf)]


def _values_of(module: Any) -> dict[Any, Any]:
    """Return the arrays of a module's variables, by path."""
    state = sys.modules["flax.nnx"].state(module)
    return {str(path): leaf for path, leaf in _TREE.leaves_with_path(state)}


def _changes(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> list[Any]:
    """Return the arrays in `after` that are not the same objects as in `before`."""
    return [value for path, value in after.items() if path not in before or before[path] is not value]
