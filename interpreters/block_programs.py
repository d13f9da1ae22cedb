"""Executable programs of blocks: kernels that read and write numbered places, and the places freed after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.ir import Operation, SSAValue

from ..support.diagnostics import Refusal
from ..support.operations import name_of
from .kernels.arrays import Array, Kernel


class Observer(Protocol):
    """Callbacks during a run."""

    def made(self, op: Operation, arrays: Sequence[Any]) -> None:
        """Observe the results of an operation; its operands are not freed yet."""
        ...

    def yielded(self, op: Operation, arrays: Sequence[Array]) -> None:
        """Observe the values that the terminator of a loop's region yields; its operands are not freed yet."""
        ...

    def carried(self, op: Operation, arrays: Sequence[Array]) -> None:
        """Observe the values that are the results of the loop from now on."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One operation: it reads `operands`, writes the places `results`, and is the last use of those in `dead`."""

    op: Operation
    kernel: Kernel
    operands: tuple[int, ...]
    results: slice
    dead: tuple[int, ...]


@dataclass(frozen=True)
class BlockProgram:
    """The steps of a block; its arguments and then its captures take the first places."""

    steps: tuple[ProgramStep, ...]
    end: Operation
    outputs: tuple[int, ...]
    size: int
    observer: Observer | None

    def run(self, *values: Any) -> tuple[Any, ...]:
        """Run the block; returns the operands of its terminator. Raises `Refusal` at an operation that fails."""
        places: list[Any] = [*values, *[None] * (self.size - len(values))]
        observer = self.observer
        for step in self.steps:
            # No variable may reference an array: it is freed when its place is cleared.
            try:
                places[step.results] = step.kernel(*[places[place] for place in step.operands])
            except (TypeError, ValueError, MemoryError) as error:
                raise Refusal(step.op, f"{name_of(step.op)} cannot be executed: {error}") from error
            if observer is not None:
                observer.made(step.op, places[step.results])
            for place in step.dead:
                places[place] = None
        if observer is not None:
            observer.made(self.end, ())
        return tuple(places[place] for place in self.outputs)


def captured(op: Operation) -> list[SSAValue]:
    """Return the captures of an operation's regions: values from outside, each once, in order of their first use."""
    inside, read = set[SSAValue](), dict[SSAValue, None]()
    for region in op.regions:
        inside.update(argument for block in region.blocks for argument in block.args)
        for inner in region.walk():
            inside.update(inner.results)
            inside.update(argument for nested in inner.regions for block in nested.blocks for argument in block.args)
            read.update(dict.fromkeys(inner.operands))
    return [value for value in read if value not in inside]
