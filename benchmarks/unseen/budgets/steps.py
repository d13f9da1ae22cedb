"""The registry of the steps for budgets: name → builder."""

from __future__ import annotations

from ..common import Builder
from .first import FIRST
from .second import SECOND

BUDGETS: dict[str, Builder] = {**FIRST, **SECOND}
"""Steps for budgets: 5 to 100 MB of temporaries each, of different structure, written before any of them was planned.
Two authors wrote a half each, without having seen the planner or the other half."""
