"""Train a GPT with dropout in half the memory of its plain step.

    python examples/torch/gpt.py [--budget 50%]

The script needs `pip install 'xdsl-recompute[torch]'`. The results and the final random state are bit-identical to the
plain step.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention over (batch, length, width), written out or with `scaled_dot_product_attention`."""

    def __init__(self, width: int, heads: int, length: int, dropout: float, fused: bool):
        super().__init__()
        self.heads, self.dropout, self.fused = heads, dropout, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.attention_dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        if self.fused:
            dropout = self.dropout if self.training else 0.0
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        else:
            scores = (q @ k.transpose(-2, -1)) / (width // self.heads) ** 0.5
            scores = scores.masked_fill(~self.mask, float("-inf"))
            mixed = self.attention_dropout(scores.softmax(-1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


HEAD_WIDTH = 32
"""The width of each attention head."""


class Block(nn.Module):
    def __init__(self, width: int, heads: int, length: int, dropout: float, fused: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, length, dropout, fused)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop1(self.attn(self.norm1(x)))
        return x + self.drop2(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """A language model that returns its loss. The inputs are integer tokens and targets of shape (batch, length)."""

    def __init__(
        self,
        layers: int = 6,
        width: int = 128,
        length: int = 128,
        words: int = 512,
        dropout: float = 0.1,
        fused: bool = False,
    ):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, width // HEAD_WIDTH, length, dropout, fused) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.place[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = "the memory budget: bytes of the device, such as 8GiB, or a share of the plain step's peak"
    parser.add_argument("--budget", default="50%", help=budget)
    budget = parser.parse_args().budget

    import recompute.torch as rt

    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = rt.compile(model, budget=budget)  # was: torch.compile(model)
    tokens = torch.randint(512, (4, 129))
    for _ in range(3):
        optimizer.zero_grad()
        loss = step(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    print(step.report())


if __name__ == "__main__":
    main()
