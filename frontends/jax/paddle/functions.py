"""Paddle's `recompute` and `recompute_sequential`.

`recompute` recomputes a call in the backward pass. `recompute_sequential` groups consecutive functions into segments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import jax
import numpy as np

from ....analysis.request.scope_names import CallTreatment, Switches
from ....support.counted import counted
from ..annotations.scopes import call_in_scope
from ..annotations.value_marks import offload
from ..messages import argument_checks
from ..messages.argument_checks import type_name

R = TypeVar("R")
_JAX: Any = jax
"""Typed as `Any`, because the types of the library are incomplete."""


def recompute(
    function: Callable[..., R],
    /,
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    offload_indices: Sequence[int] = (),
    **kwargs: Any,
) -> R:
    """Call a function and return its result. Under `recompute.jax.jit`, the call is a segment.

    Args:
        function: Any callable, including a flax linen, flax nnx or equinox module.
        *args: Its positional arguments, of any type.
        preserve_rng_state: Never recompute operations that draw from hidden state (`lax.rng_uniform`). With False,
            their copies may draw different numbers. Such a step cannot be proved equal, so `recompute.jax.jit(…,
            proof=False)` is needed. Operations with explicit keys always draw the same numbers.
        use_reentrant: Has no effect; in Paddle, it selects one of two implementations. With both values, inputs without
            gradient, keyword arguments, nested calls and results that are not arrays are supported.
        offload_indices: The indices of positional arguments that may be offloaded to the host; see
            `recompute.jax.offload`.
        **kwargs: Its keyword arguments.

    Raises:
        TypeError: For a function that is not callable, for a switch that is not a bool, and for `offload_indices` that
            are not a list of ints or that include an argument without arrays.
        ValueError: For an index out of range.
    """
    switches = switches_of("recompute", function, preserve_rng_state)
    argument_checks.demand_flags("recompute", use_reentrant=use_reentrant)
    arguments = list(args)
    for index in _check_indices(offload_indices, len(args)):
        arguments[index] = _offload_arrays(index, args[index])
    return call_in_scope(function, arguments, kwargs, CallTreatment.SEGMENT, switches)


def switches_of(caller: str, function: object, preserve_rng_state: object) -> Switches:
    """Check the arguments of a segment and return its switches. As in Paddle, every collective may be recomputed.

    Raises `TypeError` for a function that is not callable, and for a switch that is not a bool.
    """
    argument_checks.demand_callable(caller, function)
    argument_checks.demand_flags(caller, preserve_rng_state=preserve_rng_state)
    return Switches(preserve_rng_state=bool(preserve_rng_state), parallel_optimizer_comm_recompute=True)


def _check_indices(indices: object, count: int) -> list[int]:
    """Return the indices in ascending order, without duplicates."""
    if not isinstance(indices, list | tuple):
        raise TypeError(f"recompute: offload_indices must be a list of int, not {type_name(indices)}")
    checked_indices: set[int] = set()
    for index in indices:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"recompute: offload_indices must be a list of int, but contains {index!r}")
        if not 0 <= index < count:
            arguments = f"{'is' if count == 1 else 'are'} {counted(count, 'positional argument')}"
            raise ValueError(f"recompute: offload_indices contains {index}, but there {arguments}")
        checked_indices.add(index)
    return sorted(checked_indices)


def _offload_arrays(index: int, argument: Any) -> Any:
    """Return the argument, a pytree, with its arrays marked for offloading; other leaves stay unchanged."""
    if not any(map(_is_array, _JAX.tree.leaves(argument))):
        raise TypeError(
            f"recompute: offload_indices contains {index}, but that argument, {type_name(argument)}, has no arrays"
        )

    def mark(leaf: Any) -> Any:
        return offload(leaf) if _is_array(leaf) else leaf

    return _JAX.tree.map(mark, argument)


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


SEQUENTIAL_DEFAULTS: Mapping[str, Any] = {"segments": 1, "preserve_rng_state": True}
_PLAIN: Any = (list, tuple)


def recompute_sequential(ctx: Mapping[str, Any], functions: Any, *args: Any, **kwargs: Any) -> Any:
    """Call functions in sequence, grouped into segments, each of which is treated like a call to `recompute`.

    A result that is a tuple becomes the positional arguments of the next function; any other result is its only
    argument.

    Args:
        ctx: A dict with "segments", the number of segments (default 1), and "preserve_rng_state" (default True).
        functions: A list or tuple of callables, or an object with `layers`, such as the Sequential of flax linen, flax
            nnx and equinox.
        *args: The positional arguments of the first function.
        **kwargs: The keyword arguments of the first function.

    Returns:
        The result of the last function. The segments differ by at most one function in length, and all of them are
        recomputed; Paddle does not recompute the last segment.

    Raises:
        TypeError, ValueError: For an invalid `ctx` or `functions`, and for more segments than functions.
    """
    options = _check_options(ctx)
    stages = _stages(functions)
    switches = [switches_of("recompute_sequential", stage, options["preserve_rng_state"]) for stage in stages]
    result: Any = None
    for first, end in pairwise(_borders(options["segments"], len(stages))):
        result = call_in_scope(_chain(stages[first:end], first), args, kwargs, CallTreatment.SEGMENT, switches[first])
        args, kwargs = _as_arguments(result), {}
    return result


def _check_options(ctx: object) -> dict[str, Any]:
    if not isinstance(ctx, Mapping):
        raise TypeError(f"recompute_sequential: ctx must be a dict such as {{'segments': 2}}, not {type_name(ctx)}")
    options: dict[Any, Any] = dict(ctx)  # pyright: ignore[reportUnknownArgumentType]
    if unknown := [key for key in options if key not in SEQUENTIAL_DEFAULTS]:
        raise ValueError(
            f"recompute_sequential: ctx has the unknown key {unknown[0]!r}; expected {' or '.join(SEQUENTIAL_DEFAULTS)}"
        )
    return {**SEQUENTIAL_DEFAULTS, **options}


def _stages(functions: Any) -> Sequence[Callable[..., Any]]:
    stages: Any = functions if isinstance(functions, _PLAIN) else getattr(functions, "layers", None)
    try:
        return tuple(stages)
    except TypeError:
        raise TypeError(
            "recompute_sequential: functions must be a list or tuple of callables, or an object with `layers`, "
            f"not {type_name(functions)}"
        ) from None


def _borders(segments: object, count: int) -> list[int]:
    """Return the index of the first stage of each segment, then the number of stages. Longer segments come first."""
    if not isinstance(segments, int) or isinstance(segments, bool):
        raise TypeError(f"recompute_sequential: segments must be an int, not {type_name(segments)}")
    if segments < 1:
        raise ValueError(f"recompute_sequential: segments must be at least 1, not {segments}")
    if segments > count:
        raise ValueError(
            f"recompute_sequential: cannot divide {counted(count, 'function')} into {counted(segments, 'segment')}"
        )
    size, longer = divmod(count, segments)
    return list(accumulate((size + (index < longer) for index in range(segments)), initial=0))


def _chain(stages: Sequence[Callable[..., Any]], first: int) -> Callable[..., Any]:
    """Compose stages into a single function with the name of the segment."""

    def chain(*args: Any, **kwargs: Any) -> Any:
        result = stages[0](*args, **kwargs)
        for stage in stages[1:]:
            result = stage(*_as_arguments(result))
        return result

    chain.__name__ = f"stages{first}to{first + len(stages) - 1}"
    return chain


def _as_arguments(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
