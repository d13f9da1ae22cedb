"""A block as XLA:CPU is given it, as numbers: what fusion, schedule and places are found on.

Operations are 0 … n - 1 in program order, the terminator last; values are numbered as in `planning/graph.py`, and come
from an operation or from outside. Nothing here is IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ....planning.graph import OUTSIDE
from .traits import Traits


@dataclass(frozen=True)
class Kernel:
    """How a product or a convolution wants its operands: `transposed`, which of them lie otherwise; `wide`, for each
    operand in bf16 its bytes in f32, 0 for others; `wide_result`, the same of the result."""

    transposed: tuple[bool, ...]
    wide: tuple[int, ...]
    wide_result: int


class Pool(NamedTuple):
    """The gradient of a maximum over windows: the `shape` of its operand; bytes of an index for each element of the
    operand, and of what is added to it."""

    shape: tuple[int, ...]
    index_bytes: int
    source_index_bytes: int


@dataclass(frozen=True)
class Program:
    """For each operation: `names`; `traits`; `operands`, with repetitions; `reads`, what it and its regions read, each
    once; `makes`.

    For each value: `maker`, an operation or `OUTSIDE`; `sizes`, its bytes; `ranks`; `root`, the value whose memory a
    chain of reshapes is.

    `arguments`: how many of the first values are the block's. `reshapes`: operations that are the memory of one
    of their operands, and of which. `numbers`: those that make one number all over. `masks`: those that make numbers of
    a mask. `constants`: values that cost nothing and are made where they are used. `broadcasts`: values that are made
    by one. `bodies`: of each loop and branch the blocks inside. `handed_on`: of each loop which of the values that it
    carries no iteration changes. `kernels`: what products and convolutions want. `alike`: of values that the step
    computes from constants alone; equal for equal values. `pools`: gradients of maxima over windows. `spreads`:
    broadcasts; equal for those that do the same to what they read.
    """

    arguments: int
    names: tuple[str, ...]
    traits: tuple[Traits, ...]
    operands: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    maker: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    root: tuple[int, ...]
    reshapes: Mapping[int, int]
    numbers: frozenset[int]
    masks: frozenset[int]
    constants: frozenset[int]
    broadcasts: frozenset[int]
    bodies: Mapping[int, tuple[Program, ...]]
    handed_on: Mapping[int, frozenset[int]]
    kernels: Mapping[int, Kernel]
    alike: Mapping[int, int]
    pools: Mapping[int, Pool]
    spreads: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def terminator(self) -> int:
        return len(self) - 1

    @property
    def returned(self) -> tuple[int, ...]:
        """What the block hands on, reshapes looked through."""
        return tuple([self.root[value] for value in self.operands[self.terminator]])

    def is_made_here(self, value: int) -> bool:
        return self.maker[value] != OUTSIDE and value not in self.constants

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation those that read its results, reshapes looked through."""
        direct: list[list[int]] = [[] for _ in self.maker]
        for op, values in enumerate(self.reads):
            for value in values:
                direct[value].append(op)
        found: list[tuple[int, ...]] = [()] * len(self)
        reshapes = self.reshapes.keys()
        for op in reversed(range(len(self))):
            made = self.makes[op]
            # Nearly every operation makes one value.
            readers = direct[made[0]] if len(made) == 1 else [one for result in made for one in direct[result]]
            if not reshapes.isdisjoint(readers):
                readers = [end for reader in readers for end in (found[reader] if reader in reshapes else (reader,))]
            found[op] = tuple(readers) if len(readers) < 2 else tuple(dict.fromkeys(readers))
        return tuple(found)

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """For each operation those that make what it reads, reshapes looked through, constants left out."""
        looked_through = ([self.root[value] for value in values] for values in self.reads)
        return tuple(
            tuple([self.maker[value] for value in values if self.is_made_here(value)]) for values in looked_through
        )
