"""The copies that XLA:CPU's kernels ask for.

An operand that lies otherwise than its kernel wants it (`layouts.py`) is transposed into a copy. The convolution that
makes the gradient of a kernel reads the forward activation so, and the copy of it is made as soon as the activation is
there. Products in bf16 are computed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .program import Kernel, Program


@dataclass(frozen=True)
class XlaForm:
    """`origin`: for each operation of the program that of the program before, which it is or is a copy for."""

    program: Program
    origin: tuple[int, ...]


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

    def __post_init__(self) -> None:
        program = self.program
        self.maker, self.sizes = list(program.maker), list(program.sizes)
        self.ranks, self.root = list(program.ranks), list(program.root)
        self.constants = set(program.constants)

    def add(self, op: int) -> None:
        program, kernel = self.program, self.program.kernels.get(op)
        operands = [self.now.get(value, value) for value in program.operands[op]]
        reads = [self.now.get(value, value) for value in program.reads[op]]
        if kernel is not None:
            operands = reads = self._as_wanted(op, operands, kernel)
        makes = program.makes[op]
        for value in makes:
            self.maker[value] = len(self.names)
            # A reshape of what was rounded is the memory of that.
            self.root[value] = self.root[self.now.get(operands[0], operands[0])] if op in program.reshapes else value
        self._append(op, program.names[op], operands, reads, makes)
        if kernel is not None and kernel.wide_result:
            # Stored in f32, and rounded by who reads it.
            (wide,) = makes
            narrow, self.sizes[wide] = self.sizes[wide], kernel.wide_result
            self.now[wide] = self._copy(op, "stablehlo.convert", wide, narrow)

    def _as_wanted(self, op: int, operands: Sequence[int], kernel: Kernel) -> list[int]:
        found = list(operands)
        for index, size in enumerate(kernel.wide):
            if size:
                found[index] = self._copy(op, "stablehlo.convert", found[index], size)
        for index, transposed in enumerate(kernel.transposed):
            if transposed:
                found[index] = self._copy(op, "stablehlo.transpose", found[index], self.sizes[found[index]])
        return found

    def _copy(self, origin: int, name: str, operand: int, size: int) -> int:
        made = len(self.maker)
        self.maker.append(len(self.names))
        self.sizes.append(size)
        self.ranks.append(self.ranks[operand])
        self.root.append(made)
        if operand in self.constants:
            self.constants.add(made)
        self._append(origin, name, [operand], [operand], [made])
        return made

    def _append(
        self, origin: int, name: str, operands: Sequence[int], reads: Sequence[int], makes: Sequence[int]
    ) -> None:
        self.origin.append(origin)
        self.names.append(name)
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
        )
        return XlaForm(changed, tuple(self.origin))
