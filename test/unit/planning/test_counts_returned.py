"""For an executor like PyTorch, returned values count in the peak, and constants are allocated."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

import recompute
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.planning.liveness import live_bytes
from recompute.planning.solvers.solve_graph import problem_of_graph

KIB = 1024


def call(result: str, name: str, operands: str, types: str, phase: str, args: str = "%0") -> str:
    node = result.split(",")[0].strip("%")
    return (
        f'{result} = "torch.aten.{name}"({operands}) {{torch.args = "{args}", torch.node = "{node}", '
        f'recompute.phase = "{phase}"}} : {types}\n'
    )


T = "tensor<256xf32>"
LOSS_BACKWARD = f"(tensor<f32>, {T}, {T}) -> {T}"
ONE, TWO = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
STEP = (
    f"func.func @step(%x: {T}, %g: {T}) -> ({T}, {T}) {{\n"
    + call("%mask", "ones.default", "", f"() -> {T}", "primal", "[256]")
    + call("%a", "mul.Tensor", "%x, %mask", TWO, "primal", "%0, %1")
    + call("%b", "exp.default", "%a", ONE, "primal")
    + call("%loss", "tanh.default", "%b", ONE, "primal")
    + call("%d", "tanh_backward.default", "%g, %loss", TWO, "gradient", "%0, %1")
    + call("%e", "mul.Tensor", "%d, %b", TWO, "gradient", "%0, %1")
    + call("%f", "mul.Tensor", "%e, %mask", TWO, "gradient", "%0, %1")
    + f"func.return %loss, %f : {T}, {T}\n}}"
)


def test_live_bytes_at_each_operation_match_pytorch() -> None:
    """The constant mask counts, and returned values count from their definition to the end."""
    ((_, step),) = numbered_steps(parse_module(STEP))
    kib = [count // KIB for count in live_bytes(step.graph).tolist()]
    assert kib == [1, 2, 3, 3, 4, 5, 4, 2]
    timeline = recompute.memory(STEP)["step"]
    assert (timeline.peak_bytes, timeline.result_bytes, timeline.argument_bytes) == (5 * KIB, 0, 2 * KIB)


def test_returned_value_is_not_recomputed() -> None:
    ((_, step),) = numbered_steps(parse_module(STEP))
    problem = problem_of_graph(step.graph)
    again = {problem.names[op] for op in range(len(problem)) if problem.may_run_again[op]}
    assert "torch.aten.tanh.default" not in again
    assert {"torch.aten.exp.default", "torch.aten.ones.default"} <= again


def test_minimum_plan_returns_original_loss() -> None:
    options = recompute.RecomputeOptions(budget="min", target="none", stagger=False)
    rewritten = recompute.rewrite(STEP, options)
    before, after = rewritten.memory()["step"]
    assert rewritten.copies and after.peak_bytes < before.peak_bytes
    (function,) = functions_of(rewritten.module)
    terminator = function.body.block.last_op
    assert terminator is not None
    loss = terminator.operands[0].owner
    assert isinstance(loss, Operation) and "recompute.copy" not in loss.attributes


def test_only_returned_results_stay_alive() -> None:
    """Only the returned result of an operation stays alive, not the statistics beside a batch normalization."""
    two = (
        f"func.func @step(%x: {T}, %g: {T}) -> ({T}, {T}) {{\n"
        + call("%a", "exp.default", "%x", ONE, "primal")
        + call("%y, %new", "batch_norm_stats.default", "%a", f"({T}) -> ({T}, {T})", "primal", "%0, 1e-05")
        + call("%loss", "exp.default", "%y", ONE, "primal")
        + call("%d", "mul.Tensor", "%g, %loss", TWO, "gradient", "%0, %1")
        + call("%f", "mul.Tensor", "%d, %y", TWO, "gradient", "%0, %1")
        + f"func.return %new, %f : {T}, {T}\n}}"
    )
    ((_, step),) = numbered_steps(parse_module(two))
    problem = problem_of_graph(step.graph)
    assert problem.may_run_again[1] and problem.results_of(1) == range(1, 2)
    assert set(problem.inner_bytes.tolist()) == {KIB}


@pytest.mark.parametrize("budget", ["min", "4KiB"])
def test_budget_includes_the_returned_gradients(budget: str) -> None:
    text = budget if budget == "min" else f"{(4 + 2) * KIB}B"
    options = recompute.RecomputeOptions(budget=text, target="none", stagger=False)
    rewritten = recompute.rewrite(STEP, options)
    assert rewritten.proof is not None and rewritten.proof.proved
    assert rewritten.memory()["step"][1].peak_bytes <= 4 * KIB


def test_mean_loss_keeps_storage_of_its_operand() -> None:
    """A scalar loss has the size of its operand: PyTorch reduces some losses in place."""
    loss = (
        f"func.func @step(%x: {T}, %g: tensor<f32>) -> (tensor<f32>, {T}) {{\n"
        + call("%a", "exp.default", "%x", ONE, "primal")
        + call("%loss", "mse_loss.default", "%a, %x", f"({T}, {T}) -> tensor<f32>", "primal", "%0, %1")
        + call(
            "%d",
            "mse_loss_backward.default",
            "%g, %a, %x",
            f"(tensor<f32>, {T}, {T}) -> {T}",
            "gradient",
            "%0, %1, %2, 1",
        )
        + f"func.return %loss, %d : tensor<f32>, {T}\n}}"
    )
    ((_, step),) = numbered_steps(parse_module(loss))
    assert [count // KIB for count in live_bytes(step.graph).tolist()] == [1, 2, 3, 2]
