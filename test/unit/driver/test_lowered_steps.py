"""Lowered steps are accepted whether or not their `as_text` can print locations."""

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.driver.budgets.fit import Verdict
from recompute.test.unit.tools.plan.test_planned_step import KIB, STEP


class WithoutLocations:
    """A lowered step whose `as_text` takes no `debug_info`."""

    def as_text(self) -> str:
        return STEP


class WithLocations:
    """A lowered step of JAX."""

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        assert debug_info and dialect is None
        return STEP


class Wrapper:
    """A lowered step that prints no locations around one that does."""

    lowered = WithLocations()

    def as_text(self) -> str:
        raise AssertionError("the wrapped step prints locations")


@pytest.mark.parametrize("lowered", [WithoutLocations(), WithLocations(), Wrapper()])
def test_lowered_step_need_not_print_locations(lowered: WithoutLocations | WithLocations | Wrapper) -> None:
    assert recompute.fit(lowered, "28KiB").verdict is Verdict.RECOMPUTED
    assert recompute.rewrite(lowered).text == recompute.rewrite(STEP).text
    assert recompute.memory(lowered)["step"].peak_bytes == 20 * KIB


def test_lowered_step_of_equinox_has_locations() -> None:
    jax: Any = pytest.importorskip("jax")
    eqx: Any = pytest.importorskip("equinox")
    net = eqx.nn.MLP(16, 16, 64, 4, key=jax.random.key(0))

    def loss(net: Any, x: Any) -> Any:
        return jax.numpy.sum(jax.vmap(net)(x) ** 2)

    lowered = eqx.filter_jit(eqx.filter_grad(loss)).lower(net, jax.numpy.ones((256, 16)))
    assert recompute.fit(lowered, "60%").verdict is Verdict.RECOMPUTED
    assert "test_lowered_steps.py" in recompute.rewrite(lowered).text
