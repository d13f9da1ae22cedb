"""A program while it is written anew, operation by operation, with others in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....planning.graph import OUTSIDE
from .program import Program
from .traits import Trait


@dataclass(frozen=True)
class XlaForm:
    """`origin`: for each operation of the program that of the program before, which it is or is a copy for."""

    program: Program
    origin: tuple[int, ...]


@dataclass
class Rewritten:
    """The values of the program keep their numbers."""

    program: Program
    origin: list[int] = field(default_factory=list[int])
    names: list[str] = field(default_factory=list[str])
    traits: list[Trait] = field(default_factory=list[Trait])
    operands: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    makes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    maker: list[int] = field(init=False)
    sizes: list[int] = field(init=False)
    ranks: list[int] = field(init=False)
    root: list[int] = field(init=False)
    constants: set[int] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        self.maker, self.sizes = list(program.maker), list(program.sizes)
        self.ranks, self.root = list(program.ranks), list(program.root)
        self.constants = set(program.constants)

    def keep(self, op: int, operands: Sequence[int], captured: Sequence[int] = ()) -> None:
        """An operation of the program, which may read other values than there; `captured`, in its regions."""
        program = self.program
        for value in program.makes[op]:
            self.maker[value] = len(self.names)
            # Of what is the memory of an operand that one alone is left.
            self.root[value] = self.root[operands[0]] if op in program.reshapes else value
        self._append(op, program.names[op], program.traits[op], operands, [*operands, *captured], program.makes[op])

    def leave_out(self, op: int) -> None:
        """Nobody reads what it makes."""
        for value in self.program.makes[op]:
            self.maker[value] = OUTSIDE

    def replace(self, op: int, name: str, operands: Sequence[int]) -> None:
        """What an operation makes is made by another one."""
        makes = self.program.makes[op]
        for value in makes:
            self.maker[value] = len(self.names)
        self._append(op, name, Trait.NONE, operands, operands, makes)

    def insert(
        self, origin: int, name: str, traits: Trait, operands: Sequence[int], sizes: Sequence[int], like: int
    ) -> Sequence[int]:
        """An operation more, and the numbers of what it makes: values of these sizes, of the rank of `like`."""
        made = range(len(self.maker), len(self.maker) + len(sizes))
        for value, size in zip(made, sizes, strict=True):
            self.maker.append(len(self.names))
            self.sizes.append(size)
            self.ranks.append(self.ranks[like])
            self.root.append(value)
        self._append(origin, name, traits, operands, operands, made)
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

    def form(self) -> XlaForm:
        program = self.program
        at = {origin: op for op, origin in enumerate(self.origin) if self.makes[op] == program.makes[origin]}
        changed = replace(
            program,
            names=tuple(self.names),
            traits=tuple(self.traits),
            operands=tuple(self.operands),
            reads=tuple(self.reads),
            makes=tuple(self.makes),
            maker=tuple(self.maker),
            sizes=tuple(self.sizes),
            ranks=tuple(self.ranks),
            root=tuple(self.root),
            reshapes={at[op]: 0 for op in program.reshapes},
            constants=frozenset(self.constants),
            bodies={at[op]: bodies for op, bodies in program.bodies.items()},
            iteration_bytes={at[op]: size for op, size in program.iteration_bytes.items()},
            kernels={at[op]: kernel for op, kernel in program.kernels.items()},
        )
        return XlaForm(changed, tuple(self.origin))
