"""The copies that XLA:CPU's kernels ask for.

An operand that lies otherwise than its kernel wants it (`layouts.py`) is transposed into a copy. The convolution that
makes the gradient of a kernel reads the forward activation so, and the copy of it is made as soon as the activation is
there. Products in bf16 are computed in f32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .program import Kernel, Pool, Program
from .traits import Trait


@dataclass(frozen=True)
class XlaForm:
    """`origin`: for each operation of the program that of the program before, which it is or is a copy for."""

    program: Program
    origin: tuple[int, ...]


class _Added(NamedTuple):
    name: str
    traits: Trait


_WIDENS = _Added("stablehlo.convert", Trait.FUSIBLE | Trait.LIBRARY)
_ROUNDS = _Added("stablehlo.convert", Trait.FUSIBLE | Trait.LIBRARY | Trait.EXPENSIVE)
_COPIES = _Added("stablehlo.copy", Trait.NONE)
_WRITES_OVER = frozenset({"stablehlo.scatter", "stablehlo.while", "stablehlo.dynamic_update_slice"})
_TRANSPOSES = _Added("stablehlo.transpose", Trait.FUSIBLE)


def with_kernel_copies(program: Program) -> XlaForm:
    """Each product and convolution reads its operands as it wants them: transposed, and in f32 in place of bf16."""
    writer = _Writer(program)
    for op in range(len(program)):
        writer.add(op)
    return writer.written()


@dataclass
class _Writer:
    """The values of the program keep their numbers. `now`: what is read in place of a value that was rounded."""

    program: Program
    origin: list[int] = field(default_factory=list[int])
    names: list[str] = field(default_factory=list[str])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    maker: list[int] = field(init=False)
    sizes: list[int] = field(init=False)
    ranks: list[int] = field(init=False)
    root: list[int] = field(init=False)
    constants: set[int] = field(init=False)
    now: dict[int, int] = field(default_factory=dict[int, int])
    splats: dict[int, int] = field(default_factory=dict[int, int])
    iotas: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])
    read_often: set[int] = field(init=False)
    traits: list[Trait] = field(default_factory=list[Trait])

    def __post_init__(self) -> None:
        program = self.program
        self.maker, self.sizes = list(program.maker), list(program.sizes)
        self.ranks, self.root = list(program.ranks), list(program.root)
        self.constants = set(program.constants)
        read = Counter([program.splats[value] for values in program.reads for value in values if value in program.splats])
        self.read_often = {splat for splat, count in read.items() if count > 1}

    def add(self, op: int) -> None:
        program, kernel = self.program, self.program.kernels.get(op)
        for value in program.makes[op]:
            if value in program.splats:
                self.now[value] = self.splats.setdefault(program.splats[value], value)
        operands = [self.now.get(value, value) for value in program.operands[op]]
        reads = [self.now.get(value, value) for value in program.reads[op]]
        if op in program.pools:
            return self._add_pool(op, operands)
        if program.names[op] in _WRITES_OVER:
            operands = reads = self._zeros(op, operands)
        if kernel is not None:
            operands = reads = self._as_wanted(op, operands, kernel)
        makes = program.makes[op]
        for value in makes:
            self.maker[value] = len(self.names)
            # A reshape of what was rounded is the memory of that.
            self.root[value] = self.root[self.now.get(operands[0], operands[0])] if op in program.reshapes else value
        self._append(op, program.names[op], program.traits[op], operands, reads, makes)
        if kernel is not None and kernel.wide_result:
            # Stored in f32, and rounded by who reads it.
            (wide,) = makes
            narrow, self.sizes[wide] = self.sizes[wide], kernel.wide_result
            self.now[wide] = self._copy(op, _ROUNDS, wide, narrow)

    def _zeros(self, op: int, operands: Sequence[int]) -> list[int]:
        """What is written over is the operation's own: a copy, if others read it too."""
        found = list(operands)
        for index, value in enumerate(found if self.program.names[op] == "stablehlo.while" else found[:1]):
            if self.program.splats.get(value) in self.read_often:
                found[index] = self._copy(op, _COPIES, value, self.sizes[value])
        return found

    def _add_pool(self, op: int, operands: Sequence[int]) -> None:
        """`select_and_scatter` is for XLA a maximum over windows with its indices, which waits for the operand alone,
        and a scatter. The indices of all elements are made at the start."""
        pool, (operand, source, init) = self.program.pools[op], operands
        size = self.sizes[operand]
        iotas = [self._iota(op, operand, dimension, pool) for dimension in range(pool.rank)]
        best = self._new(op, "stablehlo.reduce_window", Trait.NONE, [operand, *iotas], [self.sizes[source]] + [pool.source_index_bytes] * pool.rank, operand)
        (where,) = self._new(op, "stablehlo.concatenate", Trait.FUSIBLE, best[1:], [pool.source_index_bytes * pool.rank], operand)
        (zeros,) = self._new(op, "stablehlo.broadcast_in_dim", Trait.NONE, [init], [size], operand)
        makes = self.program.makes[op]
        for value in makes:
            self.maker[value] = len(self.names)
        self._append(op, "stablehlo.scatter", Trait.NONE, [zeros, where, source], [zeros, where, source], makes)

    def _iota(self, op: int, operand: int, dimension: int, pool: Pool) -> int:
        key = (pool.rank, pool.index_bytes, dimension)
        if key not in self.iotas:
            (self.iotas[key],) = self._new(op, "stablehlo.iota", Trait.FUSIBLE, [], [pool.index_bytes], operand)
        return self.iotas[key]

    def _new(self, origin: int, name: str, traits: Trait, operands: Sequence[int], sizes: Sequence[int], like: int) -> list[int]:
        made = list(range(len(self.maker), len(self.maker) + len(sizes)))
        for value, size in zip(made, sizes, strict=True):
            self.maker.append(len(self.names))
            self.sizes.append(size)
            self.ranks.append(self.ranks[like])
            self.root.append(value)
        self._append(origin, name, traits, operands, operands, made)
        return made

    def _as_wanted(self, op: int, operands: Sequence[int], kernel: Kernel) -> list[int]:
        found = list(operands)
        for index, size in enumerate(kernel.wide):
            if size:
                found[index] = self._copy(op, _WIDENS, found[index], size)
        for index, transposed in enumerate(kernel.transposed):
            if transposed:
                found[index] = self._copy(op, _TRANSPOSES, found[index], self.sizes[found[index]])
        return found

    def _copy(self, origin: int, added: _Added, operand: int, size: int) -> int:
        made = len(self.maker)
        self.maker.append(len(self.names))
        self.sizes.append(size)
        self.ranks.append(self.ranks[operand])
        self.root.append(made)
        if operand in self.constants:
            self.constants.add(made)
        self._append(origin, added.name, added.traits, [operand], [operand], [made])
        return made

    def _append(
        self,
        origin: int,
        name: str,
        traits: Trait,
        operands: Sequence[int],
        reads: Sequence[int],
        makes: Sequence[int],
    ) -> None:
        self.origin.append(origin)
        self.names.append(name)
        self.traits.append(traits)
        self.operands.append(tuple(operands))
        self.reads.append(tuple(dict.fromkeys(reads)))
        self.makes.append(tuple(makes))

    def written(self) -> XlaForm:
        program = self.program
        at = {origin: op for op, origin in enumerate(self.origin) if self.makes[op] == program.makes[origin]}
        changed = replace(
            program,
            names=tuple(self.names),
            operands=tuple(self.operands),
            reads=tuple(self.reads),
            makes=tuple(self.makes),
            maker=tuple(self.maker),
            sizes=tuple(self.sizes),
            ranks=tuple(self.ranks),
            root=tuple(self.root),
            reshapes=frozenset([at[op] for op in program.reshapes]),
            constants=frozenset(self.constants),
            bodies={at[op]: bodies for op, bodies in program.bodies.items()},
            iteration_bytes={at[op]: size for op, size in program.iteration_bytes.items()},
            kernels={at[op]: kernel for op, kernel in program.kernels.items()},
            traits=tuple(self.traits),
        )
        return XlaForm(changed, tuple(self.origin))
