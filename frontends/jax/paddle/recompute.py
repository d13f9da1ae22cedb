"""`paddle.distributed.fleet.utils.recompute`: a function call that is recomputed for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from ....analysis.request.scope_names import CallTreatment, Switches
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
    """Call `function(*args, **kwargs)` and return its results unchanged. Under `recompute.jax.jit` the call is one
    segment.

    Args:
        function: Any callable, also a module of flax linen, nnx or equinox.
        args, kwargs: The arguments of the function, of any type, passed unchanged.
        preserve_rng_state: Never recompute operations that draw from hidden state (`lax.rng_uniform`). With False they
            may draw anew, which cannot be proved equal: `recompute.jax.jit(…, proof=False)`. With explicit keys the
            recomputed operations draw the same numbers either way.
        use_reentrant: Has no effect; in Paddle it selects one of two implementations. Inputs without gradient, keyword
            arguments, nested calls and results that are not arrays are supported either way.
        offload_indices: The numbers of positional arguments that may be offloaded to the host, see
            `recompute.jax.offload`.

    Raises:
        TypeError: For a function that is not callable, a switch that is not a bool, and `offload_indices` that is not
            a list of ints or names an argument without arrays.
        ValueError: For an index out of range.
    """
    switches = switches_of("recompute", function, preserve_rng_state)
    checked.flags("recompute", use_reentrant=use_reentrant)
    arguments = list(args)
    for index in _check_indices(offload_indices, len(args)):
        arguments[index] = _offload_arrays(index, args[index])
    return called(function, arguments, kwargs, CallTreatment.SEGMENT, switches)


def switches_of(caller: str, function: object, preserve_rng_state: object) -> Switches:
    """The switches of the segment; as in Paddle, every collective may be recomputed. Raises `TypeError`."""
    checked.a_callable(caller, function)
    checked.flags(caller, preserve_rng_state=preserve_rng_state)
    return Switches(preserve_rng_state=bool(preserve_rng_state), parallel_optimizer_comm_recompute=True)


def _check_indices(indices: object, count: int) -> list[int]:
    """The indices in ascending order, without duplicates."""
    if not isinstance(indices, list | tuple):
        raise TypeError(f"recompute: offload_indices is a list of int, not {kind_of(indices)}")
    checked_indices: set[int] = set()
    for index in indices:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"recompute: offload_indices is a list of int, and holds {index!r}")
        if not 0 <= index < count:
            raise ValueError(f"recompute: offload_indices has {index}, and there are {count} positional arguments")
        checked_indices.add(index)
    return sorted(checked_indices)


def _offload_arrays(index: int, argument: Any) -> Any:
    """The argument, a pytree, with its arrays marked for offloading; other leaves stay unchanged."""
    if not any(map(_is_array, _JAX.tree.leaves(argument))):
        raise TypeError(
            f"recompute: offload_indices has {index}, and that argument, {kind_of(argument)}, has no arrays"
        )

    def mark(leaf: Any) -> Any:
        return offload(leaf) if _is_array(leaf) else leaf

    return _JAX.tree.map(mark, argument)


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)
