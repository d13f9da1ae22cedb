"""Models for issues that users reported on PyTorch's `activation_memory_budget`, rewritten as short programs.

- Issues 190758 and 190717: with a budget below 1, the backward pass draws new dropout masks.
- Issue 197838: a lower budget raises the peak.
- `SharedBlocks`: with `torch.utils.checkpoint`, the recomputed values of several blocks of the compiled step are live
  at the same time.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from recompute.benchmarks.torch.networks import Classifier


class NoisyLayers(nn.Module):
    """Issue 190758: dropout and `randn_like` between layers, for inputs of shape (batch, width)."""

    def __init__(self, layers: int = 4, width: int = 64):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.blocks:
            y = F.dropout(torch.relu(layer(x)), 0.5)
            x = x + y * torch.sigmoid(torch.randn_like(y))
        return x.square().mean()


class DropoutClassifier(Classifier):
    """Issue 190717: a classifier whose only random operations are dropouts, for inputs of shape (batch, width)."""

    def __init__(self, width: int = 64):
        super().__init__((nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.3)) for _ in range(3)), width)


class LlamaBlock(nn.Module):
    """A block with causal attention and a gated feed-forward layer, for inputs of shape (batch, length, width)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LlamaStyle(nn.Module):
    """Issue 197838: a decoder in the style of Llama, for tokens and targets of shape (batch, length)."""

    def __init__(self, layers: int = 4, width: int = 64, words: int = 128):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, 4) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


class CrossBlock(nn.Module):
    """A block with causal attention, attention to an optional context, and a feed-forward layer."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.query, self.pair = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.cross = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = map(self._split, self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        if context is not None:
            k, v = map(self._split, self.pair(context).chunk(2, -1))
            mixed = F.scaled_dot_product_attention(self._split(self.query(self.norm3(x))), k, v)
            x = x + self.cross(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm2(x))

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


class SharedBlocks(nn.Module):
    """A model whose blocks run twice in one step, without and with a context, for two losses.

    The inputs are tokens and targets of shape (batch, length), and contexts of shape (batch, count, width).
    """

    def __init__(self, layers: int = 6, width: int = 64, words: int = 64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(CrossBlock(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        text = captions = self.embed(tokens)
        for block in self.blocks:
            text = block(text)
        for block in self.blocks:
            captions = block(captions, context)
        alike = 10 * F.normalize(text[:, -1], dim=-1) @ F.normalize(context.mean(1), dim=-1).T
        contrastive = F.cross_entropy(alike, torch.arange(len(alike), device=alike.device))
        return contrastive + F.cross_entropy(self.head(captions).flatten(0, 1), targets.flatten())
