"""Apply the checkpointing of a link: chunks or slots."""

from __future__ import annotations

from ...analysis.copies.loop_chunks import Chunks, SavedCarries, Slots
from ..plans.apply_plan import Numbers
from .binomial import in_slots
from .carries import Replaced
from .periodic import in_chunks
from .replace import erase_loop


def carry_out(held: SavedCarries, numbers: Numbers, replaced: Replaced) -> int:
    """Replace both loops and extend `replaced`. Returns the number of copies."""
    if isinstance(held, Chunks):
        copies = in_chunks(held, numbers, replaced)
    else:
        assert isinstance(held, Slots), "chunks or slots"
        copies = in_slots(held, numbers, replaced)
    erase_loop(held.link.reader)  # First: it reads results of the writer.
    erase_loop(held.link.writer)
    return copies
