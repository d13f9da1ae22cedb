"""Drop the option `offload` on platforms without a separate host memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .jit_options import JitOptions

NO_HOST = (
    "offload= has no effect: on {platform}, device memory is host memory, so XLA drops the moves; "
    "values are saved or recomputed instead"
)


def supported_options(options: JitOptions, platforms: Sequence[str]) -> tuple[JitOptions, tuple[str, ...]]:
    """Return the options for these platforms, and a remark if `offload` was removed because it has no effect there.

    JAX emits moves to the host only for GPU and TPU.
    """
    hostless = next((platform for platform in platforms if platform == "cpu"), None)
    if not options.rewrite.moves.offers or hostless is None:
        return options, ()
    remark = NO_HOST.format(platform=hostless)
    return replace(options, rewrite=replace(options.rewrite, offload="")), (remark,)
