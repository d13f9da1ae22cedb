"""A draft of a rewritten program: operations are kept, replaced, removed or inserted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....planning.graph import OUTSIDE
from .columns import Columns
from .program import KernelProgram
from .traits import Trait, Traits


@dataclass(frozen=True)
class XlaForm:
    """A rewritten program. `origin`: for each operation the operation of the old program that it comes from."""

    program: KernelProgram
    origin: tuple[int, ...]


@dataclass
class Draft:
    """Builds a new program from `program`. The values of `program` keep their numbers."""

    program: KernelProgram
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
        """Append an operation of the program with new operands. `captured`: the values that its regions read."""
        program, columns = self.program, self.columns
        self._set_makers(program.makes[op])
        for value in program.makes[op]:
            # A reshape keeps only the operand whose memory it shares.
            columns.root[value] = columns.root[operands[0]] if op in program.reshapes else value
        self.origin.append(op)
        columns.add_operation(program.names[op], program.traits[op] & ~without, operands, captured, program.makes[op])

    def leave_out(self, op: int) -> None:
        """Remove an operation whose results have no readers."""
        for value in self.program.makes[op]:
            self.columns.maker[value] = OUTSIDE

    def replace(self, op: int, name: str, operands: Sequence[int]) -> None:
        """Append a new operation that makes the results of `op`."""
        self._set_makers(self.program.makes[op])
        self.origin.append(op)
        self.columns.add_operation(name, Trait.NONE, operands, (), self.program.makes[op])

    def insert(
        self, origin: int, name: str, traits: Traits, operands: Sequence[int], sizes: Sequence[int], like: int
    ) -> Sequence[int]:
        """Append an additional operation. Returns the numbers of its results, of these sizes and the rank of `like`."""
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

    def _set_makers(self, values: Sequence[int]) -> None:
        for value in values:
            self.columns.maker[value] = len(self.columns.names)
