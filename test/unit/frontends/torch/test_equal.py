"""Compiled steps have the results of eager steps bit for bit, within their budgets, at the peak that the model
predicts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.steps import compiled, made, run, torch

import recompute.torch as rt  # isort: skip
import itertools

STATE = 5056
"""Bytes of a saved random state, which the meter does not see."""


@pytest.mark.slow("gpt-options1", "gpt-options2", "lstm")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gpt", {}),
        ("gpt", {"budget": "50%"}),
        ("gpt", {"budget": "min"}),
        ("gpt without dropout", {"budget": 0.7}),
        ("batch norm", {"budget": "60%"}),
        ("convolutions", {"budget": "70%"}),
        ("lstm", {"budget": "60%"}),
    ],
)
def test_equal_to_eager_within_the_budget(name: str, options: dict[str, Any]) -> None:
    model, args = made(name)
    step, ran = compiled(model, args, lambda own: rt.compile(own, fullgraph=True, **options))
    eager = copy.deepcopy(model)
    assert ran.same_as(run(eager, eager, args))
    (report,) = step.report().graphs
    assert report.copies > 0 and report.reason == ""
    assert report.peak_bytes < report.plain_bytes
    draws = sum(op.name == "torch.draw" for op in report.module.walk())
    assert ran.peak_bytes <= report.peak_bytes <= 1.005 * ran.peak_bytes + draws * STATE
    share = {"50%": 0.5, 0.7: 0.7, "60%": 0.6, "70%": 0.7}.get(options.get("budget", ""))
    if share is not None:
        assert report.peak_bytes <= share * report.plain_bytes


def test_result_cotangents_count_while_read() -> None:
    """The cotangent of a result counts while it is read: PyTorch makes it when the backward pass begins."""
    torch._dynamo.reset()
    weight = torch.linspace(-1, 1, 64 * 64).view(64, 64).requires_grad_()
    x = torch.linspace(-1, 1, 256 * 64).view(256, 64)

    class Features(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(weight)

        def forward(self, x: Any) -> Any:
            return ((x @ self.weight).tanh() @ self.weight).tanh()

    def step_of(model: Any) -> Any:
        features = rt.compile(model, budget="1GiB", fullgraph=True)
        steps.append(features)
        return lambda x: features(x).exp().sum()

    steps = list[Any]()
    model = Features()
    _, ran = compiled(model, (x,), step_of)
    assert ran.same_as(run(model, lambda x: model(x).exp().sum(), (x,)))
    (report,) = steps[0].report().graphs
    outside = 2 * x.nbytes + 8
    assert report.peak_bytes >= 3 * x.nbytes + 2 * weight.nbytes
    assert ran.peak_bytes <= report.peak_bytes + outside
    assert report.input_bytes == x.nbytes + weight.nbytes


def test_step_within_budget_is_unchanged() -> None:
    model, args = made("gpt")
    step, ran = compiled(model, args, lambda own: rt.compile(own, budget="1GiB"))
    (report,) = step.report().graphs
    assert (report.copies, report.flops) == (0, report.plain_flops)
    assert report.peak_bytes == report.plain_bytes
    assert abs(ran.peak_bytes - report.plain_bytes) <= STATE
    assert "peak" in str(step.report()) and torch.is_grad_enabled()


def test_least_peak_is_below_that_of_the_greedy_search() -> None:
    """On two networks with two losses, the search needs less than 38.7 % of the plain peak, where the greedy search
    ends."""
    torch.manual_seed(0)

    def layers(*sizes: int) -> Any:
        pairs = itertools.pairwise(sizes)
        return torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(*pair), torch.nn.GELU()) for pair in pairs))

    first, second = layers(16, 64, 64, 64, 32), layers(32, 64, 64, 64, 1)

    def losses(z: Any, real: Any) -> Any:
        softplus = torch.nn.functional.softplus
        fake = first(z)
        opposed = softplus(-second(real)).mean() + softplus(second(fake.detach())).mean()
        return softplus(-second(fake)).mean() + opposed

    torch._dynamo.reset()
    step = rt.compile(losses, budget="min")
    step(torch.randn(64, 16), torch.randn(64, 32)).backward()
    (graph,) = step.report().graphs
    assert graph.peak_bytes <= 0.37 * graph.plain_bytes
