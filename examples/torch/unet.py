"""Train a U-Net, whose skip connections are live from the start of the forward pass to the end of the backward pass.

    python examples/torch/unet.py [--budget 80%]

The script needs `pip install 'xdsl-recompute[torch]'`.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class DoubleConv(nn.Sequential):
    """Two convolutions with GroupNorm and SiLU, for inputs of shape (batch, channels, height, width)."""

    def __init__(self, channels: int, out: int):
        super().__init__(
            nn.Conv2d(channels, out, 3, padding=1),
            nn.GroupNorm(4, out),
            nn.SiLU(),
            nn.Conv2d(out, out, 3, padding=1),
            nn.GroupNorm(4, out),
            nn.SiLU(),
        )


class UNet(nn.Module):
    """A noise predictor that returns its mean squared error. Both inputs have shape (batch, 3, height, width)."""

    def __init__(self, depth: int = 4, width: int = 8):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(DoubleConv(widths[i], widths[i]) for i in range(depth))
        self.shrink = nn.ModuleList(nn.Conv2d(widths[i], widths[i + 1], 2, 2) for i in range(depth))
        self.middle = DoubleConv(widths[-1], widths[-1])
        self.grow = nn.ModuleList(nn.ConvTranspose2d(widths[i + 1], widths[i], 2, 2) for i in reversed(range(depth)))
        self.up = nn.ModuleList(DoubleConv(2 * widths[i], widths[i]) for i in reversed(range(depth)))
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, images: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        x, skips = self.stem(images + noise), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x)
            skips.append(x)
            x = shrink(x)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([grow(x), skips.pop()], 1))
        return F.mse_loss(self.head(x), noise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = "the memory budget: bytes of the device, such as 8GiB, or a share of the plain step's peak"
    parser.add_argument("--budget", default="80%", help=budget)
    budget = parser.parse_args().budget

    import recompute.torch as rt

    torch.manual_seed(0)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = rt.compile(model, budget=budget)  # was: torch.compile(model)
    images, noise = torch.randn(2, 3, 64, 64), torch.randn(2, 3, 64, 64)
    for _ in range(3):
        optimizer.zero_grad()
        loss = step(images, noise)
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    print(step.report())


if __name__ == "__main__":
    main()
