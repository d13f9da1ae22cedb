"""The gradient of a maximum over windows, as XLA writes it (`xla/service/select_and_scatter_expander.cc`).

`select_and_scatter` becomes a windowed reduction that finds the index of each maximum, and a scatter to these indices.
The reduction depends on the operand alone, and so runs in the forward pass. It reads the indices of all elements, which
are made at the start of the step: one array of the shape of the operand for each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .draft import Draft
from .program import Pool
from .traits import Trait


@dataclass
class Pools:
    """Expands pools. `iotas`: index arrays by shape and dimension, which operands of one shape share."""

    new: Draft
    iotas: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict[tuple[tuple[int, ...], int], int])

    def add(self, op: int, operands: Sequence[int]) -> None:
        new, pool, (operand, source, init) = self.new, self.new.program.pools[op], operands
        iotas = [self._iota(op, operand, dimension, pool) for dimension in range(len(pool.shape))]
        sizes = [new.columns.sizes[source]] + [pool.source_index_bytes] * len(pool.shape)
        maxima = new.insert(op, "stablehlo.reduce_window", Trait.NONE, [operand, *iotas], sizes, operand)
        index_bytes = [pool.source_index_bytes * len(pool.shape)]
        (indices,) = new.insert(op, "stablehlo.concatenate", Trait.FUSIBLE, maxima[1:], index_bytes, operand)
        (zeros,) = new.insert(
            op, "stablehlo.broadcast_in_dim", Trait.NONE, [init], [new.columns.sizes[operand]], operand
        )
        new.replace(op, "stablehlo.scatter", [zeros, indices, source])

    def _iota(self, op: int, operand: int, dimension: int, pool: Pool) -> int:
        key = (pool.shape, dimension)
        if key not in self.iotas:
            size = pool.index_bytes
            (self.iotas[key],) = self.new.insert(op, "stablehlo.iota", Trait.FUSIBLE, [], [size], operand)
        return self.iotas[key]
