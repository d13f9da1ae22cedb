"""Programs that go wrong under PyTorch's `activation_memory_budget`: right under every budget of ours.

What PyTorch does with them is measured by `python -m recompute.benchmarks.torch --only 'pytorch *'`.
"""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="runs PyTorch")
rt = pytest.importorskip("recompute.torch", reason="the PyTorch frontend is not there")

from recompute.benchmarks.torch import model_cases  # noqa: E402
from recompute.benchmarks.torch.training_step import meter_step, resident_bytes, training_step  # noqa: E402

BUDGETS = 8


def compiled(model: Any, budget: Any) -> Any:
    """Return the compiled model under a budget."""
    torch._dynamo.reset()
    return rt.compile(model, budget=budget)


def budgets(name: str) -> list[int]:
    """Return bytes of the device at equal distances, from the least that a plan needs to those of the plain step."""
    model, inputs = model_cases.make(name)
    step = compiled(model, "min")
    training_step(model, step, inputs)
    (graph,) = step.report().graphs
    assert graph.peak_bytes < graph.plain_bytes
    width = graph.plain_bytes - graph.peak_bytes
    peaks = [graph.peak_bytes + width * index // (BUDGETS - 1) for index in range(BUDGETS)]
    return [graph.input_bytes + peak for peak in peaks]


@pytest.mark.slow("197838")
@pytest.mark.parametrize("name", ["pytorch 190758", "pytorch 190717", "pytorch 197838"])
def test_budgets_are_kept_and_peaks_never_rise(name: str):
    model, inputs = model_cases.make(name)
    reference = copy.deepcopy(model)
    eager = training_step(reference, reference, inputs)
    peaks: list[int] = []
    for budget in budgets(name):
        own = copy.deepcopy(model)
        step = compiled(own, budget)
        assert training_step(own, step, inputs).differences(eager) == []
        peaks.append(meter_step(own, step, inputs).peak_bytes)
        assert peaks[-1] + resident_bytes(own, inputs) <= budget
    assert peaks == sorted(peaks)
    assert peaks[0] < peaks[-1]


def test_least_peak_is_close_to_its_bound():
    """PyTorch's issue 190717: the search of all sets of live storages needs a seventh less than the greedy search, and
    the refusal of a smaller budget states this peak and the proven bound."""
    model, inputs = model_cases.make("pytorch 190717")
    step = compiled(model, "min")
    training_step(model, step, inputs)
    (least,) = step.report().graphs
    tight = compiled(copy.deepcopy(model), least.input_bytes + least.peak_bytes)
    training_step(model, tight, inputs)
    assert tight.report().graphs[0].peak_bytes <= least.peak_bytes
    with pytest.raises(Exception, match="no plan needs less than") as raised:
        compiled(copy.deepcopy(model), least.input_bytes + int(0.99 * least.peak_bytes))(*inputs)
    match = re.search(r"no plan needs less than .*?(\d+) bytes", str(raised.value))
    assert match is not None
    bound = int(match[1])
    assert least.peak_bytes <= 1.002 * bound


@pytest.mark.parametrize("budget", ["90%", "min"])
def test_training_with_dropout_follows_the_eager_run(budget: str):
    """PyTorch's issue 190717: over several steps, the losses of both runs have equal bits."""
    model, inputs = model_cases.make("pytorch 190717")
    losses = [trained(copy.deepcopy(model), wrap, inputs) for wrap in (lambda m: m, lambda m: compiled(m, budget))]
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]


def trained(model: Any, wrap: Any, inputs: Any) -> list[float]:
    step, optimizer = wrap(model), torch.optim.Adam(model.parameters(), lr=1e-2)
    torch.manual_seed(7)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = step(*inputs)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_backward_mask_equals_forward_mask():
    """PyTorch's issue 190758: a gradient is zero exactly where dropout made the value zero."""
    weight = torch.ones(64, 64, requires_grad=True)

    @rt.compile(budget="min")
    def masked(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.dropout(torch.sin(x * weight) + 2, 0.5)
        return torch.sin(torch.cos(y) * y), y

    torch._dynamo.reset()
    torch.manual_seed(3)
    value, dropped = masked(torch.ones(64, 64))
    value.sum().backward()
    assert torch.equal(weight.grad == 0, dropped == 0)
