"""The registry: name → builder."""

from __future__ import annotations

from ..common import Builder
from . import learning, pictures, sequences

BUDGETS: dict[str, Builder] = {**pictures.STEPS, **sequences.STEPS, **learning.STEPS}
