"""Registry of the steps for budgets: names → builders."""

from __future__ import annotations

from ..common import Builder
from .first import FIRST
from .second import SECOND

BUDGETS: dict[str, Builder] = {**FIRST, **SECOND}
"""The builders by name. Two authors wrote one half each, without having seen the planner or the other half."""
