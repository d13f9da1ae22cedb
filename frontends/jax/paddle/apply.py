"""One step of the inner optimizer, for a subset of the parameters."""

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
    """The program after the update, with this loss. `gradients`: by leaf number.

    Parameters without a gradient keep their values: the inner optimizer gets zeros for them, and its updates are
    discarded.
    """
    leaves, tree = _JAX.tree.flatten(program.parameters)
    padded = [gradients[n] if n in gradients else _JAX.numpy.zeros_like(leaf) for n, leaf in enumerate(leaves)]
    updates, state = optimizer.update(tree.unflatten(padded), program.state, program.parameters)
    pairs = _leaf_pairs(tree, program.parameters, updates)
    parameters = [_add(parameter, update) if n in gradients else parameter for n, (parameter, update) in pairs]
    if len(gradients) < len(leaves):
        state = _merge_states(tree, gradients, program.state, state)
    return Program(tree.unflatten(parameters), state, loss)


def _add(parameter: Any, update: Any) -> Any:
    return (parameter + update).astype(parameter.dtype)


def _merge_states(tree: Any, gradients: Mapping[int, Any], old: Any, new: Any) -> Any:
    """The new state, but the old one of parameters without a gradient, in each part that is a pytree like theirs."""

    def is_like_parameters(part: Any) -> bool:
        return _JAX.tree.structure(part) == tree

    def part(before: Any, after: Any) -> Any:
        if not is_like_parameters(before):
            return after
        return tree.unflatten([new if n in gradients else old for n, (old, new) in _leaf_pairs(tree, before, after)])

    return _JAX.tree.map(part, old, new, is_leaf=is_like_parameters)


def _leaf_pairs(tree: Any, before: Any, after: Any) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """The subtrees of two pytrees at each leaf of `tree`, numbered."""
    return enumerate(zip(tree.flatten_up_to(before), tree.flatten_up_to(after), strict=True))
