"""Blocks compiled to lists of kernels, which read and write slots. A slot is cleared after its last use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.ir import Operation, SSAValue

from ..support.diagnostics import Refusal
from ..support.operations import name_of
from .kernels.arrays import Array, Kernel


class Observer(Protocol):
    """Callbacks that a `BlockProgram` calls while it runs."""

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        """Receive the results of an operation, before operands without further uses are freed."""
        ...

    def on_yield(self, op: Operation, arrays: Sequence[Array]) -> None:
        """Receive the values that the terminator of a loop body yields, before operands without further uses are
        freed."""
        ...

    def on_carry(self, op: Operation, arrays: Sequence[Array]) -> None:
        """Receive the arrays that now store the results of a loop or branch."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One operation of a `BlockProgram`.

    Attributes:
        op: The operation.
        kernel: The kernel that computes it.
        operands: The slots of the operands.
        results: The slots of the results.
        dead: The slots whose last use is this operation.
    """

    op: Operation
    kernel: Kernel
    operands: tuple[int, ...]
    results: slice
    dead: tuple[int, ...]


@dataclass(frozen=True)
class BlockProgram:
    """A compiled block. Its arguments, then its captures, occupy the first slots.

    Attributes:
        steps: The operations, in program order.
        end: The terminator.
        outputs: The slots of the operands of the terminator.
        size: Number of slots.
        observer: Receives the values of each run; None if nothing observes the run.
    """

    steps: tuple[ProgramStep, ...]
    end: Operation
    outputs: tuple[int, ...]
    size: int
    observer: Observer | None

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Run the block on the values of its arguments and captures.

        Returns:
            The operands of the terminator.

        Raises:
            Refusal: A kernel fails. The error is reported at its operation.
        """
        places: list[Any] = [*values, *[None] * (self.size - len(values))]
        observer = self.observer
        for step in self.steps:
            # No local variable refers to an array, so that clearing its slot frees it.
            try:
                places[step.results] = step.kernel(*[places[place] for place in step.operands])
            except (TypeError, ValueError, MemoryError) as error:
                raise Refusal(step.op, f"{name_of(step.op)} cannot be executed: {error}") from error
            if observer is not None:
                observer.on_results(step.op, places[step.results])
            for place in step.dead:
                places[place] = None
        if observer is not None:
            observer.on_results(self.end, ())
        return tuple(places[place] for place in self.outputs)


def captures_of(op: Operation) -> list[SSAValue]:
    """Return the values that the regions of an operation read from outside, without duplicates, in the order of first
    use."""
    inside, read = set[SSAValue](), dict[SSAValue, None]()
    for region in op.regions:
        inside.update(argument for block in region.blocks for argument in block.args)
        for inner in region.walk():
            inside.update(inner.results)
            inside.update(argument for nested in inner.regions for block in nested.blocks for argument in block.args)
            read.update(dict.fromkeys(inner.operands))
    return [value for value in read if value not in inside]
