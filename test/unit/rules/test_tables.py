"""Facts as tables: a missing entry shows here, not as a silent refusal to recompute."""

from __future__ import annotations

import pytest

from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.stablehlo import STABLEHLO
from recompute.rules.effects import IMPURE, PURE, PURE_IF_BODY_IS, TERMINATORS

TABLES = {"PURE": PURE, "PURE_IF_BODY_IS": PURE_IF_BODY_IS, "TERMINATORS": TERMINATORS, "IMPURE": IMPURE}


@pytest.mark.parametrize("name", sorted(op.name for op in (*STABLEHLO.operations, *RECOMPUTE.operations)))
def test_every_operation_with_a_class_is_in_one_table_of_effects(name: str) -> None:
    assert len([table for table, names in TABLES.items() if name in names]) == 1


@pytest.mark.parametrize("name", ["stablehlo.rng", "stablehlo.custom_call", "stablehlo.send", "stablehlo.all_reduce"])
def test_what_must_not_run_twice(name: str) -> None:
    """Written out by hand, so that nobody moves them by accident."""
    assert name in IMPURE
    assert name not in PURE and name not in PURE_IF_BODY_IS
