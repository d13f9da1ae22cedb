"""The input of the XLA:CPU model: a block as integers, for fusion, scheduling and buffer assignment.

Operations are 0 … n - 1 in program order, the terminator last; values are numbered as in `planning/graph.py`, and are
defined by an operation or outside. This module contains no IR.
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
    """Requirements of a product or a convolution.

    transposed: for each operand, whether its layout must change.
    wide: for each operand in bf16 its bytes in f32, 0 for others.
    wide_result: the same for the result.
    """

    transposed: tuple[bool, ...]
    wide: tuple[int, ...]
    wide_result: int


class Pool(NamedTuple):
    """The gradient of a maximum over windows: the `shape` of its operand, and the bytes of one index per element of the
    operand (`index_bytes`) and of the source (`source_index_bytes`)."""

    shape: tuple[int, ...]
    index_bytes: int
    source_index_bytes: int


@dataclass(frozen=True)
class KernelProgram:
    """For each operation: `names`; `traits`; `operands`, with repetitions; `reads`, the values that it and its regions
    read, without repetitions; `makes`.

    For each value: `maker`, an operation or `OUTSIDE`; `sizes`, its bytes; `ranks`; `root`, the owner of its memory
    through a chain of reshapes.

    arguments: the number of block arguments, which are the first values.
    reshapes: operations that share the memory of an operand, with the number of that operand.
    numbers: operations that make a splat.
    masks: operations that convert a mask to numbers.
    constants: values that cost nothing and are made in their readers.
    broadcasts: values that a broadcast makes.
    bodies: the blocks of each loop and branch.
    handed_on: for each loop the numbers of the carried values that no iteration changes.
    kernels: the requirements of products and convolutions.
    alike: numbers of values that the step computes from constants alone; equal for equal values.
    pools: gradients of maxima over windows.
    spreads: numbers of broadcasts; equal for equal broadcasts of possibly different operands.
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
    bodies: Mapping[int, tuple[KernelProgram, ...]]
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
        """The storages that the terminator reads, looking through reshapes."""
        return tuple([self.root[value] for value in self.operands[self.terminator]])

    def is_made_here(self, value: int) -> bool:
        return self.maker[value] != OUTSIDE and value not in self.constants

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation the readers of its results, looking through reshapes."""
        direct: list[list[int]] = [[] for _ in self.maker]
        for op, values in enumerate(self.reads):
            for value in values:
                direct[value].append(op)
        all_readers: list[tuple[int, ...]] = [()] * len(self)
        reshapes = self.reshapes.keys()
        for op in reversed(range(len(self))):
            made = self.makes[op]
            # Fast path: nearly every operation makes one value.
            readers = direct[made[0]] if len(made) == 1 else [reader for result in made for reader in direct[result]]
            if not reshapes.isdisjoint(readers):
                ends = (all_readers[reader] if reader in reshapes else (reader,) for reader in readers)
                readers = [end for group in ends for end in group]
            all_readers[op] = tuple(readers) if len(readers) < 2 else tuple(dict.fromkeys(readers))
        return tuple(all_readers)

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """For each operation the producers of its operands, looking through reshapes, without constants."""
        looked_through = ([self.root[value] for value in values] for values in self.reads)
        return tuple(
            tuple([self.maker[value] for value in values if self.is_made_here(value)]) for values in looked_through
        )
