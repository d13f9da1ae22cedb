"""Small function as the XLA:CPU model runs it, with values identified by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recompute.analysis.memory.xla.kernel_copies import with_kernel_copies
from recompute.analysis.memory.xla.program import KernelProgram
from recompute.analysis.memory.xla.read_program import program_of
from recompute.analysis.memory.xla.scheduled_kernels import ScheduledKernels
from recompute.analysis.step.order import functions_of, single_block
from recompute.mlir_io.parser import parse_module


@dataclass(frozen=True)
class Fused:
    """Function in the model. `labels`: names of the values; a value that XLA adds has the name of its operation."""

    run: ScheduledKernels
    labels: Mapping[int, str]

    @property
    def program(self) -> KernelProgram:
        return self.run.program


def fused(arguments: str, body: str, result: str, types: str = "") -> Fused:
    """Return the model of a function that returns %z. `types`: type aliases that precede it."""
    text = f"{types}\nfunc.func @f({arguments}) -> {result} {{\n{body}\n  func.return %z : {result}\n}}"
    block = single_block(functions_of(parse_module(text))[0])
    program = with_kernel_copies(program_of(block)).program
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    labels = {
        value: name.partition(".")[2]
        for name, entry in zip(program.names, program.makes, strict=True)
        for value in entry
    }
    labels.update({number: value.name_hint or "" for number, value in enumerate(values)})
    return Fused(ScheduledKernels.of(program), labels)


def stored(kernels: Fused) -> list[str]:
    """Return the names of the values that are stored, in program order."""
    return [kernels.labels[result] for op in kernels.run.fused.kernels for result in kernels.program.makes[op]]


def reads(actual: Fused, name: str) -> set[str]:
    """Return the names of the values that are read by the kernel which computes `name`."""
    kernels = actual.run.fused.reads
    (op,) = (op for op in kernels if name in [actual.labels[result] for result in actual.program.makes[op]])
    return {actual.labels[value] for value in kernels[op]}


def in_library(kernels: Fused) -> list[str]:
    """Return the names of the values that library kernels compute, in program order."""
    return [kernels.labels[result] for op in sorted(kernels.run.fused.library) for result in kernels.program.makes[op]]


def last_steps(kernels: Fused) -> Mapping[str, int]:
    """Return for each temporary the last step of the schedule at which it is stored."""
    return {kernels.labels[life.value]: life.last for life in kernels.run.temporaries()}


def places(kernels: Fused) -> list[str]:
    """Return the names of the values with storage of their own, in the order of the schedule."""
    return [kernels.labels[life.value] for life in kernels.run.lives]
