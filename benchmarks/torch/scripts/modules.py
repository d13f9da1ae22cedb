"""Scripts with unusual modules, parameters and buffers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, batches, final, mlp, script, train


@script
def plain_loop(compile: Compile) -> Results:
    """Train an MLP with dropout in a plain loop."""
    torch.manual_seed(0)
    model = mlp()
    step = compile(model)
    return final(model, train(model, lambda x: step(x).pow(2).mean(), batches(3, 64, 32)))


@script
def weight_tying(compile: Compile) -> Results:
    """Train with an output layer that shares its weight with the embedding."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 32)
            self.body = mlp()
            self.head = nn.Linear(32, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(self.head(self.body(self.embed(tokens))).flatten(0, 1), tokens.flatten())

    torch.manual_seed(1)
    model = Tied()
    return final(model, train(model, compile(model), [(torch.randint(50, (4, 16)),) for _ in range(3)]))


@script
def layer_used_twice(compile: Compile) -> Results:
    """Train with a block that the forward pass calls several times."""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = mlp(depth=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(4):
                x = x + self.block(x)
            return x.square().mean()

    torch.manual_seed(2)
    model = Recurrent()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def module_hooks(compile: Compile) -> Results:
    """Train with forward hooks that change outputs, and a full backward hook that scales gradients."""
    torch.manual_seed(3)
    model = mlp()
    model[0].register_forward_hook(lambda module, inputs, output: output * 1.5)
    model[4].register_forward_pre_hook(lambda module, inputs: (inputs[0].clamp(-2, 2),))
    model[8].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 0.5,))
    step = compile(model)
    return final(model, train(model, lambda x: step(x).pow(2).mean(), batches(3, 64, 32)))


@script
def tensor_hooks(compile: Compile) -> Results:
    """Train with hooks that clip and scale gradients, on parameters and on an intermediate value."""

    class HookedNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.body[:8](x)
            y.register_hook(lambda gradient: gradient.clamp(-1e-3, 1e-3))
            return self.body[8:](y).square().mean()

    torch.manual_seed(4)
    model = HookedNet()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient * 2)
    return final(model, train(model, compile(model), batches(2, 64, 32)))


@script
def mutated_buffers(compile: Compile) -> Results:
    """Train with a moving average and a counter, which the forward pass reads and updates in place."""

    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp()
            self.register_buffer("mean", torch.zeros(32))
            self.register_buffer("count", torch.zeros((), dtype=torch.long))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.sin(x - self.mean)
            self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            self.count += 1
            return (self.body(y) * torch.cos(self.mean)).square().mean()

    torch.manual_seed(5)
    model = Centred()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def batch_norm(compile: Compile) -> Results:
    """Train with batch normalization, whose running statistics must be updated exactly once per step."""
    torch.manual_seed(6)
    model = nn.Sequential(
        *(m for _ in range(4) for m in (nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)))
    )
    step = compile(model)
    return final(model, train(model, lambda x: step(x).square().mean(), batches(3, 4, 8, 16, 16)))


@script
def inplace_operations(compile: Compile) -> Results:
    """Train with values that the forward pass changes in place through views."""

    class Inplace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x).sigmoid_()
            z = y * 2
            z[:, ::2].mul_(3.0)
            z[0] = 0.5
            return self.second(z.relu_()).tanh().square().mean()

    torch.manual_seed(7)
    model = Inplace()
    return final(model, train(model, compile(model), batches(3, 64, 32)))


@script
def mutated_input(compile: Compile) -> Results:
    """Train with a step that overwrites one of its inputs, a cache of the caller."""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp()

        def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            y = self.body(x + torch.sin(cache))
            cache.copy_(y.detach())
            return y.square().mean()

    torch.manual_seed(8)
    model, cache = Cached(), torch.zeros(64, 32)
    step = compile(model)
    losses = train(model, lambda x: step(x, cache), batches(3, 64, 32))
    return final(model, losses, cache=cache)


