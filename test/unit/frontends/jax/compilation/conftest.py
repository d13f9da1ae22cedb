"""The fixture `plain`: the compiled plain step, which the tests of budgets share."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def plain() -> Any:
    from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
    from recompute.test.unit.frontends.jax.steps import jax

    return jax.jit(STEP).lower(*five_layers()).compile()
