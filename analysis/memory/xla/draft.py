"""A program while it is written anew, operation by operation, with others in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....planning.graph import OUTSIDE
from .columns import Columns
from .program import Program
from .traits import Trait, Traits


@dataclass(frozen=True)
class XlaForm:
    """`origin`: for each operation of the program that of the program before, which it is or is a copy for."""

    program: Program
    origin: tuple[int, ...]


@dataclass
class Draft:
    """The values of the program keep their numbers."""

    program: Program
    origin: list[int] = field(default_factory=list[int])
    columns: Columns = field(init=False)

    def __post_init__(self) -> None:
        of = self.program
        self.columns = Columns(
            maker=list(of.maker),
            sizes=list(of.sizes),
            ranks=list(of.ranks),
            root=list(of.root),
            constants=set(of.constants),
        )

    def keep(
        self, op: int, operands: Sequence[int], captured: Sequence[int] = (), without: Traits = Trait.NONE
    ) -> None:
        """An operation of the program, which may read other values than there; `captured`, in its regions."""
        program, columns = self.program, self.columns
        self._made_next(program.makes[op])
        for value in program.makes[op]:
            # Of what is the memory of an operand that one alone is left.
            columns.root[value] = columns.root[operands[0]] if op in program.reshapes else value
        self.origin.append(op)
        columns.add_operation(program.names[op], program.traits[op] & ~without, operands, captured, program.makes[op])

    def leave_out(self, op: int) -> None:
        """Nobody reads what it makes."""
        for value in self.program.makes[op]:
            self.columns.maker[value] = OUTSIDE

    def replace(self, op: int, name: str, operands: Sequence[int]) -> None:
        """What an operation makes is made by another one."""
        self._made_next(self.program.makes[op])
        self.origin.append(op)
        self.columns.add_operation(name, Trait.NONE, operands, (), self.program.makes[op])

    def insert(
        self, origin: int, name: str, traits: Traits, operands: Sequence[int], sizes: Sequence[int], like: int
    ) -> Sequence[int]:
        """An operation more, and the numbers of what it makes: values of these sizes, of the rank of `like`."""
        columns = self.columns
        made = [columns.add_value(len(columns.names), size, columns.ranks[like]) for size in sizes]
        self.origin.append(origin)
        columns.add_operation(name, traits, operands, (), made)
        return made

    def form(self) -> XlaForm:
        program, makes = self.program, self.columns.makes
        at = {origin: op for op, origin in enumerate(self.origin) if makes[op] == program.makes[origin]}
        changed = replace(
            program,
            **self.columns.fields(),
            reshapes={at[op]: 0 for op in program.reshapes},
            bodies={at[op]: bodies for op, bodies in program.bodies.items()},
            handed_on={at[op]: which for op, which in program.handed_on.items()},
            kernels={at[op]: kernel for op, kernel in program.kernels.items()},
        )
        return XlaForm(changed, tuple(self.origin))

    def _made_next(self, values: Sequence[int]) -> None:
        for value in values:
            self.columns.maker[value] = len(self.columns.names)
