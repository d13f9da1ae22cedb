"""The registry of the steps for budgets. It maps names to builders."""

from __future__ import annotations

from recompute.benchmarks.unseen.budgets.first import FIRST
from recompute.benchmarks.unseen.budgets.second import SECOND
from recompute.benchmarks.unseen.step_parts import Builder

BUDGETS: dict[str, Builder] = {**FIRST, **SECOND}
"""The builders by name. Two authors wrote one half each, without having seen the planner or the other half."""
