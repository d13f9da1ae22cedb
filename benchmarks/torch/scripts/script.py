"""The definition of the scripts in the corpus: functions that train a model and return all final tensors.

A script calls its argument `compile` instead of `torch.compile`. The argument is the identity in the eager run, and
compiles with `recompute.torch` otherwise. A script seeds itself, so that two runs can be compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Compile = Callable[..., Any]
Results = dict[str, torch.Tensor]
Body = Callable[[Compile], Results]


@dataclass(frozen=True)
class Script:
    """A script of the corpus, with its name."""

    name: str
    body: Body

    @property
    def purpose(self) -> str:
        """The first paragraph of the script's docstring, as one line."""
        return " ".join((self.body.__doc__ or "").strip().partition("\n\n")[0].split())


SCRIPTS: dict[str, Script] = {}
"""The registered scripts by name. Importing a module registers its scripts."""


def script(body: Body) -> Body:
    """Register a script under the name of its function."""
    name = body.__name__
    assert name not in SCRIPTS, f"two scripts have the name {name!r}"
    SCRIPTS[name] = Script(name, body)
    return body


def final(model: nn.Module, losses: Iterable[torch.Tensor], **further: torch.Tensor) -> Results:
    """Return the losses, parameters, gradients and buffers of a model, the random state, and further tensors."""
    return {
        **{f"loss {index}": loss.detach().clone() for index, loss in enumerate(losses)},
        **{f"parameter {name}": parameter.detach().clone() for name, parameter in model.named_parameters()},
        **{f"grad {name}": p.grad.detach().clone() for name, p in model.named_parameters() if p.grad is not None},
        **{f"buffer {name}": buffer.detach().clone() for name, buffer in model.named_buffers()},
        **further,
        "random state": torch.get_rng_state(),
    }


def mlp(width: int = 32, depth: int = 4, dropout: float = 0.1) -> nn.Sequential:
    """Return an MLP whose forward pass has values worth recomputing."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)]
    return nn.Sequential(*layers)


class TwoNetworks(nn.Module):
    """Two networks, which subclasses apply one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = mlp(depth=2), mlp(depth=2)


def train(model: nn.Module, call: Compile, batches: Iterable[tuple[Any, ...]], rate: float = 0.05) -> list[Any]:
    """Train with SGD and momentum, and return the losses. The model keeps its last gradients.

    `call(*batch)` returns the loss.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = call(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def batches(count: int, *shape: int) -> list[tuple[torch.Tensor]]:
    """Return `count` random batches of one tensor each."""
    return [(torch.randn(*shape),) for _ in range(count)]
