"""Whether the platform has a memory of its host's that values can be moved to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .options import Options

NO_HOST = (
    "offload={offload!r} moves nothing here: on {platform} the device's memory is the host's, and XLA drops the moves; "
    "values are kept or made again"
)


def honoured(options: Options, platforms: Sequence[str]) -> tuple[Options, tuple[str, ...]]:
    """The options for these platforms, and what is said of an `offload` that would do nothing.

    JAX writes moves for GPU and TPU alone.
    """
    without = next((platform for platform in platforms if platform == "cpu"), None)
    if not options.rewrite.offload or without is None:
        return options, ()
    said = NO_HOST.format(offload=options.rewrite.offload, platform=without)
    return replace(options, rewrite=replace(options.rewrite, offload="")), (said,)
