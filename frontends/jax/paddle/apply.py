"""One step of the inner optimizer, for some of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax.extend import source_info_util

from .program import Program

source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""Partly unknown to type checkers."""


def applied(optimizer: Any, program: Program, gradients: Mapping[int, Any], loss: Any) -> Program:
    """The program after the update, with this loss. `gradients`: by the number of the leaf.

    The inner optimizer sees zeros where there is none, and what it makes of them is not taken.
    """
    leaves, tree = _JAX.tree.flatten(program.parameters)
    given = [gradients[n] if n in gradients else _JAX.numpy.zeros_like(leaf) for n, leaf in enumerate(leaves)]
    updates, state = optimizer.update(tree.unflatten(given), program.state, program.parameters)
    added = [(p + u).astype(p.dtype) for p, u in zip(leaves, tree.flatten_up_to(updates), strict=True)]
    if len(gradients) < len(leaves):
        state = _state(tree, gradients, program.state, state)
    return Program(_taken(tree, gradients, program.parameters, tree.unflatten(added)), state, loss)


def _state(tree: Any, gradients: Mapping[int, Any], old: Any, new: Any) -> Any:
    """The new state, with the old one of the parameters that have no gradient, wherever it has a part for each."""

    def is_like_parameters(part: Any) -> bool:
        return _JAX.tree.structure(part) == tree

    def part(before: Any, after: Any) -> Any:
        return _taken(tree, gradients, before, after) if is_like_parameters(before) else after

    return _JAX.tree.map(part, old, new, is_leaf=is_like_parameters)


def _taken(tree: Any, gradients: Mapping[int, Any], old: Any, new: Any) -> Any:
    """Of a pytree like that of the parameters: new where there is a gradient, old elsewhere."""
    pairs = enumerate(zip(tree.flatten_up_to(old), tree.flatten_up_to(new), strict=True))
    return tree.unflatten([after if number in gradients else before for number, (before, after) in pairs])
