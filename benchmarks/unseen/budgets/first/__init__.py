"""Registry of the sixteen steps that the first author wrote."""

from __future__ import annotations

from ...common import Builder
from . import images, learning, sequences

FIRST: dict[str, Builder] = {**images.STEPS, **sequences.STEPS, **learning.STEPS}
