"""Memory by module of the model: bytes saved for the backward pass before and after, and bytes computed again.

    LM/Block_0    saves 3.7 MiB in the plain step, 128.0 KiB now, and recomputes 3.5 MiB

Modules are the named scopes of the operations: those of flax, of `jax.named_scope`, and of `recompute.jax.block`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..analysis.memory.timeline import Timeline
from .memory_layers import BandKind, kinds_of, shortened

OUTSIDE = "outside modules"


@dataclass(frozen=True)
class ModuleRow:
    """One module, and the bytes of its values.

    Attributes:
        module: The path of its scopes; `OUTSIDE` for operations without a scope.
        plain_bytes: Saved for the backward pass by the plain step.
        saved_bytes: Saved by the rewritten step.
        recomputed_bytes: Computed again by the rewritten step.
    """

    module: str
    plain_bytes: int
    saved_bytes: int
    recomputed_bytes: int


def module_rows(pairs: Iterable[tuple[Timeline, Timeline]]) -> tuple[ModuleRow, ...]:
    """Return the rows of the steps' timelines, plain and rewritten, in program order; modules without bytes are left
    out."""
    plain, saved, recomputed = Counter[str](), Counter[str](), Counter[str]()
    pairs = list(pairs)
    names = _short_names([timeline for pair in pairs for timeline in pair])
    for before, after in pairs:
        for buffer, kind in zip(before.buffers, kinds_of(before), strict=True):
            plain[names[buffer.module]] += buffer.bytes * (kind is BandKind.SAVED)
        for buffer, kind in zip(after.buffers, kinds_of(after), strict=True):
            saved[names[buffer.module]] += buffer.bytes * (kind is BandKind.SAVED)
            recomputed[names[buffer.module]] += buffer.bytes * (kind is BandKind.RECOMPUTED)
    rows = [ModuleRow(name, plain[name], saved[name], recomputed[name]) for name in dict.fromkeys(names.values())]
    return tuple(row for row in rows if row.plain_bytes or row.saved_bytes or row.recomputed_bytes)


def _short_names(timelines: Sequence[Timeline]) -> dict[str, str]:
    """Return each module's path, cut at the outermost level with two names; operations outside of modules come last."""
    paths = list(dict.fromkeys(buffer.module for timeline in timelines for buffer in timeline.buffers))
    short = {path: name or OUTSIDE for path, name in shortened(paths).items()}
    return dict(sorted(short.items(), key=lambda item: item[1] == OUTSIDE))