@script
def frozen_layers(compile: Compile) -> Results:
    """Train with frozen layers, which become trainable between steps."""
    torch.manual_seed(9)
    model = mlp()
    model[:8].requires_grad_(False)
    step = compile(model)
    losses = train(model, lambda x: step(x).square().mean(), batches(2, 64, 32))
    model[:8].requires_grad_(True)
    losses += train(model, lambda x: step(x).square().mean(), batches(2, 64, 32))
    return final(model, losses)


@script
def dictionaries_and_dataclasses(compile: Compile) -> Results:
    """Train with a dictionary as the input and a dataclass as the output."""

    @dataclass
    class Output:
        loss: torch.Tensor
        hidden: list[torch.Tensor]

    class StructuredInputNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp()

        def forward(self, batch: dict[str, torch.Tensor], scale: float = 1.0) -> Output:
            x, hidden = batch["x"], []
            for layer in self.body:
                x = layer(x)
                hidden.append(x)
            return Output(((x - batch["y"]) * scale).square().mean(), hidden)

    torch.manual_seed(10)
    model = StructuredInputNet()
    step = compile(model)
    pairs = [({"x": torch.randn(64, 32), "y": torch.randn(64, 32)},) for _ in range(3)]
    return final(model, train(model, lambda batch: step(batch, scale=2.0).loss, pairs))


@script
def embeddings_and_scatter(compile: Compile) -> Results:
    """Train with messages over a graph: padded embeddings, embedding bags, `gather`, `index_add` and `scatter_add`."""

    class MessagePassingNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(20, 32, padding_idx=0)
            self.bag = nn.EmbeddingBag(20, 32, mode="sum")
            self.body = mlp()

        def forward(self, kinds: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            x = self.embed(kinds) + self.bag(kinds.unsqueeze(1))
            for layer in (self.body[:8], self.body[8:]):
                sent = layer(x[source])
                x = torch.zeros_like(x).index_add(0, target, sent) + x.gather(1, x.argsort(1))
            x = x.scatter_add(0, target.unsqueeze(1).expand(-1, 32), x[source])
            return x.square().mean()

    torch.manual_seed(11)
    model = MessagePassingNet()
    graphs = [(torch.randint(20, (24,)), torch.randint(24, (60,)), torch.randint(24, (60,))) for _ in range(3)]
    return final(model, train(model, compile(model), graphs, 0.01))


@script
def einsum_attention(compile: Compile) -> Results:
    """Train with attention layers written with `einsum`."""

    class EinsumAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 4, 32, 8) * 0.1)
            self.out = nn.Parameter(torch.randn(4, 8, 32) * 0.1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(3):
                q, k, v = torch.einsum("btc,nhcd->nbhtd", x, self.w)
                scores = torch.einsum("bhtd,bhsd->bhts", q, k).softmax(-1)
                x = x + torch.einsum("bhts,bhsd,hdc->btc", scores, v, self.out)
            return x.square().mean()

    torch.manual_seed(12)
    model = EinsumAttention()
    return final(model, train(model, compile(model), batches(3, 4, 32, 32)))


@script
def lstm_module(compile: Compile) -> Results:
    """Train with PyTorch's LSTM module, with its state carried between steps."""

    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(32, 32, 2, batch_first=True, dropout=0.1)

        def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y, (h, c) = self.rnn(x, (h, c))
            return y.square().mean(), h, c

    torch.manual_seed(13)
    model = Language()
    step = compile(model)
    state = (torch.zeros(2, 4, 32), torch.zeros(2, 4, 32))

    def call(x: torch.Tensor) -> torch.Tensor:
        nonlocal state
        loss, *new = step(x, *state)
        state = (new[0].detach(), new[1].detach())
        return loss

    return final(model, train(model, call, batches(3, 4, 12, 32)), h=state[0], c=state[1])


@script
def parametrized_weights(compile: Compile) -> Results:
    """Train with weight norm and spectral norm, which updates its vectors in each forward pass."""
    torch.manual_seed(14)
    model = mlp()
    nn.utils.parametrizations.spectral_norm(model[0])
    nn.utils.parametrizations.weight_norm(model[4])
    step = compile(model)
    return final(model, train(model, lambda x: step(x).square().mean(), batches(3, 64, 32)))
