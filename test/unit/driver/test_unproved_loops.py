"""If a rewrite is not proved, the loops are left unchanged, unless a plan is given."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.driver import api
from recompute.driver.rewrites import proved_rewrite
from recompute.driver.verification.assumptions import Assumptions
from recompute.driver.verification.verified import NotProved, prove_equal
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.planning.plan import plan_nothing
from recompute.proof.verdicts.verdict import Proof
from recompute.support.remarks import Topic
from recompute.test.unit.frontends.jax.steps import jax

REASON = "the loops differ"


def loss(w: Any, x: Any) -> Any:
    def advance(carry: Any, _: None) -> Any:
        return carry + jax.numpy.tanh(jax.numpy.sin(carry @ w)) @ w.T, None

    return jax.lax.scan(advance, x, None, length=30)[0].sum()


def step_with_loop() -> ModuleOp:
    shapes = (jax.ShapeDtypeStruct((16, 32), "float32"), jax.ShapeDtypeStruct((64, 16), "float32"))
    text = jax.jit(jax.value_and_grad(loss)).lower(*shapes).as_text(debug_info=True)
    return parse_module(text, "step.mlir")


def fail_first_proofs(patch: pytest.MonkeyPatch, count: int) -> None:
    results = list[ModuleOp]()

    def prove(before: ModuleOp, after: ModuleOp, assumptions: Assumptions) -> Proof:
        results.append(after)
        if len(results) <= count:
            raise NotProved(Proof(proved=False, reason=REASON), "nothing is returned")
        return prove_equal(before, after, assumptions)

    patch.setattr(proved_rewrite, "prove_equal", prove)


def test_unproved_loops_are_left_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    step = step_with_loop()
    assert api.rewrite(step).copies
    without_loops = api.rewrite(step, RecomputeOptions(loops=False))
    fail_first_proofs(monkeypatch, 1)
    result = api.rewrite(step)
    first, *others = result.remarks
    assert first.reason == f"loops are left unchanged, because their rewrite is not proved equal: {REASON}"
    assert first.topic is Topic.LOOPS_NOT_PROVED
    assert result.text == without_loops.text and result.copies == without_loops.copies
    assert [remark.reason for remark in others] == [remark.reason for remark in without_loops.remarks]


@pytest.mark.parametrize(
    ("options", "count"),
    [(DEFAULT_OPTIONS, 2), (RecomputeOptions(loops=False), 1), (RecomputeOptions(planner=plan_nothing), 1)],
    ids=["not proved without loops either", "no loops cut", "a planner is given"],
)
def test_unproved_result_is_an_error(monkeypatch: pytest.MonkeyPatch, options: RecomputeOptions, count: int) -> None:
    step = step_with_loop()
    fail_first_proofs(monkeypatch, count)
    with pytest.raises(NotProved):
        api.rewrite(step, options)
