"""Memory by module of the model: bytes saved for the backward pass before and after the rewrite, and bytes recomputed.

    LM/Block_0    saves 3.7 MiB in the plain step, 128.0 KiB now, and recomputes 3.5 MiB

Modules are the named scopes of the operations, as set by flax, `jax.named_scope` and `recompute.jax.block`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..analysis.memory.timeline import Timeline
from .memory_layers import BandKind, kinds_of, shorten_segments

OUTSIDE = "outside modules"


@dataclass(frozen=True)
class ModuleRow:
    """Memory of one module, in bytes.

    Attributes:
        module: Path of its scopes; `OUTSIDE` for operations without a scope.
        plain_bytes: Size of the values that the plain step saves for the backward pass.
        saved_bytes: Size of the values that the rewritten step saves.
        recomputed_bytes: Size of the values that the rewritten step recomputes.
    """

    module: str
    plain_bytes: int
    saved_bytes: int
    recomputed_bytes: int


def module_rows(pairs: Iterable[tuple[Timeline, Timeline]]) -> tuple[ModuleRow, ...]:
    """Return a row for each module with saved or recomputed bytes, in program order.

    `pairs`: for each step the timeline of the plain and of the rewritten step.
    """
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
    """Return the short path of each module, cut at the outermost level with two names. Operations outside modules
    come last."""
    paths = list(dict.fromkeys(buffer.module for timeline in timelines for buffer in timeline.buffers))
    short = {path: name or OUTSIDE for path, name in shorten_segments(paths).items()}
    return dict(sorted(short.items(), key=lambda item: item[1] == OUTSIDE))
