"""Scripts with sparse, nested or channels-last tensors, and with results of all kinds."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from recompute.benchmarks.torch.scripts.script import Compile, Results, final, mlp, script, train


@script
def sparse_embedding(compile: Compile) -> Results:
    """Train embeddings with sparse gradients, which a separate optimizer updates."""

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(256, 32, sparse=True)
            self.bags = nn.EmbeddingBag(64, 32, mode="sum", sparse=True)
            self.body = mlp(depth=3)

        def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            x = self.embed(tokens).mean(1) + self.bags(labels)
            return self.body(x).square().mean()

    torch.manual_seed(90)
    model = Words()
    step = compile(model)
    sparse = torch.optim.SparseAdam([*model.embed.parameters(), *model.bags.parameters()], lr=0.01)
    dense, losses = torch.optim.AdamW(model.body.parameters(), lr=0.01), []
    for _ in range(3):
        sparse.zero_grad()
        dense.zero_grad()
        losses.append(step(torch.randint(256, (16, 8)), torch.randint(64, (16, 4))))
        losses[-1].backward()
        sparse.step()
        dense.step()
    gradients = {
        name: p.grad.coalesce() for name, p in model.named_parameters() if p.grad is not None and p.grad.is_sparse
    }
    model.zero_grad()
    return final(model, losses, **{f"grad {name}": gradient.to_dense() for name, gradient in gradients.items()})


@script
def sparse_graph(compile: Compile) -> Results:
    """Train with messages over a graph, computed as a product with a constant sparse matrix."""

    class SparseMessages(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            edges = torch.randint(64, (2, 256))
            self.register_buffer("edges", torch.sparse_coo_tensor(edges, torch.rand(256), (64, 64)).coalesce())
            self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = x + F.dropout(F.gelu(torch.sparse.mm(self.edges, layer(x))), 0.1)
            return x.square().mean()

    torch.manual_seed(91)
    model = SparseMessages()
    losses = train(model, compile(model), [(torch.randn(64, 32),) for _ in range(3)])
    model.edges = model.edges.to_dense()
    return final(model, losses)


@script
def nested_sequences(compile: Compile) -> Results:
    """Train on sequences of different lengths in one nested tensor, which is a tensor subclass."""

    class Ragged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 64) for _ in range(3))
            self.outs = nn.ModuleList(nn.Linear(64, 32) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer, out in zip(self.layers, self.outs, strict=True):
                x = x + out(F.gelu(layer(F.layer_norm(x, (32,)))))
            return x.values().square().mean()

    torch.manual_seed(92)
    model = Ragged()
    step, data = compile(model), []
    for lengths in ([5, 9, 3], [7, 2, 8]):
        parts = [torch.randn(length, 32) for length in lengths]
        data.append((torch.nested.nested_tensor(parts, layout=torch.jagged),))
    return final(model, train(model, step, data))


@script
def channels_last_images(compile: Compile) -> Results:
    """Train convolutions on channels-last images, with batch normalization, resizing and pixel shuffles."""

    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU(), nn.Dropout2d(0.1))
                for _ in range(4)
            )
            self.grow, self.head = nn.Conv2d(8, 32, 1), nn.Conv2d(8, 3, 3, padding=1)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            x = F.pad(images, (0, 0, 0, 0, 0, 5))
            for block in self.blocks:
                x = x + block(x)
            x = F.pixel_shuffle(self.grow(F.avg_pool2d(x, 2)), 2)
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            return (self.head(F.max_pool2d(x, 2)) - images).square().mean()

    torch.manual_seed(93)
    model = Images().to(memory_format=torch.channels_last)
    data = [(torch.randn(4, 3, 16, 16).to(memory_format=torch.channels_last),) for _ in range(3)]
    return final(model, train(model, compile(model), data))


@script
def results_of_all_kinds(compile: Compile) -> Results:
    """Train with results of all kinds: inputs, parameters, views, duplicates, empty or detached tensors, a number."""

    class Results_(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.scale = mlp(depth=3), nn.Parameter(torch.ones(()))

        def forward(self, x: torch.Tensor, flag: bool) -> dict[str, Any]:
            y = self.body(x) * self.scale
            return {
                "twice": (y, y),
                "view": y.view(-1)[:32],
                "input": x,
                "parameter": self.scale,
                "empty": y[:0],
                "best": y.argmax(1),
                "without": y.detach().exp(),
                "number": y.shape[0] + 1,
                "none": None if flag else y.sum(),
            }

    torch.manual_seed(94)
    model = Results_()
    step, losses = compile(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for flag in (True, False, True):
        optimizer.zero_grad()
        got = step(torch.randn(64, 32), flag)
        y, again = got["twice"]
        assert y is again and got["parameter"] is model.scale and got["number"] == 65
        y.backward(torch.ones_like(y) * got["without"].tanh(), retain_graph=False)
        optimizer.step()
        losses += [got["view"], got["empty"], got["best"], got["without"], got["input"]]
    return final(model, losses)
