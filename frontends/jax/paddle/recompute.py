"""`paddle.distributed.fleet.utils.recompute`: a function whose inside is computed again for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from ....analysis.request.called import Kind, Switches
from .. import checked
from ..called import called
from ..marks import offload
from .kinds import kind_of

R = TypeVar("R")
_JAX: Any = jax
"""Partly unknown to type checkers."""


def recompute(
    function: Callable[..., R],
    /,
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    offload_indices: Sequence[int] = (),
    **kwargs: Any,
) -> R:
    """What `function(*args, **kwargs)` gives. Under `recompute.jax.jit` the call is one segment.

    function: any callable; modules of flax linen, nnx and equinox are. args, kwargs: go to it as they are: arrays of
    any shape and type, pytrees of them, and whatever else it takes. Its results, of any kind, come back as they are.
    preserve_rng_state: what draws from a hidden state (`lax.rng_uniform`) is never run twice; with False it draws anew,
    which has no proof: `recompute.jax.jit(…, proof=False)`. With keys the copy has the same mask either way.
    use_reentrant: which of two implementations Paddle takes. Here there is one, and True and False are the same: inputs
    without gradient, keyword arguments, nested calls and results that are no arrays are no matter.
    offload_indices: the numbers of positional arguments that could be kept on the host, see `recompute.jax.offload`.

    Raises `TypeError` for a function that cannot be called, a switch that is no bool, and indices that are no list of
    ints or that name arguments without arrays; `ValueError` for an index that no argument has.
    """
    switches = switches_of("recompute", function, preserve_rng_state)
    checked.flags("recompute", use_reentrant=use_reentrant)
    given = list(args)
    for index in _checked(offload_indices, len(args)):
        given[index] = _offloaded(index, args[index])
    return called(function, given, kwargs, Kind.SEGMENT, switches)


def switches_of(caller: str, function: object, preserve_rng_state: object) -> Switches:
    """What is said of the segment: Paddle repeats every collective. Raises `TypeError`."""
    checked.a_callable(caller, function)
    checked.flags(caller, preserve_rng_state=preserve_rng_state)
    return Switches(preserve_rng_state=bool(preserve_rng_state), parallel_optimizer_comm_recompute=True)


def _checked(indices: object, count: int) -> list[int]:
    """Each once."""
    if not isinstance(indices, list | tuple):
        raise TypeError(f"recompute: offload_indices is a list of int, not {kind_of(indices)}")
    found: list[int] = []
    for index in indices:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"recompute: offload_indices is a list of int, and holds {index!r}")
        if not 0 <= index < count:
            raise ValueError(f"recompute: offload_indices has {index}, and there are {count} positional arguments")
        found.append(index)
    return sorted(set(found))


def _offloaded(index: int, argument: Any) -> Any:
    """Its arrays marked; what else is in it stays as it is."""
    if not any(map(_is_array, _JAX.tree.leaves(argument))):
        raise TypeError(
            f"recompute: offload_indices has {index}, and that argument, {kind_of(argument)}, has no arrays"
        )

    def mark(leaf: Any) -> Any:
        return offload(leaf) if _is_array(leaf) else leaf

    return _JAX.tree.map(mark, argument)


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)
