"""One step of the inner optimizer, for some of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    added = [_added(p, u) if n in gradients else p for n, (p, u) in _both(tree, program.parameters, updates)]
    if len(gradients) < len(leaves):
        state = _state(tree, gradients, program.state, state)
    return Program(tree.unflatten(added), state, loss)


def _added(parameter: Any, update: Any) -> Any:
    return (parameter + update).astype(parameter.dtype)


def _state(tree: Any, gradients: Mapping[int, Any], old: Any, new: Any) -> Any:
    """The new state, with the old one of the parameters that have no gradient, wherever it has a part for each."""

    def is_like_parameters(part: Any) -> bool:
        return _JAX.tree.structure(part) == tree

    def part(before: Any, after: Any) -> Any:
        if not is_like_parameters(before):
            return after
        return tree.unflatten([new if n in gradients else old for n, (old, new) in _both(tree, before, after)])

    return _JAX.tree.map(part, old, new, is_leaf=is_like_parameters)


def _both(tree: Any, before: Any, after: Any) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """What stands at each leaf of the parameters in two pytrees like theirs."""
    return enumerate(zip(tree.flatten_up_to(before), tree.flatten_up_to(after), strict=True))
