"""Networks that only the benchmark uses. Each network returns its loss, and runs in about a second on a CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class MlpBatchNorm(nn.Module):
    """An MLP with batch normalization and dropout, for inputs of shape (batch, width)."""

    def __init__(self, layers: int = 8, width: int = 256, classes: int = 10):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.GELU(), nn.Dropout(0.1))
            for _ in range(layers)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x), labels)


class ViT(nn.Module):
    """A vision Transformer with PyTorch's own encoder layers and dropout."""

    def __init__(self, layers: int = 6, width: int = 96, patch: int = 8, size: int = 64, classes: int = 10):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x[:, 0]), labels)


class LSTM(nn.Module):
    """Two LSTM layers unrolled over time, for tokens of shape (batch, length)."""

    def __init__(self, width: int = 64, words: int = 128, layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        steps = list(self.embed(tokens).unbind(1))
        for cell in self.blocks:
            state = (torch.zeros_like(steps[0]), torch.zeros_like(steps[0]))
            for index, x in enumerate(steps):
                state = cell(x, state)
                steps[index] = state[0]
        return F.cross_entropy(self.head(torch.stack(steps, 1)).flatten(0, 1), targets.flatten())


class Experts(nn.Module):
    """A layer of experts for inputs of shape (tokens, width), which weighs the two best experts of each token."""

    def __init__(self, width: int, experts: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 4 * width) * width**-0.5)
        self.down = nn.Parameter(torch.randn(experts, 4 * width, width) * (4 * width) ** -0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        best, which = self.gate(y).softmax(-1).topk(2, dim=-1)
        weights = torch.zeros(len(y), len(self.up), dtype=y.dtype).scatter(1, which, best)
        mixed = torch.einsum("etf,efw->etw", F.silu(torch.einsum("tw,ewf->etf", y, self.up)), self.down)
        return x + torch.einsum("etw,te->tw", mixed, weights)


class MoE(nn.Module):
    """A model with several layers of experts, and a cross-entropy loss."""

    def __init__(self, layers: int = 4, width: int = 64, experts: int = 4, words: int = 128):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Experts(width, experts) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens.flatten())
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x), targets.flatten())


class Bert(nn.Module):
    """The masked language model of `transformers`, built from its configuration."""

    def __init__(self, **sizes: Any):
        super().__init__()
        from transformers import BertConfig, BertForMaskedLM

        self.net = BertForMaskedLM(BertConfig(**sizes))

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.net(input_ids=tokens, labels=targets).loss


class Llama(nn.Module):
    """The causal language model of `transformers`, built from its configuration."""

    def __init__(self, **sizes: Any):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.net = LlamaForCausalLM(LlamaConfig(**sizes, use_cache=False))

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.net(input_ids=tokens, labels=targets).loss
