"""The meter of the PyTorch benchmark counts the peaks and FLOPs of steps that can be counted by hand."""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the meter measures PyTorch")

from recompute.benchmarks.torch.peak_meter import Meter  # noqa: E402
from recompute.benchmarks.torch.training_step import Outcome, meter_step, resident_bytes, training_step  # noqa: E402

KIB = 1024


def vector() -> torch.Tensor:
    """Return a tensor of 1 KiB."""
    return torch.ones(256)


def test_values_count_until_their_last_reference():
    x = vector()
    with Meter([x]) as meter:
        y = x + 1
        z = y * 2
        del y
        assert meter.live_bytes == KIB
        z = z + 1
    assert meter.measured.peak_bytes == 2 * KIB


def test_resident_tensors_and_views_are_free():
    x = vector()
    with Meter([x]) as meter:
        x.view(16, 16).t()
        x.add_(1)
        y = x.sin()
        y[:10].mul_(2)
    assert meter.measured.peak_bytes == KIB


def test_operation_holds_inputs_and_results_together():
    with Meter([]) as meter:
        y = vector()
        for _ in range(3):
            y = y.sin()
    assert meter.measured.peak_bytes == 2 * KIB


def test_values_that_autograd_saves_count():
    x = vector().requires_grad_()
    with Meter([x]) as meter:
        y = x
        for _ in range(5):
            y = y.sin()
        assert meter.live_bytes == 5 * KIB
        y.sum().backward()
    assert x.grad is not None
    # Five sines, of which the last is released before the gradient: each step of the backward pass has the cosine, the
    # gradient that is read and the one that is made.
    assert 5 * KIB < meter.measured.peak_bytes <= 8 * KIB
    del y
    assert meter.live_bytes == KIB  # the gradient


def test_flops_of_products_and_of_attention_on_the_cpu():
    q = torch.ones(2, 4, 16, 8)
    with Meter([q]) as meter:
        _ = q[0, 0] @ q[0, 0].t()
    assert meter.measured.flops == 2 * 16 * 8 * 16
    with Meter([q]) as meter:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert meter.measured.flops == 2 * (2 * 4 * 16 * 16 * 8) * 2


def test_a_replayed_random_operation_is_counted():
    from torch._prims.rng_prims import run_and_save_rng_state

    x = torch.ones(64, 64)
    with Meter([x]) as meter:
        state, product = run_and_save_rng_state(torch.ops.aten.mm.default, x, x)
    assert meter.measured.flops == 2 * 64**3
    assert meter.live_bytes == state.untyped_storage().nbytes() + product.untyped_storage().nbytes()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("count", torch.zeros(()))
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return self.dropout(self.layer(x)).square().mean()


def test_repeated_step_differs_only_in_updated_state():
    model, inputs = Model(), (torch.ones(4, 16),)
    first, second = (training_step(model, model, inputs) for _ in range(2))
    assert first.differences(first) == []
    assert second.differences(first) == ["buffer count: 0.5"]
    assert "random state" in first.tensors and "grad layer.weight" in first.tensors


def test_differences_name_tensors_of_other_bits():
    nan = torch.tensor([float("nan"), 0.0])
    assert Outcome({"a": nan}).differences(Outcome({"a": nan.clone()})) == []
    assert Outcome({"a": nan}).differences(Outcome({"a": torch.tensor([float("nan"), -0.0])})) != []
    assert Outcome({"a": nan}).differences(Outcome({})) == ["a: missing in one outcome"]


def test_step_peak_excludes_existing_memory():
    model, inputs = Model(), (torch.ones(4, 16),)
    weights = 4 * (16 * 16 + 16)
    assert resident_bytes(model, inputs) == weights + 4 + 4 * 4 * 16
    cost = meter_step(model, model, inputs)
    assert weights <= cost.peak_bytes < 2 * weights
    assert cost.flops == 2 * (2 * 4 * 16 * 16)  # no gradient of the input


@pytest.mark.parametrize("partition", ["default_partition", "min_cut_rematerialization_partition"])
def test_a_compiled_step_is_seen(partition: str):
    import functorch.compile

    from recompute.benchmarks.torch.model_forms import ModelRun, compile_with

    torch._dynamo.reset()
    torch.manual_seed(0)
    model, inputs = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))), (torch.ones(256, 64),)

    def run(call):
        return lambda x: call(x).sin().sum()

    plain = meter_step(model, run(model), inputs)
    compiled = compile_with(getattr(functorch.compile, partition), ModelRun(model, "*"))
    training_step(model, run(compiled), inputs)
    seen = meter_step(model, run(compiled), inputs)
    assert seen.flops == plain.flops
    assert 0.8 * plain.peak_bytes < seen.peak_bytes <= plain.peak_bytes
