"""The program of a Paddle optimizer: its parameters and state, the gradients of a loss, and the steps of the inner
optimizer.

The mark that lists the checkpoints is on the first cotangent of the backward pass, on which every gradient depends. The
value of the loss would be unsuitable, because it may be unused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend import source_info_util

from ..annotations import value_marks
from ..messages.argument_checks import type_name
from .optimizer_checkpoints import Checkpoints

_JAX: Any = jax
"""Typed as `Any`, because the types of the library are incomplete."""

# Operations of the optimizer get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)
_COLLECTION: Any = Collection
_NOT_COLLECTIONS: Any = (str, bytes, jax.Array, np.ndarray)
_PLAIN: Any = (list, tuple)


@_JAX.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Program:
    """The state of training as a pytree. A jitted step can take and donate it.

    Attributes:
        parameters: Any pytree of arrays.
        state: The state of the inner optimizer.
        loss: The value of the loss before the last step, a scalar. Before the first step it is NaN instead of None,
            so that all steps have the same type: a step is compiled only once, and can be the body of a loop.
    """

    parameters: Any
    state: Any
    loss: Any = None


def leaf_names(parameters: Any) -> list[str]:
    """Return the names of the leaves, such as `layers/0/w`, in leaf order."""
    paths = [path for path, _ in _JAX.tree.leaves_with_path(parameters)]
    return [_JAX.tree_util.keystr(path, simple=True, separator="/") for path in paths]


def differentiated_leaves(parameters: Any, parameter_list: object, no_grad_set: object) -> list[int]:
    """Return the indices of the leaves with respect to which the loss is differentiated.

    Args:
        parameters: The parameters.
        parameter_list: The names and parameters to include; None for all floating-point and complex leaves.
        no_grad_set: The names and parameters to exclude; None to exclude none.

    Raises:
        TypeError: For anything but collections of names and parameters.
        ValueError: For an unknown parameter, for a parameter without a gradient, and if no parameter is left.
    """
    leaves = _JAX.tree.leaves(parameters)
    names = leaf_names(parameters)
    listed = _numbers("parameter_list", parameter_list, leaves, names)
    excluded = _numbers("no_grad_set", no_grad_set, leaves, names) or set[int]()
    inexact = {number for number, leaf in enumerate(leaves) if _JAX.numpy.issubdtype(leaf.dtype, np.inexact)}
    if listed is not None and (integral := sorted(listed - excluded - inexact)):
        kind = leaves[integral[0]].dtype
        raise ValueError(f"parameter_list contains '{names[integral[0]]}', which is {kind} and has no gradient")
    remaining = sorted((inexact if listed is None else listed) - excluded)
    if not remaining:
        raise ValueError("parameter_list and no_grad_set leave no parameter to differentiate with respect to")
    return remaining


def _numbers(argument: str, parameters: Any, leaves: Sequence[Any], names: Sequence[str]) -> set[int] | None:
    if parameters is None:
        return None
    if not isinstance(parameters, _COLLECTION) or isinstance(parameters, _NOT_COLLECTIONS):
        raise TypeError(f"{argument} must be a collection of names and parameters, not {type_name(parameters)}")
    return {number for parameter in parameters for number in _find(argument, parameter, leaves, names)}


def _find(argument: str, parameter: Any, leaves: Sequence[Any], names: Sequence[str]) -> list[int]:
    """Return the indices of the leaves with this name, or of the leaves that are this array. An array may occur at
    several leaves."""
    if isinstance(parameter, str):
        numbers = [number for number, name in enumerate(names) if name == parameter]
    elif isinstance(parameter, jax.Array | np.ndarray):
        numbers = [number for number, leaf in enumerate(leaves) if leaf is parameter]
    else:
        raise TypeError(f"{argument} must contain names or parameters, not {type_name(parameter)}")
    if not numbers:
        raise ValueError(
            f"{argument} contains {_describe(parameter)}, which is not a parameter; {_suggest(parameter, names)}"
        )
    return numbers


def _describe(parameter: Any) -> str:
    if isinstance(parameter, str):
        return f"'{parameter}'"
    return f"an array {parameter.dtype}{list(parameter.shape)}"


def _suggest(parameter: Any, names: Sequence[str]) -> str:
    near = get_close_matches(parameter, names, 1, cutoff=0.3) if isinstance(parameter, str) else []
    nearest = f"the most similar name is '{near[0]}'; " if near else ""
    return f"{nearest}the parameters are {', '.join(names)}"


def gradients_by_leaf(parameters: Any, params_grads: object) -> dict[int, Any]:
    """Return the gradients in (parameter, gradient) pairs, by leaf index. Pairs with the gradient None are ignored.

    Raises `TypeError` for anything but a list of pairs. Raises `ValueError` for an unknown parameter, for several pairs
    with the same parameter, and for a gradient whose shape differs from its parameter's.
    """
    leaves = _JAX.tree.leaves(parameters)
    names = leaf_names(parameters)
    gradients: dict[int, Any] = {}
    for parameter, gradient in _pairs(params_grads):
        number = _next_number(parameter, leaves, names, gradients)
        if gradient is not None and (shape := _JAX.numpy.shape(gradient)) != leaves[number].shape:
            expected = f"but the parameter has shape {leaves[number].shape}"
            raise ValueError(f"the gradient of '{names[number]}' has shape {shape}, {expected}")
        gradients[number] = gradient
    return {number: gradient for number, gradient in gradients.items() if gradient is not None}


def _pairs(pairs: Any) -> Sequence[tuple[Any, Any]]:
    wrong = [pairs] if not isinstance(pairs, _PLAIN) else [pair for pair in pairs if not _is_pair(pair)]
    if wrong:
        raise TypeError(
            f"params_grads must be a list of pairs (parameter, gradient), but contains {type_name(wrong[0])}"
        )
    return pairs


def _is_pair(value: Any) -> bool:
    return isinstance(value, _PLAIN) and len(value) == 2


def _next_number(parameter: Any, leaves: Sequence[Any], names: Sequence[str], taken: dict[int, Any]) -> int:
    """Return the first leaf index of a parameter that is not yet taken. A parameter may have several indices, because
    an array may occur at several leaves."""
    numbers = [number for number, leaf in enumerate(leaves) if leaf is parameter]
    if not numbers:
        raise ValueError(
            "params_grads has a pair whose first element is not a parameter of the program given to backward; "
            f"its parameters are {', '.join(names)}"
        )
    if not (free := [number for number in numbers if number not in taken]):
        raise ValueError(f"params_grads has several pairs for '{names[numbers[0]]}'")
    return free[0]


def is_traced(tree: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in _JAX.tree.leaves(tree))


def gradients_of(
    checkpoints: Checkpoints, loss: Callable[[Any], Any], parameters: Any, numbers: Sequence[int], set_here: Any
) -> tuple[Any, list[Any]]:
    """Return the value of the loss, and its gradients with respect to some leaves; the other leaves are constants.

    Args:
        checkpoints: The checkpoints of the optimizer.
        loss: The loss.
        parameters: The parameters.
        numbers: The indices of the leaves.
        set_here: The checkpoints for this run; None for the checkpoints that are set.

    Raises:
        TypeError: If the loss is not a scalar.
        ValueError: For a checkpoint that is not a value of the loss itself. Under an outer `jax.jit`, JAX may raise an
            error of its own.
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
    (gradients,) = pull_back(value_marks.checkpoints(seed, names, values) if names or values else seed)
    return value, gradients


