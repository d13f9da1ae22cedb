"""Estimate peaks of FX graphs in program order, from the live storages of their fake values."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch

from ..fx.fake_values import hint_of, tensors_in
from ..fx.halves import Halves, calls_of, placeholders_of


def program_order_peak(halves: Halves, num_fwd_outputs: int) -> int:
    """Estimate the peak in bytes of two halves in program order, without the step's arguments and constants."""
    forward, backward = halves
    returned: Any = forward.graph.output_node().args[0]
    gradients: Any = backward.graph.output_node().args[0]
    liveness = _Liveness()
    for node in placeholders_of(forward):
        liveness.add_argument(node)
    for node in calls_of(forward):
        liveness.add(node)
    saved = {node.name: node for node in returned[num_fwd_outputs:] if isinstance(node, torch.fx.Node)}
    for node in placeholders_of(backward):
        liveness.add_argument(node, saved.get(node.name))
    for node in calls_of(backward):
        liveness.add(node)
    for node in (*returned[:num_fwd_outputs], *gradients):
        if isinstance(node, torch.fx.Node):
            liveness.use(node)
    return liveness.peak()


class _Liveness:
    """Records the live range of each storage: the call that allocates it, and its last use.

    A copy has the same fake value as its original, but a different storage at run time. A result therefore shares the
    storage of an operand with the same fake storage, and gets a new storage otherwise.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._storages = dict[torch.fx.Node, dict[int, int | None]]()
        self._sizes = list[int]()
        self._made = list[int]()
        self._last = list[int]()

    def add_argument(self, node: torch.fx.Node, saved: torch.fx.Node | None = None) -> None:
        """Record an argument of a half.

        Args:
            node: The placeholder.
            saved: For a value that the forward half saves, its node in that half; the placeholder shares its storage.
                None for an argument of the step, whose storage is not counted.
        """
        if saved is not None:
            self._storages[node] = self._storages[saved]
            return
        self._storages[node] = dict.fromkeys(map(_storage, tensors_in(node.meta.get("val"))))

    def add(self, node: torch.fx.Node) -> None:
        """Record a call: the storages that it allocates, and its uses of its operands."""
        read = {key: at for operand in node.all_input_nodes for key, at in self._storages.get(operand, {}).items()}
        stored = self._storages[node] = dict[int, int | None]()
        for value in tensors_in(node.meta.get("val")):
            key = _storage(value)
            if key in read:
                stored[key] = read[key]
            elif key not in stored:
                stored[key] = len(self._sizes)
                self._sizes.append(int(hint_of(value.untyped_storage().nbytes())))
                self._made.append(self._calls)
                self._last.append(self._calls)
        for operand in (*node.all_input_nodes, node):
            self.use(operand)
        self._calls += 1

    def use(self, node: torch.fx.Node) -> None:
        """Extend the live ranges of the storages of `node` to the call that is added next."""
        for storage in self._storages.get(node, {}).values():
            if storage is not None:
                self._last[storage] = self._calls

    def peak(self) -> int:
        change = [0] * (self._calls + 2)
        for size, made, last in zip(self._sizes, self._made, self._last, strict=True):
            change[made] += size
            change[last + 1] -= size
        return max(accumulate(change), default=0)


def _storage(value: torch.Tensor) -> int:
    return value.untyped_storage()._cdata
