"""The registry of the steps for budgets: name → builder."""

from __future__ import annotations

from ..common import Builder
from . import images, learning, memories, pictures, relations, sequences

FIRST: dict[str, Builder] = {**pictures.STEPS, **sequences.STEPS, **learning.STEPS}
SECOND: dict[str, Builder] = {**images.STEPS, **memories.STEPS, **relations.STEPS}
BUDGETS: dict[str, Builder] = {**FIRST, **SECOND}
"""Steps for budgets: 5 to 100 MB of temporaries each, of different structure, written before any of them was planned.
Two authors wrote a half each, without having seen the planner or the other half."""
