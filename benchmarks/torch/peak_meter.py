"""Measure the peak of live storages and the FLOPs of a training step of PyTorch.

A storage is live from the operation that creates it until neither Python nor autograd references it. Gradients are
measured, but storages that existed before the step (inputs, weights, buffers) are not. Views share a storage and take
no memory of their own. Memory inside a kernel is not measured. Live states of the random generator are measured.
Because no dispatched operation creates these states, `torch.get_rng_state` is replaced while a meter is active.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from typing_extensions import override

SAME_FLOPS = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        torch.ops.aten._scaled_dot_product_flash_attention_backward
    ),
}
"""Maps operations that `torch.utils.flop_counter` does not know to operations with the same FLOPs."""


@dataclass(frozen=True)
class StepCost:
    """The peak of live storages of a step, and the FLOPs of its matrix products, convolutions and attention."""

    peak_bytes: int
    flops: int


class Meter(TorchDispatchMode):
    """A dispatch mode that measures live storages, and FLOPs with the formulas of `torch.utils.flop_counter`.

    It sees the operations of a compiled step only if the compiler runs them one by one, as `boxed_nop` does.

    Args:
        resident: The tensors that exist before the step and are not measured.
    """

    supports_higher_order_operators = True

    def __init__(self, resident: list[torch.Tensor]):
        super().__init__()
        self._seen = {id(tensor.untyped_storage()): tensor.untyped_storage() for tensor in resident}
        self._references: dict[int, weakref.ref[Any]] = {}
        self.live_bytes = 0
        self.peak_bytes = 0
        self.flops = 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return True, so that compiled functions stay compiled under this mode."""
        return True

    @property
    def measured(self) -> StepCost:
        """The peak in bytes and the FLOPs so far."""
        return StepCost(self.peak_bytes, self.flops)

    @override
    def __enter__(self) -> Self:
        get_state = self._get_state = torch.get_rng_state

        def counted() -> torch.Tensor:
            state = get_state()
            self._count(state.untyped_storage())
            return state

        torch.get_rng_state = counted
        return super().__enter__()

    @override
    def __exit__(self, *error: Any) -> None:
        torch.get_rng_state = self._get_state
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        self.flops += operation_flops(func, args, kwargs, results)
        for leaf in tree_leaves(results):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf.untyped_storage())
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return results

    def _count(self, storage: Any) -> None:
        key = id(storage)
        if key in self._seen or key in self._references:
            return
        size = storage.nbytes()

        def release(_: Any) -> None:
            self.live_bytes -= size
            del self._references[key]

        self._references[key] = weakref.ref(storage, release)
        self.live_bytes += size


def operation_flops(func: Any, args: Any, kwargs: Any, results: Any) -> int:
    """Return the FLOPs of one call, or 0 if no formula is known.

    A higher-order operation that replays a random state costs as much as the operation inside.
    """
    if isinstance(func, torch._ops.HigherOrderOperator):
        inner = next((index for index, value in enumerate(args) if isinstance(value, torch._ops.OpOverload)), None)
        return 0 if inner is None else operation_flops(args[inner], args[inner + 1 :], kwargs, results)
    packet: Any = getattr(func, "_overloadpacket", None)
    formula = flop_registry.get(SAME_FLOPS.get(packet, packet))
    return 0 if formula is None else formula(*args, **kwargs, out_val=results)
