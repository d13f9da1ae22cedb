"""Steps of `examples/loops`: rewritten, proved by the rules for loops, with equal results."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.order import functions_of
from recompute.dialects.context import make_context
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.meter import meter
from recompute.mlir_io.parser import parse_module
from recompute.test.examples import FOLDER
from recompute.test.unit.frontends.jax.steps import jax, jnp
from recompute.transforms.inline import inline

pytestmark = pytest.mark.slow

ODE = FOLDER.parent / "loops" / "ode.mlir"


@pytest.mark.parametrize("name", ["transformer", "lstm", "accumulation", "ode"])
def test_proved_and_executed_equal(name: str) -> None:
    step = import_module(f"recompute.examples.loops.{name}").build("small")
    text = step.lower().as_text(debug_info=True)
    result = recompute.rewrite(text)
    assert result.proof is not None and result.proof.tier == 2
    assert any("of new stacks: the loop" in str(remark) for remark in result.remarks)
    # The remark on the remaining step does not claim that nothing was recomputed.
    assert all(
        "in the rest of the step: " in str(remark) for remark in result.remarks if "not recomputed: " in str(remark)
    )
    assert result.memory()["main"][1].peak_bytes < 0.75 * result.memory()["main"][0].peak_bytes
    draw = np.random.default_rng(0)
    given = [drawn(draw, leaf) for leaf in jax.tree.leaves(step.arguments)]
    before = parse_module(text, "step.mlir", make_context())
    assert compare(before, result.module, given).equal
    for module in (before, result.module):
        inline(module)
        (function,) = functions_of(module)
        # What is counted is what the interpreter owns, at every operation.
        assert meter(function, given)[1].live_bytes == timeline(function).live_bytes


def drawn(draw: Any, of: Any) -> Any:
    if np.issubdtype(of.dtype, np.integer):
        return np.asarray(5, of.dtype)
    return draw.normal(0, 0.3, of.shape).astype(of.dtype)


def test_flax_layers_in_a_loop_are_proved_with_loop_rules() -> None:
    pytest.importorskip("flax")
    step = import_module("recompute.examples.loops.flax_transformer").build("small")
    result = recompute.rewrite(step.lower().as_text(debug_info=True))
    assert result.proof is not None and result.proof.tier == 2
    assert any("of new stacks: the loop" in str(remark) for remark in result.remarks)


def test_loop_of_run_time_length_is_left_with_a_reason() -> None:
    result = recompute.rewrite(
        ODE.read_text(), recompute.RecomputeOptions(selection=recompute.Selection(primal_results=(0,)))
    )
    assert result.copies == 0
    (output,) = [str(remark) for remark in result.remarks if "the loop is left" in str(remark)]
    assert "does not increase by one up to a constant" in output


def test_run_time_length_loop_matches_jax_gradient() -> None:
    draw = np.random.default_rng(1)
    w, x = (draw.normal(size=8).astype(np.float32) for _ in range(2))

    def solved(w: Any, x: Any) -> Any:
        for _ in range(7):
            x = x + 0.1 * jnp.tanh(w * x)
        return x

    results = execute(function_named(parse_module(ODE.read_text(), "ode.mlir")), [np.int32(7), np.float32(0.1), w, x])
    dw, dx = jax.grad(lambda w, x: solved(w, x).sum(), (0, 1))(w, x)
    for ours, theirs in zip(results, (solved(w, x), dx, dw), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
