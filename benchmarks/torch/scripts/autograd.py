"""Scripts that use autograd in unusual ways: several losses, gradients of gradients, and function transforms."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._functorch import config
from torch.func import functional_call, grad, jvp, vmap
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, TwoNetworks, batches, final, mlp, script, train


class Cube(torch.autograd.Function):
    """Compute `x**3`, with a gradient that is deliberately wrong, so that its use shows in the results."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 2.5 * x**2


@script
def custom_function(compile: Compile) -> Results:
    """Train with a `torch.autograd.Function` between two networks, and a straight-through estimator."""

    class Quantized(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = Cube.apply(self.first(x))
            y = y + (torch.round(y * 8) / 8 - y).detach()
            return self.second(y).square().mean()

    torch.manual_seed(40)
    model = Quantized()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def custom_operation(compile: Compile) -> Results:
    """Train with a user-defined operation (`torch.library.custom_op`) that has a registered gradient."""

    @torch.library.custom_op("recompute_scripts::soft_sign", mutates_args=())
    def soft_sign(x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x.abs())

    @soft_sign.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient / (1 + ctx.saved_tensors[0].abs()) ** 2

    soft_sign.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

    class CustomOperationNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = soft_sign(layer(x))
            return x.square().mean()

    torch.manual_seed(41)
    model = CustomOperationNet()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def two_losses(compile: Compile) -> Results:
    """Train with two losses of one forward pass, and one backward pass for each loss (`retain_graph`)."""

    class ActorCritic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.actor, self.critic = mlp(), nn.Linear(32, 4), nn.Linear(32, 1)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.body(x)
            return -self.actor(y).log_softmax(-1)[:, 0].mean(), self.critic(y).square().mean()

    torch.manual_seed(42)
    model = ActorCritic()
    step = compile(model)
    with config.patch(donated_buffer=False):
        return final(model, train(model, lambda x: sum(step(x)), batches(3, 64, 32)), **gradients_of_two_losses(step))


def gradients_of_two_losses(step: Any) -> Results:
    """Return the input gradients of two losses, from two backward passes through the same graph."""
    x = torch.ones(8, 32, requires_grad=True)
    first, second = step(x)
    (left,) = torch.autograd.grad(first, x, retain_graph=True)
    (right,) = torch.autograd.grad(second, x)
    return {"left": left, "right": right}


@script
def unused_output(compile: Compile) -> Results:
    """Train with two outputs, of which only one receives a gradient in each step."""

    class TwoHeadedNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.left, self.right = mlp(), nn.Linear(32, 8), nn.Linear(32, 8)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.body(x)
            return self.left(y).square().mean(), self.right(y).sin().mean()

    torch.manual_seed(43)
    model = TwoHeadedNet()
    step = compile(model)
    losses = train(model, lambda x: step(x)[0], batches(2, 64, 32))
    losses += train(model, lambda x: step(x)[1], batches(1, 64, 32))
    return final(model, losses)


@script
def gradient_penalty(compile: Compile) -> Results:
    """Train with double backward in the compiled function, whose loss penalizes the input gradient."""
    torch.manual_seed(44)
    model = mlp(dropout=0.0)

    @compile
    def penalty(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        value = model(x).square().mean()
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        return value + slope.square().sum()

    return final(model, train(model, penalty, batches(2, 64, 32)))


@script
def double_backward_outside(compile: Compile) -> Results:
    """Train with double backward through a compiled module, which AOTAutograd rejects with PyTorch's own error."""
    torch.manual_seed(45)
    model = mlp(dropout=0.0)
    step = compile(model)
    x = torch.randn(16, 32, requires_grad=True)
    (slope,) = torch.autograd.grad(step(x).square().mean(), x, create_graph=True)
    slope.square().sum().backward()
    return final(model, [slope.sum()])


@script
def hypernetwork(compile: Compile) -> Results:
    """Train a network that computes the weights of another network."""

    class Hyper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.target = nn.Linear(16, 16)
            self.maker = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 16 * 16 + 16))

        def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
            made = self.maker(task)
            weight, bias = made[: 16 * 16].view(16, 16), made[16 * 16 :]
            for _ in range(3):
                x = functional_call(self.target, {"weight": weight, "bias": bias}, (x,)).tanh()
            return x.square().mean()

    torch.manual_seed(46)
    model = Hyper()
    tasks = [(torch.randn(64, 16), torch.randn(8)) for _ in range(3)]
    return final(model, train(model, compile(model), tasks))


@script
def inner_loop(compile: Compile) -> Results:
    """Train with MAML: differentiate through two steps of gradient descent, with `torch.func.grad`."""
    torch.manual_seed(47)
    model = mlp(depth=1, dropout=0.0)

    def inner(weights: Any, x: torch.Tensor) -> torch.Tensor:
        return functional_call(model, weights, (x,)).square().mean()

    @compile
    def outer(x: torch.Tensor) -> torch.Tensor:
        weights = dict(model.named_parameters())
        for _ in range(2):
            slopes = grad(inner)(weights, x)
            weights = {name: weights[name] - 0.1 * slopes[name] for name in weights}
        return inner(weights, x)

    return final(model, train(model, outer, batches(2, 64, 32)))


@script
def gradients_per_sample(compile: Compile) -> Results:
    """Train with a loss that sums the squared norms of per-sample gradients, from `vmap` of `grad`."""
    torch.manual_seed(48)
    model = mlp(depth=1, dropout=0.0)

    def loss(weights: Any, x: torch.Tensor) -> torch.Tensor:
        return functional_call(model, weights, (x,)).square().mean()

    @compile
    def norms(x: torch.Tensor) -> Any:
        slopes = vmap(grad(loss), in_dims=(None, 0))(dict(model.named_parameters()), x)
        return sum(slope.square().sum() for slope in slopes.values())

    return final(model, train(model, norms, batches(2, 8, 32)))


@script
def forward_mode(compile: Compile) -> Results:
    """Train with a directional derivative from `jvp` in the loss, as in score matching."""
    torch.manual_seed(49)
    model = mlp(depth=2, dropout=0.0)

    @compile
    def matching(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        value, slope = jvp(model, (x,), (v,))
        return value.square().mean() + (slope * v).sum(1).mean()

    pairs = [(torch.randn(32, 32), torch.randn(32, 32)) for _ in range(2)]
    return final(model, train(model, matching, pairs))


@script
def gradients_of_inputs(compile: Compile) -> Results:
    """Train a step that returns a view of its input, which is a leaf and receives a gradient."""
    torch.manual_seed(50)
    model = mlp()
    step = compile(lambda x: (model(x).square().mean(), x.view(-1)))
    x = torch.randn(64, 32, requires_grad=True)
    losses = []
    for _ in range(2):
        loss, flat = step(x)
        (loss + flat.sum() * 1e-3).backward()
        losses.append(loss)
    return final(model, losses, adversary=x.grad)


@script
def contrastive_twice(compile: Compile) -> Results:
    """Train with two forward passes of one encoder before the backward pass, and draw random numbers between them."""
    torch.manual_seed(51)
    model = mlp()
    step = compile(model)

    def call(x: torch.Tensor) -> torch.Tensor:
        left = step(x)
        noise = torch.rand_like(x)
        right = step(x + noise)
        return F.mse_loss(left, right) - left.std()

    return final(model, train(model, call, batches(3, 64, 32)))
