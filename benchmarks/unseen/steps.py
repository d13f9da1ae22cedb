"""The registries of both halves: name → builder."""

from __future__ import annotations

from .common import Builder
from .open import convolutions, dense, generative, losses, sequences, transformers, tuning

OPEN: dict[str, Builder] = {
    **convolutions.STEPS,
    **sequences.STEPS,
    **transformers.STEPS,
    **tuning.STEPS,
    **dense.STEPS,
    **generative.STEPS,
    **losses.STEPS,
}
HELD_BACK: dict[str, Builder] = {}
