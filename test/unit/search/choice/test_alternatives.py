"""The comparison of the results of two runs of the stages."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import UNCUT
from recompute.search.choice.alternatives import (
    is_better_with_joined_branches,
    loops_alone,
    may_be_better_with_calls_in_place,
    unless_calls_raise_peak,
)
from recompute.search.choice.unchanged_steps import UNCHANGED, remark_on_unchanged_step
from recompute.search.outcome import Recomputation, RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.support.remarks import Remark
from recompute.transforms.calls.restore import Restored


def products(size: str) -> ModuleOp:
    """Return a step with a temporary of size x size numbers, which XLA stores too."""
    kind = f"tensor<{size}x{size}xf32>"
    product = f"contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}"
    return parse_module(f"""
func.func public @main(%x: {kind}) -> {kind} {{
  %a = stablehlo.dot_general %x, %x, {product}
  %b = stablehlo.dot_general %a, %a, {product}
  func.return %b : {kind}
}}""")


def fused(size: int) -> ModuleOp:
    """Return a step with a temporary of size x size numbers, which XLA fuses away."""
    kind = f"tensor<{size}x{size}xf32>"
    return parse_module(f"""
func.func public @main(%x: {kind}) -> {kind} {{
  %a = stablehlo.tanh %x : {kind}
  %b = stablehlo.sine %a : {kind}
  func.return %b : {kind}
}}""")


def result_of(module: ModuleOp | None, *remarks: Remark, lost: frozenset[str] = frozenset()) -> RewriteResult:
    return RewriteResult(module, Recomputation((), remarks, restored_calls=Restored(0, 0, {}, lost)), UNCUT)


@pytest.mark.parametrize("keeps_barriers", [False, True])
@pytest.mark.parametrize(("joined", "is_better"), [("8", True), ("16", False), ("20", False)])
def test_joined_branches_must_lower_the_peak(joined: str, is_better: bool, keeps_barriers: bool) -> None:
    results = result_of(products(joined)), result_of(products("16"))
    assert is_better_with_joined_branches(*results, products("1"), keeps_barriers) == is_better


def test_joined_branches_are_compared_with_the_original_if_the_other_run_changes_nothing() -> None:
    assert is_better_with_joined_branches(result_of(products("8")), result_of(None), products("16"), True)
    assert not is_better_with_joined_branches(result_of(products("8")), result_of(None), products("8"), True)


def test_joined_branches_that_change_nothing_are_not_better() -> None:
    assert not is_better_with_joined_branches(result_of(None), result_of(products("16")), products("1"), True)


def test_memory_model_of_the_target_compares_joined_branches() -> None:
    """XLA fuses the larger temporary away, and an executor in program order stores it."""
    results = result_of(fused(20)), result_of(products("16"))
    assert is_better_with_joined_branches(*results, products("1"), keeps_barriers=True)
    assert not is_better_with_joined_branches(*results, products("1"), keeps_barriers=False)


def test_steps_with_dynamic_shapes_are_not_compared() -> None:
    with pytest.raises(Refusal):
        is_better_with_joined_branches(result_of(products("?")), result_of(products("16")), products("16"), False)


def test_cut_loops_alone_keep_the_remarks_of_the_vetoed_copies() -> None:
    module = products("8")
    vetoed = result_of(None, remark_on_unchanged_step(module, "no peak falls"))
    alone = result_of(module, Remark(module, "a remark of the second run"))
    result = loops_alone(vetoed, alone)
    assert result.module is module
    assert [remark.reason for remark in result.outcome.remarks] == [
        "no peak falls: the rest of the step is left as it is"
    ]
    assert vetoed.outcome.remarks[0].reason.endswith(UNCHANGED)


def test_functions_stay_inlined_only_if_calls_raise_the_peak() -> None:
    restored, inlined = result_of(products("16")), result_of(products("8"))
    result = unless_calls_raise_peak(restored, inlined)
    (remark,) = result.outcome.remarks
    assert result.module is inlined.module
    assert remark.reason.startswith("functions stay inlined: restoring their calls would raise the peak")
    assert "from 256 bytes to 1.0 KiB (1024 bytes)" in remark.reason
    assert unless_calls_raise_peak(restored, result_of(products("16"))) is restored
    assert unless_calls_raise_peak(restored, result_of(None)) is restored


def test_lost_attributes_suggest_calls_in_place() -> None:
    assert may_be_better_with_calls_in_place(result_of(products("8"), lost=frozenset({"f"})))
    assert not may_be_better_with_calls_in_place(result_of(products("8")))