def _without_tangents(values: Sequence[Any]) -> list[Any]:
    """Return the values without their tangents. Raises `ValueError` for a value of an inner trace."""
    try:
        return [_JAX.lax.stop_gradient(value) for value in values]
    except jax.errors.UnexpectedTracerError as error:
        raise ValueError(NOT_OF_THE_LOSS) from error


NOT_OF_THE_LOSS = (
    "set_checkpoints: a value belongs to a function that is jitted, looped over or differentiated inside the loss: "
    "name it there with jax.ad_checkpoint.checkpoint_name, and give the name"
)


def apply_step(optimizer: Any, program: Program, gradients: Mapping[int, Any], loss: Any) -> Program:
    """Apply a step of the inner optimizer. Return the new program, which contains `loss`. `gradients`: the gradients,
    by the index of their parameter among the leaves of the parameters.

    Parameters without a gradient keep their values: the inner optimizer gets zeros as their gradients, and the updates
    that it returns for them are discarded.
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
    """Return the new state. Parameters without a gradient keep their old state in each part of the state that has the
    structure of the parameters.
    """

    def is_like_parameters(part: Any) -> bool:
        return _JAX.tree.structure(part) == tree

    def part(before: Any, after: Any) -> Any:
        if not is_like_parameters(before):
            return after
        return tree.unflatten([new if n in gradients else old for n, (old, new) in _leaf_pairs(tree, before, after)])

    return _JAX.tree.map(part, old, new, is_leaf=is_like_parameters)


def _leaf_pairs(tree: Any, before: Any, after: Any) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Yield the index of each leaf of `tree`, with the corresponding subtrees of the two other pytrees."""
    return enumerate(zip(tree.flatten_up_to(before), tree.flatten_up_to(after), strict=True))
