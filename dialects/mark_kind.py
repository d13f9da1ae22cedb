"""The kinds of marks on results: the string values of the attribute `recompute.recompute`."""

from __future__ import annotations

from enum import StrEnum


class MarkKind(StrEnum):
    """The mark of one result. A `MUST` mark always applies; a `PREFER` mark is ignored if it does not reduce memory.

    All names except `OFFLOAD` are taken from PyTorch's `CheckpointPolicy`. `OFFLOAD` marks a saved value that may be
    moved to the host.
    """

    MUST_SAVE = "must_save"
    PREFER_SAVE = "prefer_save"
    PREFER_RECOMPUTE = "prefer_recompute"
    MUST_RECOMPUTE = "must_recompute"
    OFFLOAD = "offload"

    @property
    def recomputes(self) -> bool:
        return self in (MarkKind.MUST_RECOMPUTE, MarkKind.PREFER_RECOMPUTE)
