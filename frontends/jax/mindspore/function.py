"""`mindspore.recompute`: one call of a function, computed again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ....analysis.request.called import Switches
from .. import checked
from ..called import called

R = TypeVar("R")


def recompute(
    block: Callable[..., R], *args: Any, use_reentrant: bool = True, output_recompute: bool = False, **kwargs: Any
) -> R:
    """`block(*args, **kwargs)`, of which only the arguments and the results are kept for the backward pass.

    use_reentrant: means nothing here: there is no tape, and complex types are differentiated either way.
    output_recompute: what the block returns is computed again too. Blocks behind one another stay apart.

    Inside of another such call the outer one counts. Raises `TypeError` for what cannot be called.
    """
    checked.a_callable("recompute", block)
    checked.flags("recompute", use_reentrant=use_reentrant, output_recompute=output_recompute)
    return called(block, args, kwargs, switches=Switches(output_recompute=output_recompute))
