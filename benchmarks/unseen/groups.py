"""Groups of unseen steps: those that authors of the passes could read, those held back, and loops."""

from __future__ import annotations

from .common import Builder
from .loops import LOOPS
from .steps import HELD_BACK, OPEN

GROUPS: dict[str, dict[str, Builder]] = {"open": OPEN, "held_back": HELD_BACK, "loops": LOOPS}
