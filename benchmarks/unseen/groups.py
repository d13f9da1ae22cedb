"""Groups of unseen steps: those that authors of the passes could read, those held back, and loops."""

from __future__ import annotations

from recompute.benchmarks.unseen.all_steps import HELD_BACK, OPEN
from recompute.benchmarks.unseen.gradient_loops import LOOPS

from .common import Builder

GROUPS: dict[str, dict[str, Builder]] = {"open": OPEN, "held_back": HELD_BACK, "loops": LOOPS}
