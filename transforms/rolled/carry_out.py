"""What is to be held of a link, carried out."""

from __future__ import annotations

from ...analysis.copies.loop_chunks import Chunks, Held, Slots
from ..plans.apply_plan import Numbers
from .binomial import in_slots
from .carries import Replaced
from .periodic import in_chunks
from .replace import erase_loop


def carry_out(held: Held, numbers: Numbers, replaced: Replaced) -> int:
    """How many copies are made. Both loops are replaced by others; `replaced` is added to."""
    if isinstance(held, Chunks):
        copies = in_chunks(held, numbers, replaced)
    else:
        assert isinstance(held, Slots), "one or the other"
        copies = in_slots(held, numbers, replaced)
    erase_loop(held.link.reader)  # First: it reads what the other hands on.
    erase_loop(held.link.writer)
    return copies
