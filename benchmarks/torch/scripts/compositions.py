"""Scripts that combine features: calls in backward passes, ensembles, spectra, penalties, factorizations."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, jvp, stack_module_state, vmap
from torch.nn import functional as F
from torch.nn.utils.parametrizations import orthogonal, weight_norm

from recompute.benchmarks.torch.scripts.script import Compile, Results, batches, final, mlp, script, train


class Scaled(torch.autograd.Function):
    """Multiply by a Python number, in the forward pass and in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return Scaled.apply(gradient, ctx.factor), None


class Reversible(torch.autograd.Function):
    """Couple two halves of the features, and recompute the inputs from the results in the backward pass.

    The backward pass calls another function. The context contains slices and a dictionary of options.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, options: dict[str, Any]) -> Any:
        ctx.options, ctx.parts = options, (slice(0, x.shape[1] // 2), slice(x.shape[1] // 2, None))
        left, right = (x[:, part] for part in ctx.parts)
        left = left + options["step"] * torch.tanh(right @ weight)
        result = torch.cat([left, right], 1)
        ctx.save_for_backward(result, weight)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        result, weight = ctx.saved_tensors
        right = result[:, ctx.parts[1]]
        bent = torch.tanh(right @ weight)
        left_gradient, right_gradient = (gradient[:, part] for part in ctx.parts)
        inner = Scaled.apply(left_gradient * (1 - bent * bent), ctx.options["step"])
        return torch.cat([left_gradient, right_gradient + inner @ weight.T], 1), right.T @ inner, None


@script
def reversible_functions(compile: Compile) -> Results:
    """Train with reversible couplings, whose backward pass calls another function and reads options."""

    class ReversibleNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.ParameterList(nn.Parameter(torch.randn(16, 16) * 0.2) for _ in range(4))
            self.head = mlp(depth=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for index, weight in enumerate(self.weights):
                x = Reversible.apply(x, weight, {"step": 0.5 + 0.1 * index, "name": f"layer {index}"}).flip(1)
            return self.head(x).square().mean()

    torch.manual_seed(170)
    model = ReversibleNet()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def ensemble_with_own_noise(compile: Compile) -> Results:
    """Train four stacked networks with `vmap`. Each has its own dropout, and all share one gate."""
    torch.manual_seed(171)
    base, gate = mlp(dropout=0.2), nn.Linear(32, 32)
    weights, buffers = stack_module_state([mlp(dropout=0.2) for _ in range(4)])
    model = nn.ParameterDict({name.replace(".", "_"): nn.Parameter(value.detach()) for name, value in weights.items()})

    def member(own: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return functional_call(base, (own, buffers), (x,))

    def loss(x: torch.Tensor) -> torch.Tensor:
        stacked = {name: model[name.replace(".", "_")] for name in weights}
        results = vmap(member, in_dims=(0, None), randomness="different")(stacked, torch.sigmoid(gate(x)) * x)
        return (results - x).square().mean() + 0.1 * results.var(0).mean()

    both = nn.ModuleDict({"members": model, "gate": gate})
    return final(both, train(both, compile(loss), batches(3, 64, 32)))


@script
def filters_of_spectra(compile: Compile) -> Results:
    """Train filters of two-dimensional spectra, with complex weights, an odd size, and a running mean."""

    class Spectral(nn.Module):
        def __init__(self, channels: int, size: int):
            super().__init__()
            self.size = size
            self.weight = nn.Parameter(torch.randn(channels, size, size // 2 + 1, dtype=torch.complex64) * 0.1 + 1)
            self.shift = nn.Parameter(torch.zeros(channels, 1, 1))
            self.register_buffer("magnitude", torch.ones(channels, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            spectrum = torch.fft.rfft2(x, norm="ortho") * self.weight
            magnitudes = torch.view_as_real(spectrum).square().sum(-1)
            with torch.no_grad():
                self.magnitude.lerp_(magnitudes.mean((0, 2, 3), keepdim=False)[:, None, None], 0.1)
            turned = spectrum * torch.polar(torch.ones_like(self.shift), self.shift) / (1 + self.magnitude.sqrt())
            filtered = torch.fft.irfft2(turned + turned.conj() * 0.1, s=(self.size, self.size), norm="ortho")
            return x + torch.tanh(filtered)

    torch.manual_seed(172)
    model = nn.Sequential(*(Spectral(3, 15) for _ in range(4)))
    step = compile(model)
    return final(model, train(model, lambda x: step(x).square().mean(), batches(3, 4, 3, 15, 15)))


@script
def tied_and_renormalized(compile: Compile) -> Results:
    """Train tied embeddings with weight normalization, an embedding with `max_norm`, and an orthogonal projection."""

    class TiedEmbeddingNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = weight_norm(nn.Embedding(40, 32))
            self.places = nn.Embedding(16, 32, max_norm=1.0, scale_grad_by_freq=True)
            self.mix, self.project = mlp(), orthogonal(nn.Linear(32, 32, bias=False))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            places = self.places(torch.arange(tokens.shape[1]))
            x = self.project(self.mix(self.words(tokens) + places))
            scores = F.linear(F.layer_norm(x, (32,)), self.words.weight)
            return F.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1)

    torch.manual_seed(173)
    model = TiedEmbeddingNet()
    tokens = [(torch.randint(40, (8, 16)),) for _ in range(3)]
    return final(model, train(model, compile(model), tokens))


@script
def penalties_of_second_order(compile: Compile) -> Results:
    """Train with a gradient penalty per sample and a curvature penalty, both inside the compiled function."""
    torch.manual_seed(174)
    critic = nn.Sequential(mlp(dropout=0.0), nn.Linear(32, 1))

    def score(x: torch.Tensor, own: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(critic, own, (x,)).sum()

    def loss(x: torch.Tensor) -> torch.Tensor:
        own = dict(critic.named_parameters())
        slopes = vmap(grad(score), in_dims=(0, None))(x, own)
        direction = F.normalize(torch.randn_like(x), dim=1)
        _, curvature = jvp(lambda value: grad(score)(value, own), (x,), (direction,))
        return score(x, own) / len(x) + (slopes.norm(dim=1) - 1).square().mean() + 0.1 * curvature.square().mean()

    return final(critic, train(critic, compile(loss), batches(3, 32, 32)))


@script
def gaussian_process(compile: Compile) -> Results:
    """Train a deep kernel by the likelihood of a Gaussian process, with a Cholesky factor and triangular solves."""

    class GaussianProcess(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp(dropout=0.0)
            self.noise = nn.Parameter(torch.tensor(-1.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features, target = self.net(x), x.sin().sum(1, keepdim=True)
            distances = torch.cdist(features, features).square()
            kernel = torch.exp(-0.5 * distances) + F.softplus(self.noise) * torch.eye(len(x))
            factor = torch.linalg.cholesky(kernel)
            solved = torch.linalg.solve_triangular(factor, target, upper=False)
            return 0.5 * solved.square().sum() + factor.diagonal().log().sum()

    torch.manual_seed(175)
    model = GaussianProcess()
    return final(model, train(model, compile(model), batches(3, 48, 32)))
