"""Under Inductor, the gradient of a step within a budget uses the random draws of its forward pass."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional

import recompute.torch  # noqa: E402

BATCH, TOKENS, WIDTH = 8, 16, 32


def ones() -> Any:
    return torch.ones(BATCH, TOKENS, WIDTH)


DRAWS: dict[str, Callable[[], Any]] = {
    "dropout": lambda: functional.dropout(ones(), 0.3, True),
    "feature_alpha_dropout": lambda: functional.feature_alpha_dropout(ones(), 0.3, True),
    "rrelu": lambda: functional.rrelu(-ones(), 0.1, 0.9, True),
    "bernoulli": lambda: torch.bernoulli(ones() * 0.6),
    "normal_": lambda: torch.empty(BATCH, TOKENS, WIDTH).normal_(),
    "exponential_": lambda: torch.empty(BATCH, TOKENS, WIDTH).exponential_(),
    "randperm": lambda: torch.randperm(WIDTH).float().expand(BATCH, TOKENS, WIDTH) / WIDTH,
    "multinomial": lambda: torch.multinomial(torch.ones(TOKENS, WIDTH), WIDTH).float().expand(BATCH, -1, -1) / WIDTH,
    "gamma": lambda: torch._standard_gamma(ones()),
}


class Noisy(torch.nn.Module):
    """Four layers, each multiplied by its share of the draws."""

    def __init__(self) -> None:
        super().__init__()
        self.up = torch.nn.ParameterList(torch.nn.Parameter(torch.randn(WIDTH, WIDTH) * 0.2) for _ in range(4))
        self.down = torch.nn.ParameterList(torch.nn.Parameter(torch.randn(WIDTH, WIDTH) * 0.2) for _ in range(4))

    def forward(self, x: Any, given: Sequence[Any] | None = None) -> tuple[Any, list[Any]]:
        """Return the loss and the noise of each layer. `given`: the noise of each layer, instead of draws."""
        noises = list[Any]()
        for layer, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            noise = ones() if given is None else given[layer]
            for draw in list(DRAWS.values())[layer::4] if given is None else ():
                noise = noise * (draw() * 0.3 + 0.7)
            noises.append(noise.detach())
            x = x + torch.tanh(functional.gelu(x @ up) * noise) @ down
        return x.square().mean(), noises


def gradients(model: Any, loss: Any) -> list[Any]:
    model.zero_grad()
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_gradients_use_the_draws_of_the_forward_pass() -> None:
    torch.manual_seed(0)
    model, x = Noisy(), torch.randn(BATCH, TOKENS, WIDTH)
    step = recompute.torch.compile(model, budget="60%", backend="inductor")
    for _ in range(2):
        # A step from PyTorch's cache would not be planned, and would have no report.
        with torch._functorch.config.patch(enable_autograd_cache=False):
            loss, noises = step(x)
        actual = gradients(model, loss)
        expected = gradients(model, model(x, [noise.clone() for noise in noises])[0])
        for ours, eager in zip(actual, expected, strict=True):
            assert torch.allclose(ours, eager, rtol=1e-4, atol=1e-6)
    (graph,) = step.report().graphs
    assert graph.copies > 0
