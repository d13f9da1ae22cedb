"""What an optimizer of Paddle works on: the parameters with their names, and the state of the inner optimizer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .kinds import kind_of

_JAX: Any = jax
"""Partly unknown to type checkers."""

_COLLECTION: Any = Collection
_NO_COLLECTION: Any = (str, bytes, jax.Array, np.ndarray)
_PLAIN: Any = (list, tuple)


@_JAX.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Program:
    """A pytree: goes through `jax.jit`, and can be donated.

    parameters: any pytree of arrays. state: of the inner optimizer. loss: a scalar, the value that the loss had before
    the step; NaN where there was no step yet, so that a step is compiled once, and can be in a loop of JAX.
    """

    parameters: Any
    state: Any
    loss: Any = None


def names_of(parameters: Any) -> list[str]:
    """Of the leaves in their order: `layers/0/w`."""
    paths = [path for path, _ in _JAX.tree.leaves_with_path(parameters)]
    return [_JAX.tree_util.keystr(path, simple=True, separator="/") for path in paths]


def chosen(parameters: Any, parameter_list: object, no_grad_set: object) -> list[int]:
    """The numbers of the leaves that are differentiated: those of the list, without those of the set.

    None: all that are floating-point or complex, and none. Raises `TypeError` for what is no collection of names and
    parameters, and `ValueError` for an unknown one, for one without a gradient, and where none is left.
    """
    leaves, names = _JAX.tree.leaves(parameters), names_of(parameters)
    wanted = _numbers("parameter_list", parameter_list, leaves, names)
    excluded = _numbers("no_grad_set", no_grad_set, leaves, names) or set[int]()
    smooth = {number for number, leaf in enumerate(leaves) if _JAX.numpy.issubdtype(leaf.dtype, np.inexact)}
    if wanted is not None and (rough := sorted(wanted - excluded - smooth)):
        kind = leaves[rough[0]].dtype
        raise ValueError(f"parameter_list has '{names[rough[0]]}', which is {kind} and has no gradient")
    left = sorted((smooth if wanted is None else wanted) - excluded)
    if not left:
        raise ValueError("parameter_list and no_grad_set leave no parameter to differentiate by")
    return left


def _numbers(argument: str, given: Any, leaves: Sequence[Any], names: Sequence[str]) -> set[int] | None:
    if given is None:
        return None
    if not isinstance(given, _COLLECTION) or isinstance(given, _NO_COLLECTION):
        raise TypeError(f"{argument} is a collection of names and parameters, not {kind_of(given)}")
    return {number for one in given for number in _found(argument, one, leaves, names)}


def _found(argument: str, one: Any, leaves: Sequence[Any], names: Sequence[str]) -> list[int]:
    """A parameter is found by identity; an array that stands in several places is several."""
    if isinstance(one, str):
        found = [number for number, name in enumerate(names) if name == one]
    elif isinstance(one, jax.Array | np.ndarray):
        found = [number for number, leaf in enumerate(leaves) if leaf is one]
    else:
        raise TypeError(f"{argument} holds names and parameters, not {kind_of(one)}")
    if not found:
        raise ValueError(f"{argument} has {_told(one)}, which is no parameter; {_known(one, names)}")
    return found


def _told(one: Any) -> str:
    return f"'{one}'" if isinstance(one, str) else f"an array {one.dtype}{list(one.shape)}"


def _known(one: Any, names: Sequence[str]) -> str:
    near = get_close_matches(one, names, 1, cutoff=0.3) if isinstance(one, str) else []
    nearest = f"the nearest is '{near[0]}', and " if near else ""
    return f"{nearest}there are {', '.join(names)}"


def paired(parameters: Any, params_grads: object) -> dict[int, Any]:
    """The gradient of each leaf, by its number: pairs belong to the parameter that is their first element.

    A pair whose gradient is None says nothing. Raises `TypeError` for what is no list of pairs, `ValueError` for an
    unknown parameter, one that comes twice, and a gradient of another shape.
    """
    leaves, names = _JAX.tree.leaves(parameters), names_of(parameters)
    found: dict[int, Any] = {}
    for parameter, gradient in _pairs(params_grads):
        number = _next(parameter, leaves, names, found)
        if gradient is not None and _JAX.numpy.shape(gradient) != leaves[number].shape:
            raise ValueError(f"the gradient of '{names[number]}' has another shape: {_JAX.numpy.shape(gradient)}")
        found[number] = gradient
    return {number: gradient for number, gradient in found.items() if gradient is not None}


def _pairs(given: Any) -> Sequence[tuple[Any, Any]]:
    wrong = [given] if not isinstance(given, _PLAIN) else [one for one in given if not _is_pair(one)]
    if wrong:
        raise TypeError(f"params_grads is a list of (parameter, gradient), and {kind_of(wrong[0])} is not such")
    return given


def _is_pair(one: Any) -> bool:
    return isinstance(one, _PLAIN) and len(one) == 2


def _next(parameter: Any, leaves: Sequence[Any], names: Sequence[str], taken: dict[int, Any]) -> int:
    """An array that stands in several places gets its gradients in the order of the places."""
    found = [number for number, leaf in enumerate(leaves) if leaf is parameter]
    if not found:
        raise ValueError(
            "params_grads has a pair whose first element is no parameter of the program that backward was given; "
            f"there are {', '.join(names)}"
        )
    if not (free := [number for number in found if number not in taken]):
        raise ValueError(f"params_grads has several pairs for '{names[found[0]]}'")
    return free[0]


def is_traced(tree: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in _JAX.tree.leaves(tree))
