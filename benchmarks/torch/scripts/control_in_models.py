"""Scripts with graph breaks, branches, changing shapes, and higher-order operations."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from recompute.benchmarks.torch.scripts.script import Compile, Results, TwoNetworks, batches, final, mlp, script, train


@script
def graph_break(compile: Compile) -> Results:
    """Train with a graph break between the two halves of the network."""

    class Printing(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            print(end="")
            torch._dynamo.graph_break()
            return self.second(y).square().mean()

    torch.manual_seed(20)
    model = Printing()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def branch_on_data(compile: Compile) -> Results:
    """Train with a Python branch on the value of a tensor, which runs or skips half of the network."""

    class Branching(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            y = self.second(y) if y.mean().item() > 0 else torch.tanh(y)
            return y.square().mean()

    torch.manual_seed(21)
    model = Branching()
    return final(model, train(model, compile(model), batches(4, 64, 32)))


@script
def changing_shapes(compile: Compile) -> Results:
    """Train with batches of changing size, so that later graphs have symbolic shapes."""
    torch.manual_seed(22)
    model = mlp()
    step = compile(model)
    sizes = [(torch.randn(size, 32),) for size in (64, 48, 80, 17, 64)]
    return final(model, train(model, lambda x: step(x).square().mean(), sizes))


@script
def dynamic_sequence(compile: Compile) -> Results:
    """Train with attention whose sequence length is marked dynamic."""

    class DynamicAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 96) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                q, k, v = layer(x).chunk(3, -1)
                mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
                scores = (q @ k.transpose(1, 2)).masked_fill(~mask, -1e9).softmax(-1)
                x = x + scores @ v / x.shape[1]
            return x.square().mean()

    torch.manual_seed(23)
    model = DynamicAttention()
    inputs = [torch.randn(4, length, 32) for length in (16, 24, 31)]
    for x in inputs:
        torch._dynamo.mark_dynamic(x, 1)
    return final(model, train(model, compile(model), [(x,) for x in inputs]))


@script
def data_dependent_size(compile: Compile) -> Results:
    """Train with boolean indexing, whose result has a size that is known only at run time."""

    class Selecting(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            chosen = y[y.sum(1) > 0]
            return self.second(chosen).square().sum()

    torch.manual_seed(24)
    model = Selecting()
    return final(model, train(model, compile(model), batches(3, 64, 32), 1e-4))


@script
def cond_operation(compile: Compile) -> Results:
    """Train with `torch.cond` between the two halves of the network."""

    class Conditional(TwoNetworks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            y = torch.cond(y.sum() > 0, torch.sin, torch.cos, (y,))
            return self.second(y).square().mean()

    torch.manual_seed(25)
    model = Conditional()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def fused_attention(compile: Compile) -> Results:
    """Train with `scaled_dot_product_attention`, alternately causal and with a learned mask."""

    class FusedAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 96) for _ in range(4))
            self.bias = nn.Parameter(torch.zeros(16, 16))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for index, layer in enumerate(self.layers):
                q, k, v = (part.view(4, 16, 4, 8).transpose(1, 2) for part in layer(x).chunk(3, -1))
                if index % 2:
                    y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                else:
                    y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.bias)
                x = x + y.transpose(1, 2).reshape(4, 16, 32)
            return x.square().mean()

    torch.manual_seed(26)
    model = FusedAttention()
    return final(model, train(model, compile(model), batches(3, 4, 16, 32)))


@script
def flex_attention(compile: Compile) -> Results:
    """Train with `flex_attention` in a frozen layer, since it has no gradient on the CPU."""
    from torch.nn.attention.flex_attention import flex_attention as attend

    def bias(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
        return score - (query - key).abs() * 0.1

    class FlexAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 96) for _ in range(2))
            self.body = mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                for layer in self.layers:
                    q, k, v = (part.view(2, 16, 2, 16).transpose(1, 2) for part in layer(x).chunk(3, -1))
                    x = x + attend(q, k, v, score_mod=bias).transpose(1, 2).reshape(2, 16, 32)
            return self.body(x).square().mean()

    torch.manual_seed(27)
    model = FlexAttention()
    return final(model, train(model, compile(model), batches(2, 2, 16, 32)))


@script
def early_exit(compile: Compile) -> Results:
    """Train with the network's depth as an argument, so that each depth needs a separate graph."""

    class Exits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(mlp(depth=1) for _ in range(4))

        def forward(self, x: torch.Tensor, depth: int) -> torch.Tensor:
            for block in self.blocks[:depth]:
                x = x + block(x)
            return x.square().mean()

    torch.manual_seed(28)
    model = Exits()
    step = compile(model)
    return final(model, train(model, step, [(torch.randn(64, 32), depth) for depth in (4, 2, 3, 4)]))


@script
def inference(compile: Compile) -> Results:
    """Train with evaluations under `no_grad` and `inference_mode` between training steps."""
    torch.manual_seed(29)
    model = mlp()
    step = compile(model)
    losses = train(model, lambda x: step(x).square().mean(), batches(2, 64, 32))
    model.eval()
    with torch.no_grad():
        losses.append(step(torch.ones(64, 32)).sum())
    with torch.inference_mode():
        losses.append(step(torch.ones(64, 32)).sum().clone())
    model.train()
    losses += train(model, lambda x: step(x).square().mean(), batches(1, 64, 32))
    return final(model, losses)
