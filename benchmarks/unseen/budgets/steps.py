"""The registry: name → builder."""

from __future__ import annotations

from ..common import Builder
from . import images, relations, sequences

STEPS: dict[str, Builder] = {**images.STEPS, **sequences.STEPS, **relations.STEPS}
