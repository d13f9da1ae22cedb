"""Name a part of the forward pass, and optionally mark it as recomputed or saved."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch.fx.traceback as traceback

from ...support.suggestions import suggestion
from .fx.node_locations import POLICY, REGION

POLICIES = ("recompute", "save")


@contextmanager
def region(name: str, policy: str = "") -> Generator[None]:
    """Name the operations inside the context, so that `segments=` can refer to them.

    Args:
        name: The name of the segment.
        policy: `"recompute"` or `"save"` applies to the operations inside the context, regardless of the options. By
            default, the options determine which operations are recomputed.

    Raises:
        ValueError: For an invalid name or an unknown policy.

    Example:
        >>> with recompute.torch.region("attn", policy="recompute"):  # doctest: +SKIP
        ...     y = attention(x)
    """
    if not name or "/" in name:
        raise ValueError(f"region: invalid name {name!r}: expected a non-empty name without '/'")
    if policy not in ("", *POLICIES):
        raise ValueError(f"region: unknown policy '{policy}'{suggestion(policy, POLICIES)}")
    with traceback.annotate({REGION: name, POLICY: policy} if policy else {REGION: name}):
        yield
