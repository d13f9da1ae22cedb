"""Measure a training step of PyTorch: the peak of its live storages, and its floating-point operations.

A storage counts from the operation that makes it until neither Python nor autograd holds it. Storages that existed
before the step (inputs, weights, buffers) are not counted; gradients are. Views share their storage and are free.
Memory inside a kernel is not measured. States of the random generator count while they are live. No dispatched
operation makes them, so `torch.get_rng_state` is replaced while a meter is active.
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

ALIKE = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        torch.ops.aten._scaled_dot_product_flash_attention_backward
    ),
}
"""Operations that `torch.utils.flop_counter` leaves out, and the operations that cost the same."""


@dataclass(frozen=True)
class Measured:
    """The cost of a step: the peak of live storages in bytes, and FLOPs of its products, convolutions and
    attentions."""

    peak_bytes: int
    flops: int


class Meter(TorchDispatchMode):
    """A dispatch mode that counts live storages, and FLOPs by the formulas of `torch.utils.flop_counter`.

    It sees the operations of compiled steps only if their compiler runs them one by one, as `boxed_nop` does.

    Args:
        resident: Tensors that are alive before the step and are not counted.
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
        """Return True, so that compiled functions run, and run compiled, under this mode."""
        return True

    @property
    def measured(self) -> Measured:
        """Return the peak in bytes and the FLOPs so far."""
        return Measured(self.peak_bytes, self.flops)

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
    """Return the FLOPs of one call, 0 for operations without a formula. A higher-order operation that replays a random
    state has the cost of the operation inside."""
    if isinstance(func, torch._ops.HigherOrderOperator):
        inner = next((index for index, value in enumerate(args) if isinstance(value, torch._ops.OpOverload)), None)
        return 0 if inner is None else operation_flops(args[inner], args[inner + 1 :], kwargs, results)
    packet = getattr(func, "_overloadpacket", None)
    formula = flop_registry.get(ALIKE.get(packet, packet))
    return 0 if formula is None else formula(*args, **kwargs, out_val=results)
