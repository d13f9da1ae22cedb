"""The gradient of a loss with respect to some of its parameters, marked with the checkpoints.

The mark is on the cotangent that the backward pass begins with: every gradient depends on it, while the value of the
loss may be unused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import source_info_util

from .. import marks
from .checkpoints import Checkpoints

source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""Partly unknown to type checkers."""


def gradients_of(
    checkpoints: Checkpoints, loss: Callable[[Any], Any], parameters: Any, numbers: Sequence[int], set_here: Any
) -> tuple[Any, list[Any]]:
    """The value, and the gradients with respect to the leaves of these numbers; the others are constants of the loss.

    set_here: Checkpoints for this run; with None, those that are set.

    Raises `TypeError` if the loss is not a scalar, and `ValueError` for a checkpoint that is not a value of the loss
    itself; under an outer `jax.jit`, JAX may raise its own error for the latter.
    """
    leaves, tree = _JAX.tree.flatten(parameters)
    names = list[str]()

    def loss_of_leaves(variables: Sequence[Any]) -> Any:
        all_leaves = list(leaves)
        for number, parameter in zip(numbers, variables, strict=True):
            all_leaves[number] = parameter
        value, checkpoint_list = checkpoints.run(loss, tree.unflatten(all_leaves), set_here)
        names.extend(checkpoint_list.names)
        return value, _without_tangents(checkpoint_list.values)

    value, pull_back, values = _JAX.vjp(loss_of_leaves, [leaves[number] for number in numbers], has_aux=True)
    seed = _JAX.numpy.ones_like(value)
    (gradients,) = pull_back(marks.checkpoints(seed, names, values) if names or values else seed)
    return value, gradients


def _without_tangents(values: Sequence[Any]) -> list[Any]:
    """The values without their tangents. Raises `ValueError` for a value of an inner trace."""
    try:
        return [_JAX.lax.stop_gradient(value) for value in values]
    except jax.errors.UnexpectedTracerError as error:
        raise ValueError(NOT_OF_THE_LOSS) from error


NOT_OF_THE_LOSS = (
    "set_checkpoints: a value is of a function that is jitted, looped over or differentiated inside of the loss; name "
    "it there with jax.ad_checkpoint.checkpoint_name, and give the name"
)
