"""Registry of the fourteen steps that the second author wrote."""

from __future__ import annotations

from ...common import Builder
from . import images, relations, sequences

SECOND: dict[str, Builder] = {**images.STEPS, **sequences.STEPS, **relations.STEPS}
