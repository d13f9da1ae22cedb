"""`paddle.incubate.distributed.fleet.recompute_sequential`: consecutive stages, grouped into segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ....analysis.request.scope_names import CallTreatment
from ..called import called
from .kinds import kind_of
from .recompute import switches_of

DEFAULTS: Mapping[str, Any] = {"segments": 1, "preserve_rng_state": True}
_PLAIN: Any = (list, tuple)


def recompute_sequential(ctx: Mapping[str, Any], functions: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the functions one after the other, in segments that are each like a call of `recompute`.

    Args:
        ctx: "segments", the number of segments (1), and "preserve_rng_state" (True).
        functions: A list or tuple of callables, or an object with `layers`, as the Sequential of flax linen, nnx and
            equinox.
        args, kwargs: The arguments of the first function. A result that is a tuple becomes the positional arguments of
            the next function; any other result is its only argument. Batches may have any size.

    Returns:
        The result of the last function. The segments differ by at most one function in length, and all of them are
        recomputed; Paddle does not recompute the last one.

    Raises:
        TypeError, ValueError: For an invalid `ctx` or `functions`, and for more segments than functions.
    """
    options = _check_options(ctx)
    stages = _stages(functions)
    switches = [switches_of("recompute_sequential", stage, options["preserve_rng_state"]) for stage in stages]
    result: Any = None
    for first, end in pairwise(_borders(options["segments"], len(stages))):
        result = called(_chain(stages[first:end], first), args, kwargs, CallTreatment.SEGMENT, switches[first])
        args, kwargs = _as_arguments(result), {}
    return result


def _check_options(ctx: object) -> dict[str, Any]:
    if not isinstance(ctx, Mapping):
        raise TypeError(f"recompute_sequential: ctx is a dict such as {{'segments': 2}}, not {kind_of(ctx)}")
    options: dict[Any, Any] = dict(ctx)  # pyright: ignore[reportUnknownArgumentType]
    if unknown := [key for key in options if key not in DEFAULTS]:
        raise ValueError(f"recompute_sequential: ctx has no {unknown[0]!r}; known are {', '.join(DEFAULTS)}")
    return {**DEFAULTS, **options}


def _stages(functions: Any) -> Sequence[Callable[..., Any]]:
    stages: Any = functions if isinstance(functions, _PLAIN) else getattr(functions, "layers", None)
    try:
        return tuple(stages)
    except TypeError:
        raise TypeError(
            "recompute_sequential: functions is a list or tuple of callables, or has `layers`, and "
            f"{kind_of(functions)} is not such"
        ) from None


def _borders(segments: object, count: int) -> list[int]:
    """The number of the first stage of each segment, and the count. Longer segments come first."""
    if not isinstance(segments, int) or isinstance(segments, bool):
        raise TypeError(f"recompute_sequential: segments is an int, not {kind_of(segments)}")
    if segments < 1:
        raise ValueError(f"recompute_sequential: segments is at least 1, not {segments}")
    if segments > count:
        raise ValueError(f"recompute_sequential: {segments} segments cannot be made of {count} functions")
    size, longer = divmod(count, segments)
    return list(accumulate((size + (index < longer) for index in range(segments)), initial=0))


def _chain(stages: Sequence[Callable[..., Any]], first: int) -> Callable[..., Any]:
    """Several stages as one function, whose name becomes that of the segment."""

    def chain(*args: Any, **kwargs: Any) -> Any:
        result = stages[0](*args, **kwargs)
        for stage in stages[1:]:
            result = stage(*_as_arguments(result))
        return result

    chain.__name__ = f"stages{first}to{first + len(stages) - 1}"
    return chain


def _as_arguments(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
