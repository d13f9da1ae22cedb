"""The kinds of marks on results: the strings of the attribute `recompute.recompute`."""

from __future__ import annotations

from enum import StrEnum


class MarkKind(StrEnum):
    """The mark of one result. `MUST` always applies; `PREFER` is dropped if it does not reduce memory.

    The names are those of PyTorch's `CheckpointPolicy`; `OFFLOAD` marks a saved value that may be moved to the host.
    """

    MUST_SAVE = "must_save"
    PREFER_SAVE = "prefer_save"
    PREFER_RECOMPUTE = "prefer_recompute"
    MUST_RECOMPUTE = "must_recompute"
    OFFLOAD = "offload"

    @property
    def recomputes(self) -> bool:
        return self in (MarkKind.MUST_RECOMPUTE, MarkKind.PREFER_RECOMPUTE)
