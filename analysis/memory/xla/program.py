"""The programs of the XLA:CPU model: a block as columns of integers before and after the rewrites that precede fusion.

Operations are numbered 0 … n - 1 in program order, the terminator last. Values are numbered as in `planning/graph.py`;
each is defined by an operation or outside the block. This module does not depend on the IR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypedDict

from ....planning.graph import NO_MAKER
from .traits import Trait, Traits


class ColumnFields(TypedDict):
    """The fields of a `KernelProgram` that `Columns` provides."""

    names: tuple[str, ...]
    traits: tuple[Traits, ...]
    operands: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    maker: tuple[int, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    root: tuple[int, ...]
    constants: frozenset[int]


@dataclass
class Columns:
    """The columns of a `KernelProgram` under construction.

    Operations and values are numbered in the order in which they are added.
    """

    names: list[str] = field(default_factory=list[str])
    traits: list[Traits] = field(default_factory=list[Traits])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    maker: list[int] = field(default_factory=list[int])
    sizes: list[int] = field(default_factory=list[int])
    ranks: list[int] = field(default_factory=list[int])
    root: list[int] = field(default_factory=list[int])
    constants: set[int] = field(default_factory=set[int])

    def add_value(self, maker: int, size: int, rank: int, root: int | None = None) -> int:
        """Append a value and return its index.

        `root`: the value that owns the memory of the new value, as in `KernelProgram`; None if the new value has its
        own memory.
        """
        number = len(self.maker)
        self.maker.append(maker)
        self.sizes.append(size)
        self.ranks.append(rank)
        self.root.append(number if root is None else root)
        return number

    def add_operation(
        self, name: str, traits: Traits, operands: Sequence[int], captured: Sequence[int], makes: Sequence[int]
    ) -> None:
        """Append an operation.

        `captured`: the values that its regions read.
        """
        self.names.append(name)
        self.traits.append(traits)
        operand_numbers = tuple(operands)
        self.operands.append(operand_numbers)
        is_simple = not captured and len(operand_numbers) < 2
        read = operand_numbers if is_simple else tuple(dict.fromkeys([*operand_numbers, *captured]))
        # Share one tuple if both are equal, so that later comparisons are fast.
        self.reads.append(operand_numbers if read == operand_numbers else read)
        self.makes.append(tuple(makes))

    def fields(self) -> ColumnFields:
        return {
            "names": tuple(self.names),
            "traits": tuple(self.traits),
            "operands": tuple(self.operands),
            "reads": tuple(self.reads),
            "makes": tuple(self.makes),
            "maker": tuple(self.maker),
            "sizes": tuple(self.sizes),
            "ranks": tuple(self.ranks),
            "root": tuple(self.root),
            "constants": frozenset(self.constants),
        }


@dataclass(frozen=True)
class Kernel:
    """The requirements of the kernel that computes a matrix product or a convolution.

    Attributes:
        transposed: For each operand, whether it must be copied to another layout.
        wide: For each operand, its bytes in f32 if it is in bf16, else 0.
        wide_result: The bytes of the result in f32 if it is in bf16, else 0.
    """

    transposed: tuple[bool, ...]
    wide: tuple[int, ...]
    wide_result: int


class WindowShape(NamedTuple):
    """The sizes that the expansion of a windowed maximum's gradient needs.

    `shape`: the shape of the operand. `index_bytes`: the bytes of an index array with one element for each element of
    the operand. `source_index_bytes`: the bytes of an index array with one element for each element of the source.
    """

    shape: tuple[int, ...]
    index_bytes: int
    source_index_bytes: int


@dataclass(frozen=True)
class KernelProgram:
    """A block as columns of integers, in the form that XLA:CPU fuses into kernels.

    Attributes:
        arguments: The number of block arguments. They are the first values.
        names, traits: The name and the traits of each operation.
        operands: The operands of each operation, with repetitions.
        reads: The values that each operation and its regions read, without repetitions.
        makes: The results of each operation.
        maker: The operation that defines each value, or `NO_MAKER`.
        sizes, ranks: Bytes and rank of each value.
        root: For each value, the value that owns its memory, looking through chains of reshapes.
        reshapes: Operations whose result shares the memory of an operand, with the index of that operand.
        constants: Values that use no memory and are computed in their readers.
        broadcasts: Results of broadcasts.
        bodies: The blocks of each loop and branch, not yet rewritten.
        handed_on: For each loop, the indices of the carried values that stay unchanged in all iterations.
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
    constants: frozenset[int]
    broadcasts: frozenset[int]
    bodies: Mapping[int, tuple[SourceProgram, ...]]
    handed_on: Mapping[int, frozenset[int]]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def terminator(self) -> int:
        return len(self) - 1

    @property
    def returned(self) -> tuple[int, ...]:
        """The storages of the returned values, looking through reshapes."""
        return tuple([self.root[value] for value in self.operands[self.terminator]])

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation, the readers of its results, looking through reshapes."""
        direct: list[list[int]] = [[] for _ in self.maker]
        for op, values in enumerate(self.reads):
            for value in values:
                direct[value].append(op)
        all_readers: list[tuple[int, ...]] = [()] * len(self)
        reshapes, makes = self.reshapes.keys(), self.makes
        for op in reversed(range(len(self))):
            results = makes[op]
            # Fast paths: nearly every operation makes one value, and most values have one reader.
            readers = (
                direct[results[0]] if len(results) == 1 else [reader for result in results for reader in direct[result]]
            )
            if len(readers) == 1:
                all_readers[op] = all_readers[readers[0]] if readers[0] in reshapes else (readers[0],)
                continue
            if not reshapes.isdisjoint(readers):
                ends = (all_readers[reader] if reader in reshapes else (reader,) for reader in readers)
                readers = [end for group in ends for end in group]
            all_readers[op] = tuple(readers) if len(readers) < 2 else tuple(dict.fromkeys(readers))
        return tuple(all_readers)

    @cached_property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """For each operation, the producers of its operands, looking through reshapes and omitting constants."""
        root, maker, constants = self.root, self.maker, self.constants
        return tuple(
            [
                tuple(
                    [
                        maker[owner]
                        for value in values
                        if (owner := root[value]) not in constants and maker[owner] != NO_MAKER
                    ]
                )
                for values in self.reads
            ]
        )


@dataclass(frozen=True)
class SourceProgram(KernelProgram):
    """A block before XLA:CPU's rewrites, with data that only these rewrites need.

    Attributes:
        numbers: Operations that create a splat.
        masks: Operations that convert a mask to numbers.
        kernels: The requirements of products and convolutions.
        alike: For each value that is computed only from constants, the id of its class of equal values.
        pools: Gradients of windowed maxima.
        spreads: For each broadcast, the id of its class; two broadcasts of one class differ at most in their operands.
    """

    numbers: frozenset[int]
    masks: frozenset[int]
    kernels: Mapping[int, Kernel]
    alike: Mapping[int, int]
    pools: Mapping[int, WindowShape]
    spreads: Mapping[int, int]


@dataclass(frozen=True)
class XlaForm:
    """A rewritten program.

    `origin`: for each operation of the rewritten program, the operation of the original program from which it
    originates.
    """

    program: KernelProgram
    origin: tuple[int, ...]


@dataclass(frozen=True)
class NewOperation:
    """An operation that a rewrite inserts."""

    name: str
    traits: Traits
    operands: Sequence[int]


@dataclass
class Draft:
    """A builder of the rewritten form of `program`. The values of `program` keep their indices."""

    program: SourceProgram
    origin: list[int] = field(default_factory=list[int])
    columns: Columns = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        self.columns = Columns(
            maker=list(program.maker),
            sizes=list(program.sizes),
            ranks=list(program.ranks),
            root=list(program.root),
            constants=set(program.constants),
        )

    def keep(
        self, op: int, operands: Sequence[int], captured: Sequence[int] = (), without: Traits = Trait.NONE
    ) -> None:
        """Append an operation of the original program with new operands.

        `captured`: the values that its regions read. `without`: traits to remove from it.
        """
        program, columns = self.program, self.columns
        self._set_makers(program.makes[op])
        for value in program.makes[op]:
            # A reshape keeps only the operand whose memory it shares.
            columns.root[value] = columns.root[operands[0]] if op in program.reshapes else value
        self.origin.append(op)
        columns.add_operation(program.names[op], program.traits[op] & ~without, operands, captured, program.makes[op])

    def keep_unchanged(self, op: int) -> None:
        """Append an operation of the original program, other than a reshape, with its operands and traits."""
        program, columns = self.program, self.columns
        for value in program.makes[op]:
            columns.maker[value] = len(columns.names)
            columns.root[value] = value
        self.origin.append(op)
        columns.names.append(program.names[op])
        columns.traits.append(program.traits[op])
        columns.operands.append(program.operands[op])
        columns.reads.append(program.reads[op])
        columns.makes.append(program.makes[op])

    def leave_out(self, op: int) -> None:
        """Omit an operation of the original program; its results must have no readers."""
        for value in self.program.makes[op]:
            self.columns.maker[value] = NO_MAKER

    def replace(self, op: int, name: str, operands: Sequence[int]) -> None:
        """Append a new operation that computes the results of `op`."""
        self._set_makers(self.program.makes[op])
        self.origin.append(op)
        self.columns.add_operation(name, Trait.NONE, operands, (), self.program.makes[op])

    def insert(self, origin: int, new: NewOperation, sizes: Sequence[int], like: int) -> Sequence[int]:
        """Append a new operation and return the indices of its results.

        Args:
            origin: The operation of the original program to which the new operation is attributed.
            new: The new operation.
            sizes: The size of each result in bytes.
            like: A value with the same rank as the results.
        """
        columns = self.columns
        results = [columns.add_value(len(columns.names), size, columns.ranks[like]) for size in sizes]
        self.origin.append(origin)
        columns.add_operation(new.name, new.traits, new.operands, (), results)
        return results

    def form(self) -> XlaForm:
        program, makes = self.program, self.columns.makes
        at = {origin: op for op, origin in enumerate(self.origin) if makes[op] == program.makes[origin]}
        changed = KernelProgram(
            arguments=program.arguments,
            **self.columns.fields(),
            reshapes={at[op]: 0 for op in program.reshapes},
            # Values keep their indices.
            broadcasts=program.broadcasts,
            bodies={at[op]: bodies for op, bodies in program.bodies.items()},
            handed_on={at[op]: which for op, which in program.handed_on.items()},
        )
        return XlaForm(changed, tuple(self.origin))

    def _set_makers(self, values: Sequence[int]) -> None:
        for value in values:
            self.columns.maker[value] = len(self.columns.names)
