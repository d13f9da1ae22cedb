"""What XLA:CPU adds to a program, or writes otherwise, before it fuses.

An operand that lies otherwise than its kernel wants it (`layouts.py`) is transposed into a copy. The convolution that
makes the gradient of a kernel reads the forward activation so, and the copy of it is made as soon as the activation is
there. Products in bf16 are computed in f32. Values that are computed from constants alone are made once each, and what
writes over one that others read as well is given a copy. The gradient of a maximum over windows is a scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....planning.graph import OUTSIDE
from ....rules.fusion import WRITES_OVER
from .alike_values import overwritten, places_of_alike_values
from .draft import Draft, XlaForm
from .pools import Pools
from .program import Kernel, Program
from .traits import Trait, Traits

_CAST = "stablehlo.convert"
_PRODUCTS = frozenset({"stablehlo.multiply", "stablehlo.divide"})
_IN_LIBRARY = Trait.FUSIBLE | Trait.LIBRARY


def with_kernel_copies(program: Program) -> XlaForm:
    """Each product and convolution reads its operands as it wants them: transposed, and in f32 in place of bf16."""
    writer = _Writer(program, Draft(program))
    for op in range(len(program)):
        writer.add(op)
    return writer.new.form()


@dataclass
class _Writer:
    """`now`: what is read in place of a value that was rounded, or that is made elsewhere too. `made`: of alike values
    the first. `places`: of alike values that are written over, which operand of which operation needs no copy."""

    program: Program
    new: Draft
    now: dict[int, int] = field(default_factory=dict[int, int])
    made: dict[int, int] = field(default_factory=dict[int, int])
    spread: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    places: Mapping[int, tuple[int, int]] = field(init=False)
    pools: Pools = field(init=False)

    def __post_init__(self) -> None:
        self.places = places_of_alike_values(self.program)
        self.pools = Pools(self.new)

    def add(self, op: int) -> None:
        program, kernel = self.program, self.program.kernels.get(op)
        if self._is_made(op):
            return self.new.leave_out(op)
        operands = self._seen(op)
        if op in program.spreads and not self._is_scaled(op) and self._is_spread(op, operands[0]):
            return self.new.leave_out(op)
        if op in program.pools:
            self.pools.add(op, operands)
        elif kernel is not None:
            self._add_kernel(op, operands, kernel)
        elif program.names[op] == "stablehlo.multiply" and op not in program.reshapes:
            self._add_product(op, operands)
        elif program.names[op] in WRITES_OVER:
            self.new.keep(op, self._own(op, operands), self._captured(op))
        else:
            self.new.keep(op, operands, self._captured(op))

    def _seen(self, op: int) -> Sequence[int]:
        """What XLA reads once it has simplified the operation."""
        program = self.program
        if op in program.numbers:
            return ()
        operands: Sequence[int] = program.operands[op]
        if not self.now.keys().isdisjoint(operands):
            operands = [self.now.get(value, value) for value in operands]
        return [operands[program.reshapes[op]]] if op in program.reshapes else operands

    def _add_product(self, op: int, operands: Sequence[int]) -> None:
        """A product with a mask as numbers is for XLA a choice by the mask itself, which its library does not do."""
        read = [self._mask(value) for value in operands]
        self.new.keep(op, read, without=Trait.LIBRARY if read != list(operands) else Trait.NONE)

    def _mask(self, value: int) -> int:
        maker = self.new.columns.maker[value]
        is_mask = maker != OUTSIDE and self.new.origin[maker] in self.program.masks
        return self.new.columns.operands[maker][0] if is_mask else value

    def _is_made(self, op: int) -> bool:
        """Whether an earlier operation makes the same from constants. Each is remembered."""
        found = False
        for value in self.program.makes[op]:
            if (alike := self.program.alike.get(value)) is not None:
                self.now[value] = self.made.setdefault(alike, value)
                found = self.now[value] != value
        return found

    def _is_spread(self, op: int, operand: int) -> bool:
        """Whether an earlier broadcast makes the same. Each is remembered."""
        (value,) = self.program.makes[op]
        told = self.program.spreads[op], self.new.columns.root[operand]
        self.now[value] = self.spread.setdefault(told, value)
        return self.now[value] != value

    def _is_scaled(self, op: int) -> bool:
        """Whether the product with a broadcast is multiplied by one number: XLA puts the number into the broadcast."""
        for _ in range(2):
            if len(readers := self.program.readers[op]) != 1 or self.program.names[readers[0]] not in _PRODUCTS:
                return False
            (op,) = readers
        return any(self.program.maker[value] in self.program.numbers for value in self.program.operands[op])

    def _captured(self, op: int) -> Sequence[int]:
        """What the regions of an operation read."""
        operands, reads = self.program.operands[op], self.program.reads[op]
        if operands == reads:
            return ()
        return [self.now.get(value, value) for value in reads if value not in operands]

    def _own(self, op: int, operands: Sequence[int]) -> Sequence[int]:
        """What is written over is the operation's own: a copy, if others read it too."""
        found, unchanged = list(operands), self.program.handed_on.get(op, frozenset())
        for index, value in enumerate(operands[: len(overwritten(self.program, op))]):
            alike = self.program.alike.get(value)
            if alike is not None and index not in unchanged and self.places.get(alike) != (op, index):
                size = self.new.columns.sizes[value]
                found[index] = self._copy(op, "stablehlo.copy", Trait.NONE, value, size)
        return found

    def _add_kernel(self, op: int, operands: Sequence[int], kernel: Kernel) -> None:
        wanted = self._as_wanted(op, operands, kernel)
        self.new.keep(op, wanted)
        if kernel.wide_result:
            # Stored in f32, and rounded by who reads it.
            (wide,) = self.program.makes[op]
            narrow, self.new.columns.sizes[wide] = self.new.columns.sizes[wide], kernel.wide_result
            self.now[wide] = self._copy(op, _CAST, _IN_LIBRARY | Trait.EXPENSIVE, wide, narrow)

    def _as_wanted(self, op: int, operands: Sequence[int], kernel: Kernel) -> Sequence[int]:
        found = list(operands)
        for index, size in enumerate(kernel.wide):
            if size:
                found[index] = self._copy(op, _CAST, _IN_LIBRARY, found[index], size)
        for index, transposed in enumerate(kernel.transposed):
            if transposed:
                size = self.new.columns.sizes[found[index]]
                found[index] = self._copy(op, "stablehlo.transpose", Trait.FUSIBLE, found[index], size)
        return found

    def _copy(self, origin: int, name: str, traits: Traits, operand: int, size: int) -> int:
        (made,) = self.new.insert(origin, name, traits, [operand], [size], operand)
        if operand in self.new.columns.constants:
            self.new.columns.constants.add(made)
        return made
