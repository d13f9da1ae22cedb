"""The registry of the fourteen steps that the second author wrote."""

from __future__ import annotations

from recompute.benchmarks.unseen.budgets.second import image_steps, relations, series_steps
from recompute.benchmarks.unseen.step_parts import Builder

SECOND: dict[str, Builder] = {**image_steps.STEPS, **series_steps.STEPS, **relations.STEPS}
