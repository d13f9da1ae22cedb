"""Remedies for arguments that a step rejects.

A step rejects equinox and flax nnx modules with members that are not arrays. It also rejects keyword arguments that are
not among its parameters, such as options of `recompute.jax.jit`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from ....support.suggestions import close_name, unexpected_keyword
from ..annotations.named_modules import is_one_of
from ..keywords.keywords import OWN_KEYWORDS
from ..messages import why_plain

_TREE: Any = jax.tree
"""Typed as `Any`, because the types of the library are incomplete."""
_EQUINOX, _NNX = (("equinox", "Module"),), (("flax.nnx", "Module"),)
_HINTS = (
    (
        _EQUINOX,
        "{name} takes an equinox module with members that are not arrays, which jax.jit rejects. Use "
        "recompute.eqx.filter_jit instead of recompute.jax.jit, just as eqx.filter_jit replaces jax.jit: it traces the "
        "arrays and treats everything else as static",
    ),
    (
        _NNX,
        "{name} takes a flax nnx module with members that are not arrays, which jax.jit rejects. Use recompute.nnx.jit "
        "instead of recompute.jax.jit, just as nnx.jit replaces jax.jit: it splits the module, and writes updates back",
    ),
)


def hint(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the remedy for an unsuitable argument of a step; None if there is none.

    An argument is unsuitable if it is a module with a member that is not an array, or if it has the name of an option.

    `name`: the name of the step.
    """
    for option in kwargs.keys() & set(OWN_KEYWORDS):
        return _remedy_for_option(name, option)
    for kind, text in _HINTS:
        is_module = partial(is_one_of, kinds=kind)
        modules = filter(is_module, _TREE.leaves((tuple(args), dict(kwargs)), is_leaf=is_module))
        if not all(map(_is_array, _TREE.leaves(list(modules)))):
            return text.format(name=name)
    return None


def demand_keywords(name: str, function: Any, kwargs: Iterable[str]) -> None:
    """Raise `TypeError` for a keyword argument that the function of a step does not have.

    The message explains how to give an option of `recompute.jax.jit`, or suggests the closest argument or option.
    Without this check, JAX would reject an option with a string value as an argument that is not an array.

    Args:
        name: The name of the step.
        function: The function of the step. Any keyword is accepted if its signature is unknown.
        kwargs: The names of the keyword arguments.
    """
    if hasattr(function, "trace"):  # The result of `jax.jit`.
        function = getattr(function, "__wrapped__", function)
    try:
        # Another decorator may accept keywords that the function inside lacks.
        parameters = inspect.signature(function, follow_wrapped=False).parameters
    except (TypeError, ValueError):
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for keyword in kwargs:
        if keyword in parameters:
            continue
        if keyword in OWN_KEYWORDS:
            raise TypeError(f"{name}: {_remedy_for_option(name, keyword)}")
        close = close_name(keyword, [*parameters, *sorted(OWN_KEYWORDS)])
        if close is None or close in parameters:
            raise unexpected_keyword(name, keyword, parameters)
        owners = "recompute.jax.jit and recompute.jax.explain" if close == "budget" else "recompute.jax.jit"
        raise TypeError(
            f"{name} got an unexpected keyword argument '{keyword}'; did you mean '{close}', an option of {owners}?"
        )


def _remedy_for_option(name: str, option: str) -> str:
    return (
        f"{option}= is an option of recompute.jax.jit, not an argument of {name}: write "
        f"recompute.jax.jit({name}, {option}=…); recompute.jax.explain also accepts budget="
    )


def package_for(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the package whose `jit` suits a step with these arguments: `recompute.nnx` for flax nnx modules, otherwise
    `recompute.jax`."""
    is_module = partial(is_one_of, kinds=_NNX)
    leaves = _TREE.leaves((tuple(args), dict(kwargs)), is_leaf=is_module)
    return "recompute.nnx" if any(map(is_module, leaves)) else why_plain.PACKAGE


def _is_array(value: Any) -> bool:
    """Return whether `jax.jit` accepts and traces a value."""
    return isinstance(value, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic | int | float | complex)
