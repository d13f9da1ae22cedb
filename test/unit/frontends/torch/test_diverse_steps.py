"""Steps that once were left alone, refused, or needed more than their budget: one case for each cause."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUntypedBaseClass=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.steps import torch

from recompute.benchmarks.torch.peak_meter import Meter  # isort: skip
from recompute.frontends.torch.program_order.graph_peaks import program_order_peak  # isort: skip
from recompute.frontends.torch.partition.joint_graph_step import JointStep  # isort: skip
import recompute.torch as rt  # isort: skip

functional = torch.nn.functional
WIDTH, ROWS, LAYERS = 32, 64, 5


class Tanh(torch.autograd.Function):
    """A product and its `tanh`; PyTorch traces the view `x.T` of its backward pass as a part of the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        y = torch.tanh(x @ weight)
        ctx.save_for_backward(x, weight, y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, weight, y = ctx.saved_tensors
        inner = gradient * (1 - y * y)
        return inner @ weight.T, x.T @ inner


def custom_function(weights: list[Any], x: Any) -> Any:
    for weight in weights:
        x = Tanh.apply(x, weight)
    return x.square().mean()


def checked_classes(weights: list[Any], x: Any) -> Any:
    """`one_hot` checks its classes: an operation without results, which must not run in the backward pass, too."""
    total = x.new_zeros(())
    for weight in weights:
        x = torch.tanh(x @ weight)
        classes = functional.one_hot(x.argmax(-1), WIDTH).to(x.dtype)
        total = total + (classes.mean(0) * x.mean(0)).sum()
    return x.square().mean() + total


def gamma_samples(weights: list[Any], x: Any) -> Any:
    for weight in weights:
        x = torch.tanh(x @ weight)
        x = x * torch._standard_gamma(functional.softplus(x) + 1)
    return x.square().mean()


def learned_quantization(weights: list[Any], x: Any) -> Any:
    scale, zero = weights[0].abs().mean(1) + 0.1, torch.zeros(WIDTH)
    for weight in weights:
        rounded = torch._fake_quantize_learnable_per_channel_affine(weight, scale, zero, 0, -127, 127, 1.0)
        x = torch.tanh(torch.tanh(x @ rounded) * 2)
    return x.square().mean()


def spectra(weights: list[Any], x: Any) -> Any:
    """The gradient of a one-sided transform is copied into a slice: a result with gaps in its storage."""
    for weight in weights:
        frequencies = torch.fft.rfft(x @ weight)
        x = x + torch.fft.irfft(torch.polar(frequencies.abs().tanh(), frequencies.angle()), n=WIDTH)
    return x.square().mean()


STEPS = [custom_function, checked_classes, gamma_samples, learned_quantization, spectra]


def results(step: Callable[..., Any]) -> tuple[list[Any], int]:
    """Return the loss, the gradients and the random state of the second step, and its peak in bytes."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 4) for _ in range(LAYERS)]
    x = torch.randn(ROWS, WIDTH)
    step(weights, x).backward()
    for weight in weights:
        weight.grad = None
    with Meter([*weights, x]) as meter:
        loss = step(weights, x)
        loss.backward()
    return [loss.detach(), *(weight.grad for weight in weights), torch.get_rng_state()], meter.peak_bytes


@pytest.mark.parametrize("function", STEPS, ids=lambda function: function.__name__)
def test_step_is_within_its_budget_and_equal(function: Any) -> None:
    torch._dynamo.reset()
    step = rt.compile(function, budget="80%")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rt.NothingSaved)
        ours, peak_bytes = results(step)
    theirs, _ = results(function)
    assert all(map(torch.equal, ours, theirs))
    (graph,) = step.report().graphs
    assert graph.copies and not graph.reason
    assert graph.peak_bytes <= 0.8 * graph.plain_bytes
    assert peak_bytes <= graph.peak_bytes + 256  # scalars of the loop that calls the step


@pytest.mark.parametrize("budget", [None, "50%", "1MB", "min"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_backward_pass_without_operations_is_left_alone(backend: str, budget: str | None) -> None:
    torch._dynamo.reset()
    step = rt.compile(lambda x, y: x + y, budget=budget, backend=backend, fullgraph=True)
    x = torch.ones(8, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rt.NothingSaved)
        step(x, x * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0] * 8
    assert step.report().graphs[0].reason == "its backward pass has no operations, so no value is saved for it"


def test_backward_pass_without_operations_has_a_limit_in_bytes() -> None:
    torch._dynamo.reset()
    step = rt.compile(lambda x, y: x + y, budget=8)
    with pytest.raises(Exception, match="no plan within 8 bytes: its backward pass has no operations"):
        step(torch.ones(8, requires_grad=True), torch.ones(8))


def test_peak_in_program_order_counts_each_copy_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of one value have the same fake value, and storages of their own."""
    torch._dynamo.reset()
    peaks = list[tuple[int, int]]()
    split = JointStep.split

    def compared(self: JointStep, rewritten: Any) -> Any:
        halves = split(self, rewritten)
        peaks.append((rewritten.peak.temporary_bytes, program_order_peak(halves, self.num_fwd_outputs)))
        return halves

    monkeypatch.setattr(JointStep, "split", compared)
    results(rt.compile(custom_function, budget="min"))
    ((planned, estimated),) = peaks
    assert planned == estimated
