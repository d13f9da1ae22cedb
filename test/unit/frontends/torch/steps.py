"""Small training steps in PyTorch, their results, and the memory that their runs need."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUntypedBaseClass=false

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'xdsl-recompute[torch]'")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402


class Block(nn.Module):
    def __init__(self, width: int, p: float):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(p))
        self.drop = nn.Dropout(p)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, 2, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(width, dim=2))
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
        scores = (q @ k.transpose(-2, -1)).masked_fill(~mask, float("-inf")).softmax(-1)
        mixed = (self.drop(scores) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, layers: int = 2, width: int = 32, p: float = 0.1):
        super().__init__()
        self.embed = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width, p) for _ in range(layers))
        self.head = nn.Linear(width, 64, bias=False)

    def forward(self, tokens: Any, targets: Any) -> Any:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).view(-1, 64), targets.view(-1))


class Normalized(nn.Module):
    """Layers with batch normalization, whose statistics are buffers that the step overwrites, and with dropout."""

    def __init__(self, width: int = 128, layers: int = 3):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1))
            for _ in range(layers)
        )

    def forward(self, x: Any, target: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return F.mse_loss(x, target)


class Convolutions(nn.Module):
    def __init__(self, channels: int = 8, blocks: int = 2):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)) for _ in range(blocks)
        )

    def forward(self, x: Any, target: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return F.cross_entropy(x.mean((2, 3)), target)


class Mixed(nn.Module):
    """Layers whose products are in bfloat16, with a scaled residual and a random sign."""

    def __init__(self, width: int = 64, layers: int = 3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Any) -> Any:
        layer: Any
        for layer in self.layers:
            product = F.linear(x.to(torch.bfloat16), layer.weight.to(torch.bfloat16)).to(torch.float32)
            x = torch.add(F.gelu(product + layer.bias, approximate="tanh"), x, alpha=2)
            x = x * torch.randn_like(x).cos()
        return x.square().mean()


class Recurrent(nn.Module):
    """An LSTM cell over time: its gates are parts of one product, whose storage stays until the last of them dies."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x: Any) -> Any:
        state = (torch.zeros_like(x[0]), torch.zeros_like(x[0]))
        outputs: list[Any] = []
        for part in x.unbind():
            state = self.cell(part, state)
            outputs.append(state[0])
        return torch.stack(outputs).square().mean()


def _tokens() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randint(64, (4, 64), generator=generator) for _ in range(2))  # pyright: ignore


STEPS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "gpt": lambda: (Gpt(), _tokens()),
    "gpt without dropout": lambda: (Gpt(p=0.0), _tokens()),
    "batch norm": lambda: (Normalized(), (torch.randn(256, 128), torch.randn(256, 128))),
    "convolutions": lambda: (Convolutions(), (torch.randn(4, 3, 16, 16), torch.randint(8, (4,)))),
    "bfloat16": lambda: (Mixed(), (torch.randn(256, 64),)),
    "lstm": lambda: (Recurrent(), (torch.randn(12, 64, 32),)),
}


class Meter(TorchDispatchMode):
    """Meter of the peak bytes of storages that operations make, by finalizers. Storages in `there` are not counted."""

    def __init__(self, there: Iterable[Any]):
        super().__init__()
        self.live = self.peak = 0
        self._seen = {tensor.untyped_storage()._cdata for tensor in there}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._note(tensor.untyped_storage())
        return result

    def _note(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen:
            return
        self._seen.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live -= size


@dataclass(frozen=True)
class Ran:
    """Results of a step, and the peak bytes of the storages that it made."""

    loss: Any
    gradients: list[Any]
    buffers: list[Any]
    random_state: Any
    peak_bytes: int

    def same_as(self, other: Ran) -> bool:
        """Return whether loss, gradients, buffers and the state of the generator are equal, bit for bit."""
        pairs = zip([*self.gradients, *self.buffers], [*other.gradients, *other.buffers], strict=True)
        same = torch.equal(self.loss, other.loss) and torch.equal(self.random_state, other.random_state)
        return same and all(torch.equal(ours, theirs) for ours, theirs in pairs)


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the model of a step, with the same weights each time, and its arguments."""
    torch.manual_seed(0)
    return STEPS[name]()


def run(model: Any, step: Callable[..., Any], args: tuple[Any, ...]) -> Ran:
    """Run one training step, from the same random state each time."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(7)
    meter = Meter([*model.parameters(), *model.buffers(), *args])
    with meter:
        loss = step(*args)
        loss.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    buffers = [buffer.clone() for buffer in model.buffers()]
    return Ran(loss.detach(), gradients, buffers, torch.get_rng_state(), meter.peak)


def compiled(model: Any, args: tuple[Any, ...], compile_step: Callable[[Any], Any]) -> tuple[Any, Ran]:
    """Return the compiled step, and the results of its second run, which starts from the state of the first one."""
    torch._dynamo.reset()
    own = copy.deepcopy(model)
    step = compile_step(own)
    before = copy.deepcopy(own.state_dict())
    torch.manual_seed(7)
    step(*args).backward()
    own.load_state_dict(before)
    return step, run(own, step, args)
