"""Remedies for arguments that a step rejects.

A step rejects modules of equinox and flax nnx with members that are not arrays. It also rejects keyword arguments that
are options of `recompute.jax.jit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from ..annotations.scopes import is_one_of
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
        return (
            f"{option}= is an option of recompute.jax.jit, not an argument of {name}: write "
            f"recompute.jax.jit({name}, {option}=…); recompute.jax.explain also accepts budget="
        )
    for kind, text in _HINTS:
        is_module = partial(is_one_of, kinds=kind)
        modules = filter(is_module, _TREE.leaves((tuple(args), dict(kwargs)), is_leaf=is_module))
        if not all(map(_is_array, _TREE.leaves(list(modules)))):
            return text.format(name=name)
    return None


def package_for(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the package whose `jit` suits a step with these arguments: `recompute.nnx` for modules of flax nnx,
    otherwise `recompute.jax`."""
    is_module = partial(is_one_of, kinds=_NNX)
    leaves = _TREE.leaves((tuple(args), dict(kwargs)), is_leaf=is_module)
    return "recompute.nnx" if any(map(is_module, leaves)) else why_plain.PACKAGE


def _is_array(value: Any) -> bool:
    """Return whether `jax.jit` accepts and traces a value."""
    return isinstance(value, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic | int | float | complex)
