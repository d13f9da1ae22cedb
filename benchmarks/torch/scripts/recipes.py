"""Scripts that are complete training recipes, in their usual form."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, batches, final, mlp, script, train


@script
def compiled_blocks(compile: Compile) -> Results:
    """Train with blocks that contain dropout and are compiled one by one."""
    torch.manual_seed(100)
    model = nn.Sequential(*(mlp(depth=2) for _ in range(3)))
    blocks = [compile(block) for block in model]

    def call(x: torch.Tensor) -> torch.Tensor:
        for block in blocks:
            x = x + block(x)
        return x.square().mean()

    return final(model, train(model, call, batches(3, 64, 32)))


@script
def scanned_recurrence(compile: Compile) -> Results:
    """Train a recurrent network written with PyTorch's `scan`, a higher-order operation with a gradient."""
    from torch._higher_order_ops.scan import scan

    class Recurrence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = nn.Linear(32, 32, bias=False), mlp(depth=2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self.inner.weight

            def combine(state: torch.Tensor, part: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
                state = torch.tanh(state @ weight + part)
                return state, state.clone()

            _, states = scan(combine, torch.zeros(x.shape[1], 32), x)
            return self.head(states).square().mean()

    torch.manual_seed(101)
    model = Recurrence()
    return final(model, train(model, compile(model), batches(2, 6, 8, 32)))


@script
def routed_experts(compile: Compile) -> Results:
    """Train a mixture of experts that selects tokens with `where` and adds results with `index_add_`."""

    class RoutedExperts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.experts = nn.Linear(32, 4), nn.ModuleList(mlp(depth=1) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            best, which = self.gate(x).softmax(-1).topk(2, -1)
            mixed = torch.zeros_like(x)
            for index, expert in enumerate(self.experts):
                token, place = torch.where(which == index)
                mixed.index_add_(0, token, expert(x[token]) * best[token, place, None])
            balance = (self.gate(x).softmax(-1).mean(0) * F.one_hot(which[:, 0], 4).float().mean(0)).sum()
            return (x + mixed).square().mean() + 0.01 * balance

    torch.manual_seed(102)
    model = RoutedExperts()
    return final(model, train(model, compile(model), batches(2, 64, 32)))


@script
def policy_gradient(compile: Compile) -> Results:
    """Train with a clipped policy gradient, with distributions sampled inside the compiled function."""

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.choice, self.move = mlp(depth=3), nn.Linear(32, 6), nn.Linear(32, 8)

        def forward(self, x: torch.Tensor, old: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.body(x)
            choices = torch.distributions.Categorical(logits=self.choice(y))
            mean, width = self.move(y).chunk(2, -1)
            moves = torch.distributions.Normal(mean, F.softplus(width) + 0.1)
            shares = torch.distributions.Beta(F.softplus(mean) + 1, F.softplus(width) + 1).rsample()
            action = choices.sample()
            ratio = (choices.log_prob(action) - old).exp()
            gain = moves.rsample().mean(1) + shares.mean(1)
            clipped = torch.minimum(ratio * gain.detach(), ratio.clamp(0.8, 1.2) * gain.detach())
            return -(clipped + gain + 0.01 * choices.entropy()).mean(), action

    torch.manual_seed(103)
    model = Policy()
    step = compile(model)
    data = [(torch.randn(64, 32), -torch.rand(64)) for _ in range(3)]
    return final(model, train(model, lambda x, old: step(x, old)[0], data))


@script
def diffusion_with_average(compile: Compile) -> Results:
    """Train a diffusion denoiser with averaged weights, learning-rate warm-up, and clipped gradients."""

    class Denoiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time, self.body = nn.Linear(32, 32), mlp(depth=3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            times = torch.rand(len(x), 1)
            angles = times * torch.exp(torch.arange(16) * -0.5)
            noise, hidden = torch.randn_like(x), torch.rand(len(x), 1) < 0.1
            label = self.time(torch.cat([angles.sin(), angles.cos()], 1)).masked_fill(hidden, 0.0)
            noisy = x * (times * torch.pi / 2).cos() + noise * (times * torch.pi / 2).sin()
            return F.huber_loss(self.body(noisy + F.silu(label)), noise)

    torch.manual_seed(104)
    model = Denoiser()
    average = copy.deepcopy(model).requires_grad_(False)
    step, losses = compile(model), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda index: min(1.0, (index + 1) / 3))
    for (x,) in batches(3, 64, 32):
        optimizer.zero_grad()
        losses.append(step(x))
        losses[-1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.1)
    further = {f"average {name}": parameter for name, parameter in average.named_parameters()}
    return final(model, losses, **further)


@script
def low_rank_adapters(compile: Compile) -> Results:
    """Train low-rank adapters of frozen int8 weights in bfloat16."""

    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            weight = torch.randn(32, 32) * 0.2
            scale = weight.abs().amax(1, keepdim=True) / 127
            self.register_buffer("weight", (weight / scale).round().to(torch.int8))
            self.register_buffer("scale", scale)
            self.down = nn.Parameter(torch.randn(4, 32) * 0.2)
            self.up = nn.Parameter(torch.zeros(32, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            frozen = F.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype))
            return F.gelu(frozen + F.linear(F.linear(F.dropout(x, 0.1), self.down.to(x.dtype)), self.up.to(x.dtype)))

    torch.manual_seed(105)
    model: Any = nn.Sequential(*(Adapted() for _ in range(5)))
    step = compile(model)
    data = [(torch.randn(64, 32, dtype=torch.bfloat16),) for _ in range(3)]
    return final(model, train(model, lambda x: step(x).float().square().mean(), data))
