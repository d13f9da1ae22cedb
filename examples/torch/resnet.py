"""Train a ResNet with the structure of ResNet-50 and BatchNorm, in 70 % of the memory of its plain step.

    python examples/torch/resnet.py [--budget 70%]

The script needs `pip install 'xdsl-recompute[torch]'`. The running statistics are updated once per step, as in the
plain step.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    """A residual block of convolutions with sizes 1, 3 and 1, for inputs of shape (batch, channels, height, width)."""

    def __init__(self, channels: int, inner: int, stride: int):
        super().__init__()
        outer = 4 * inner
        self.conv1, self.norm1 = nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.norm2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.norm3 = nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer)
        self.shortcut = (
            nn.Sequential(nn.Conv2d(channels, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
            if stride > 1 or channels != outer
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A classifier that returns its loss. Its inputs are images (batch, 3, height, width) and labels (batch,)."""

    def __init__(self, depths: tuple[int, ...] = (3, 4, 6, 3), width: int = 8, classes: int = 10):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.blocks = nn.ModuleList()
        channels = width
        for stage, depth in enumerate(depths):
            inner = width << stage
            for index in range(depth):
                self.blocks.append(Bottleneck(channels, inner, 2 if stage and not index else 1))
                channels = 4 * inner
        self.head = nn.Linear(channels, classes)

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.stem(images))), 2)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    budget = "the memory budget: bytes of the device, such as 8GiB, or a share of the plain step's peak"
    parser.add_argument("--budget", default="70%", help=budget)
    budget = parser.parse_args().budget

    import recompute.torch as rt

    torch.manual_seed(0)
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = rt.compile(model, budget=budget)  # was: torch.compile(model)
    images, labels = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
    for _ in range(3):
        optimizer.zero_grad()
        loss = step(images, labels)
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}, running mean {model.norm.running_mean.sum().item():.5f}")
    print(step.report())


if __name__ == "__main__":
    main()
