""" "Will it fit" for steps with loops, whose extra work and total count all iterations."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from recompute.driver.budgets.fit import Verdict, fit
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.frontends.jax.steps import jax


def loss(w: Any, x: Any) -> Any:
    def advance(carry: Any, _: None) -> Any:
        return carry + jax.numpy.tanh(jax.numpy.sin(carry @ w)) @ w.T, None

    return jax.lax.scan(advance, x, None, length=30)[0].sum()


def test_extra_work_is_a_share_of_all_iterations() -> None:
    shapes = (jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((64, 16), "float32"))
    text = jax.jit(jax.value_and_grad(loss)).lower(*shapes).as_text(debug_info=True)
    result = fit(parse_module(text, "step.mlir"), "30%")
    assert result.verdict is Verdict.RECOMPUTED and result.extra_percent is not None
    assert 0 < result.extra_percent < 40, "a forward pass is a third of the step, and 30 of them are 30 thirds"
