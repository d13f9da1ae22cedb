"""Run one training step of a variant of a model, and compare the results of two steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from recompute.benchmarks.torch.peak_meter import Meter, StepCost

RANDOM_STATE = "random state"
"""The name of the final random state in an outcome."""
SEED = 1234
"""The seed with which each step begins."""


@dataclass(frozen=True)
class Outcome:
    """The results of a step by name: loss, gradients, buffers, and the final random state."""

    tensors: dict[str, torch.Tensor]

    def distances(self, other: Outcome) -> dict[str, float]:
        """Return the distances of the tensors that are not bit-equal, by name. Tensors that only one outcome contains
        are left out."""
        pairs = {name: (self.tensors[name], other.tensors[name]) for name in self.tensors.keys() & other.tensors.keys()}
        return {name: distance(*pair) for name, pair in pairs.items() if not same_bits(*pair)}

    def largest_distance(self, other: Outcome) -> float:
        """Return the largest distance of a tensor other than the random state.

        Raises:
            ValueError: A tensor is missing in one outcome.
        """
        if names := self.tensors.keys() ^ other.tensors.keys():
            raise ValueError(f"missing in one outcome: {', '.join(sorted(names))}")
        return max((value for name, value in self.distances(other).items() if name != RANDOM_STATE), default=0.0)

    def has_state_of(self, other: Outcome) -> bool:
        """Return whether the final random states of two steps are equal."""
        return torch.equal(self.tensors[RANDOM_STATE], other.tensors[RANDOM_STATE])

    def differences(self, other: Outcome) -> list[str]:
        """Return the names of the tensors that are not bit-equal, each with its distance."""
        missing = [f"{name}: missing in one outcome" for name in self.tensors.keys() ^ other.tensors.keys()]
        return sorted([*missing, *(f"{name}: {value:.2g}" for name, value in self.distances(other).items())])


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether two tensors have equal types, shapes and bits, including NaN."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return torch.equal(bytes_of(left), bytes_of(right))


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor, as a uint8 vector."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def distance(left: torch.Tensor, right: torch.Tensor) -> float:
    """Return the largest difference divided by the largest value, or infinity if the shapes differ."""
    if left.shape != right.shape:
        return float("inf")
    scale = left.detach().double().abs().max().item() or 1.0
    return (left.detach().double() - right.detach().double()).abs().max().item() / scale


def training_step(model: nn.Module, call: Callable[..., torch.Tensor], inputs: tuple[Any, ...]) -> Outcome:
    """Clear the gradients, run the forward and the backward pass from a fixed seed, and return the results."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(SEED)
    loss = call(*inputs)
    loss.backward()
    return Outcome(
        {
            "loss": loss.detach().clone(),
            **{f"grad {name}": p.grad.clone() for name, p in model.named_parameters() if p.grad is not None},
            **{f"buffer {name}": buffer.clone() for name, buffer in model.named_buffers()},
            RANDOM_STATE: torch.get_rng_state(),
        }
    )


def meter_step(model: nn.Module, call: Callable[..., torch.Tensor], inputs: tuple[Any, ...]) -> StepCost:
    """Measure the peak and the FLOPs of one step. The peak includes the gradients."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(SEED)
    with Meter(resident(model, inputs)) as meter:
        call(*inputs).backward()
    return meter.measured


def seconds(model: nn.Module, call: Callable[..., torch.Tensor], inputs: tuple[Any, ...], repeats: int) -> float:
    """Return the shortest time of `repeats` steps."""
    best = float("inf")
    for _ in range(repeats):
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        call(*inputs).backward()
        best = min(best, time.perf_counter() - start)
    return best


def resident(model: nn.Module, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
    """Return the tensors that exist before the step: weights, buffers and inputs."""
    return [*model.parameters(), *model.buffers(), *(leaf for leaf in inputs if isinstance(leaf, torch.Tensor))]


def resident_bytes(model: nn.Module, inputs: tuple[Any, ...]) -> int:
    """Return the bytes of the storages of weights, buffers and inputs, each counted once."""
    storages = {storage.data_ptr(): storage for t in resident(model, inputs) if (storage := t.untyped_storage())}
    return sum(storage.nbytes() for storage in storages.values())
