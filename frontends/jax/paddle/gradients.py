"""The gradient of a loss by some of its parameters, with the checkpoints said on it.

Who says them is the cotangent that the backward pass begins with: it is there wherever a gradient is asked for, though
nobody may ask for the loss.
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
    """The value, and the gradients by the leaves of these numbers; the others are constants of the loss.

    set_here: checkpoints for this run, None: as set. Raises `TypeError` for a loss that gives no scalar, `ValueError`
    for a checkpoint that the loss itself does not have; under an outer `jax.jit` it may be JAX who says so.
    """
    leaves, tree = _JAX.tree.flatten(parameters)
    names = list[str]()

    def of_chosen(given: Sequence[Any]) -> Any:
        whole = list(leaves)
        for number, parameter in zip(numbers, given, strict=True):
            whole[number] = parameter
        value, now = checkpoints.run(loss, tree.unflatten(whole), set_here)
        names.extend(now.names)
        return value, _outside(now.values)

    value, pull_back, values = _JAX.vjp(of_chosen, [leaves[number] for number in numbers], has_aux=True)
    seed = _JAX.numpy.ones_like(value)
    (gradients,) = pull_back(marks.checkpoints(seed, names, values) if names or values else seed)
    return value, gradients


def _outside(values: Sequence[Any]) -> list[Any]:
    """The values without their tangents, which JAX does for those alone that are of the loss itself."""
    try:
        return [_JAX.lax.stop_gradient(value) for value in values]
    except jax.errors.UnexpectedTracerError as error:
        raise ValueError(NOT_OF_THE_LOSS) from error


NOT_OF_THE_LOSS = (
    "set_checkpoints: a value is of a function that is jitted, looped over or differentiated inside of the loss; name "
    "it there with jax.ad_checkpoint.checkpoint_name, and give the name"
)
