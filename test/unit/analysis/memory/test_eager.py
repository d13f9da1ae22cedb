"""Saving for an executor that starts operations as soon as they are ready."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.memory.timeline import eager, eager_timeline, timeline
from recompute.analysis.step.order import functions_of, producers
from recompute.mlir_io.parser import parse_module
from recompute.support.units import readable_bytes
from recompute.test.examples import PLAIN, classified, inlined, outcome_of, phases_after, recomputed, with_tokens
from recompute.transforms.lower import lower


def eager_peak(module: ModuleOp) -> int:
    return eager_timeline(functions_of(module)[0], classified(module)).peak_bytes


@pytest.mark.slow("gpt_train", "unet", "gpt.large")
@pytest.mark.parametrize("name", PLAIN)
def test_r8_eager_peak_is_close_to_program_order_peak(name: str) -> None:
    function, phases = functions_of(recomputed(name))[0], phases_after(name)
    in_program_order = timeline(function, phases).peak_bytes
    started_early = eager_timeline(function, phases).peak_bytes
    messages = [remark.reason for remark in outcome_of(name).remarks]
    early = (
        f"peak {readable_bytes(started_early)} on an executor that starts operations as soon as their operands exist"
    )
    both = f"{early}, {readable_bytes(in_program_order)} in program order"
    assert started_early <= 1.10 * in_program_order or any(both in reason for reason in messages)


@pytest.mark.slow("gpt_train", "unet", "gpt.large")
@pytest.mark.parametrize("name", PLAIN)
def test_r8_without_tokens_nothing_is_saved(name: str) -> None:
    module = with_tokens(name).clone()
    lower(module, "none")
    assert eager_peak(module) >= 0.95 * eager_peak(inlined(name))


@pytest.mark.slow("gpt_train", "unet", "gpt.large")
@pytest.mark.parametrize("name", PLAIN)
def test_schedule_runs_operations_once_after_operands(name: str) -> None:
    before = phases_after(name)
    order = eager(before).order
    assert set(order.operations) == set(before.order.operations)
    assert len(order.operations) == len(before.order.operations)
    for op in order.operations:
        assert all(order.position[producer] < order.position[op] for producer in producers(op))


def test_forward_order_is_kept_and_ungated_copies_run_early() -> None:
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(b)/tanh")
  %g = stablehlo.negate %b : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %c = stablehlo.cosine %a : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/cos")
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %h : tensor<4xf32>
}
"""
    order = eager(classified(parse_module(text))).order
    names = [op.name.partition(".")[2] for op in order.operations]
    assert names == ["sine", "cosine", "tanh", "negate", "multiply", "return"]
