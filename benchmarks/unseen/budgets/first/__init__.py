"""The registry of the sixteen steps that the first author wrote."""

from __future__ import annotations

from recompute.benchmarks.unseen.budgets.first import image_models, learning, sequence_models
from recompute.benchmarks.unseen.step_parts import Builder

FIRST: dict[str, Builder] = {**image_models.STEPS, **sequence_models.STEPS, **learning.STEPS}
