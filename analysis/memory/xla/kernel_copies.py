"""What XLA:CPU adds to a program, or writes otherwise, before it fuses.

An operand that lies otherwise than its kernel wants it (`layouts.py`) is transposed into a copy. The convolution that
makes the gradient of a kernel reads the forward activation so, and the copy of it is made as soon as the activation is
there. Products in bf16 are computed in f32. Values that are computed from constants alone are made once each, and what
writes over one that others read as well is given a copy. The gradient of a maximum over windows is a scatter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....rules.fusion import WRITES_OVER
from .pools import Pools
from .program import Kernel, Program
from .rewritten import Rewritten, XlaForm
from .traits import Trait

_CAST = "stablehlo.convert"
_IN_LIBRARY = Trait.FUSIBLE | Trait.LIBRARY


def with_kernel_copies(program: Program) -> XlaForm:
    """Each product and convolution reads its operands as it wants them: transposed, and in f32 in place of bf16."""
    writer = _Writer(program, Rewritten(program))
    for op in range(len(program)):
        writer.add(op)
    return writer.new.form()


@dataclass
class _Writer:
    """`now`: what is read in place of a value that was rounded, or that is made elsewhere too. `made`: of alike values
    the first. `read_often`: those that several operations read."""

    program: Program
    new: Rewritten
    now: dict[int, int] = field(default_factory=dict[int, int])
    made: dict[int, int] = field(default_factory=dict[int, int])
    read_often: set[int] = field(init=False)
    pools: Pools = field(init=False)

    def __post_init__(self) -> None:
        alike = self.program.alike
        read = Counter([alike[value] for values in self.program.reads for value in values if value in alike])
        self.read_often = {one for one, count in read.items() if count > 1}
        self.pools = Pools(self.new)

    def add(self, op: int) -> None:
        program, kernel = self.program, self.program.kernels.get(op)
        for value in program.makes[op]:
            if value in program.alike:
                self.now[value] = self.made.setdefault(program.alike[value], value)
        operands = [self.now.get(value, value) for value in program.operands[op]]
        if op in program.pools:
            self.pools.add(op, operands)
        elif kernel is not None:
            self._add_kernel(op, operands, kernel)
        elif program.names[op] in WRITES_OVER:
            operands = self._own(op, operands)
            self.new.keep(op, operands, operands)
        else:
            self.new.keep(op, operands, [self.now.get(value, value) for value in program.reads[op]])

    def _own(self, op: int, operands: Sequence[int]) -> Sequence[int]:
        """What is written over is the operation's own: a copy, if others read it too."""
        over = len(operands) if self.program.names[op] == "stablehlo.while" else 1
        copied = [
            index for index, value in enumerate(operands[:over]) if self.program.alike.get(value) in self.read_often
        ]
        found = list(operands)
        for index in copied:
            found[index] = self._copy(op, "stablehlo.copy", Trait.NONE, found[index], self.new.sizes[found[index]])
        return found

    def _add_kernel(self, op: int, operands: Sequence[int], kernel: Kernel) -> None:
        wanted = self._as_wanted(op, operands, kernel)
        self.new.keep(op, wanted, wanted)
        if kernel.wide_result:
            # Stored in f32, and rounded by who reads it.
            (wide,) = self.program.makes[op]
            narrow, self.new.sizes[wide] = self.new.sizes[wide], kernel.wide_result
            self.now[wide] = self._copy(op, _CAST, _IN_LIBRARY | Trait.EXPENSIVE, wide, narrow)

    def _as_wanted(self, op: int, operands: Sequence[int], kernel: Kernel) -> Sequence[int]:
        found = list(operands)
        for index, size in enumerate(kernel.wide):
            if size:
                found[index] = self._copy(op, _CAST, _IN_LIBRARY, found[index], size)
        for index, transposed in enumerate(kernel.transposed):
            if transposed:
                size = self.new.sizes[found[index]]
                found[index] = self._copy(op, "stablehlo.transpose", Trait.FUSIBLE, found[index], size)
        return found

    def _copy(self, origin: int, name: str, traits: Trait, operand: int, size: int) -> int:
        (made,) = self.new.insert(origin, name, traits, [operand], [size], operand)
        if operand in self.new.constants:
            self.new.constants.add(made)
        return made
