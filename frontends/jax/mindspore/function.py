"""`mindspore.recompute`: one call of a function, recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ....analysis.request.scope_names import Switches
from .. import checked
from ..called import called

R = TypeVar("R")


def recompute(
    block: Callable[..., R], *args: Any, use_reentrant: bool = True, output_recompute: bool = False, **kwargs: Any
) -> R:
    """Call `block(*args, **kwargs)`; the backward pass saves only its arguments and results, and recomputes the rest.

    use_reentrant: Has no effect: there is no tape, and complex types are differentiated either way.
    output_recompute: The results are recomputed too. Consecutive blocks stay separate segments.

    Inside another such call, the outer one counts. Raises `TypeError` if `block` is not callable, or for a switch that
    is neither True nor False.
    """
    checked.a_callable("recompute", block)
    checked.flags("recompute", use_reentrant=use_reentrant, output_recompute=output_recompute)
    return called(block, args, kwargs, switches=Switches(output_recompute=output_recompute))
