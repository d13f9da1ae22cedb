"""The gradient of a maximum over windows, as XLA writes it (`xla/service/select_and_scatter_expander.cc`).

`select_and_scatter` is a reduction of windows that finds where the maximum of each lies, and a scatter to there. The
reduction waits for the operand alone, and so runs in the forward pass; it reads the indices of all elements, which
are made when the step starts, one array as large as the operand for each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .draft import Draft
from .program import Pool
from .traits import Trait


@dataclass
class Pools:
    """`iotas`: the indices, by pool and dimension: those of operands of one shape are made once."""

    new: Draft
    iotas: dict[tuple[tuple[int, ...], int], int] = field(default_factory=dict[tuple[tuple[int, ...], int], int])

    def add(self, op: int, operands: Sequence[int]) -> None:
        new, pool, (operand, source, init) = self.new, self.new.program.pools[op], operands
        iotas = [self._iota(op, operand, dimension, pool) for dimension in range(len(pool.shape))]
        found = [new.columns.sizes[source]] + [pool.source_index_bytes] * len(pool.shape)
        best = new.insert(op, "stablehlo.reduce_window", Trait.NONE, [operand, *iotas], found, operand)
        together = [pool.source_index_bytes * len(pool.shape)]
        (where,) = new.insert(op, "stablehlo.concatenate", Trait.FUSIBLE, best[1:], together, operand)
        (zeros,) = new.insert(
            op, "stablehlo.broadcast_in_dim", Trait.NONE, [init], [new.columns.sizes[operand]], operand
        )
        new.replace(op, "stablehlo.scatter", [zeros, where, source])

    def _iota(self, op: int, operand: int, dimension: int, pool: Pool) -> int:
        key = (pool.shape, dimension)
        if key not in self.iotas:
            size = pool.index_bytes
            (self.iotas[key],) = self.new.insert(op, "stablehlo.iota", Trait.FUSIBLE, [], [size], operand)
        return self.iotas[key]
