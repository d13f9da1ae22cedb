"""`paddle.incubate.distributed.fleet.recompute_sequential`: stages one after the other, in segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ....analysis.request.called import Kind
from ..called import called
from .kinds import kind_of
from .recompute import switches_of

DEFAULTS: Mapping[str, Any] = {"segments": 1, "preserve_rng_state": True}
_PLAIN: Any = (list, tuple)


def recompute_sequential(ctx: Mapping[str, Any], functions: Any, *args: Any, **kwargs: Any) -> Any:
    """What the functions give, one after the other, in `segments` segments that are each as a call of `recompute`.

    ctx: "segments" (1) and "preserve_rng_state" (True). functions: a list or tuple of callables, or what has `layers`,
    as the Sequential of flax linen, nnx and equinox has. args and kwargs go to the first function; a result that is a
    tuple is spread over the arguments of the next, anything else is its one argument. Batches may have any size.

    The segments differ by at most one function in length, and all of them are recomputed; Paddle's last one is not.
    Raises `TypeError` and `ValueError` for another `ctx`, other functions, and more segments than functions.
    """
    said = _checked(ctx)
    stages = _stages(functions)
    switches = [switches_of("recompute_sequential", stage, said["preserve_rng_state"]) for stage in stages]
    result: Any = None
    for first, end in pairwise(_borders(said["segments"], len(stages))):
        result = called(_chain(stages[first:end], first), args, kwargs, Kind.SEGMENT, switches[first])
        args, kwargs = _spread(result), {}
    return result


def _checked(ctx: object) -> dict[str, Any]:
    if not isinstance(ctx, Mapping):
        raise TypeError(f"recompute_sequential: ctx is a dict such as {{'segments': 2}}, not {kind_of(ctx)}")
    given: dict[Any, Any] = dict(ctx)  # pyright: ignore[reportUnknownArgumentType]
    if unknown := [key for key in given if key not in DEFAULTS]:
        raise ValueError(f"recompute_sequential: ctx has no {unknown[0]!r}; known are {', '.join(DEFAULTS)}")
    return {**DEFAULTS, **given}


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
    """Where segments begin, and the end; the longer ones come first."""
    if not isinstance(segments, int) or isinstance(segments, bool):
        raise TypeError(f"recompute_sequential: segments is an int, not {kind_of(segments)}")
    if segments < 1:
        raise ValueError(f"recompute_sequential: segments is at least 1, not {segments}")
    if segments > count:
        raise ValueError(f"recompute_sequential: {segments} segments cannot be made of {count} functions")
    size, longer = divmod(count, segments)
    return list(accumulate((size + (index < longer) for index in range(segments)), initial=0))


def _chain(stages: Sequence[Callable[..., Any]], first: int) -> Callable[..., Any]:
    """Several stages as one function, which the segment is called by."""

    def chain(*args: Any, **kwargs: Any) -> Any:
        result = stages[0](*args, **kwargs)
        for stage in stages[1:]:
            result = stage(*_spread(result))
        return result

    chain.__name__ = f"stages{first}to{first + len(stages) - 1}"
    return chain


def _spread(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
