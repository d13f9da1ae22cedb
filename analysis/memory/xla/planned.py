"""Predict the bytes that XLA:CPU needs under a plan, without rewriting the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from xdsl.dialects.func import FuncOp

from ....planning.simulate import BARRIER, BARRIER_NAME, Instruction, SimulatedProgram
from ...step.functions import single_block
from ...step.order import Order
from .donation import donated_for
from .kernel_copies import with_kernel_copies
from .memory import temporaries
from .program import KernelProgram
from .read_program import program_of
from .run import ScheduledKernels, live_bytes
from .traits import Trait

T = TypeVar("T")


@dataclass(frozen=True)
class Plain:
    """A step without copies. Its operations and values have the numbers of its graph."""

    program: KernelProgram
    donated: Mapping[int, int]

    @classmethod
    def of(cls, function: FuncOp, order: Order | None = None) -> Plain:
        """Convert a function. `order`: of its block, if already computed. Raises `Refusal` for dynamic shapes."""
        return cls(program_of(single_block(function), order), donated_for(function))

    def peak_bytes(self, rewritten: SimulatedProgram) -> int:
        """Peak bytes of the temporaries of the rewritten program, by the model of `memory.py`."""
        run = ScheduledKernels.of(with_kernel_copies(_program(self.program, rewritten)).program)
        return max(live_bytes(temporaries(self.donated, run), run.inner_bytes()), default=0)


def _program(plain: KernelProgram, new: SimulatedProgram) -> KernelProgram:
    operations = new.operations
    at = _places(plain, new)
    reshapes = _at(at, plain.reshapes)
    added = list(enumerate(new.stands_for))[len(plain.maker) :]
    behind = {value for operation in operations if operation.origin == BARRIER for value in operation.makes}
    return replace(
        plain,
        names=tuple(
            [BARRIER_NAME if operation.origin == BARRIER else plain.names[operation.origin] for operation in operations]
        ),
        operands=tuple([_operands(plain, operation) for operation in operations]),
        reads=tuple([operation.reads for operation in operations]),
        makes=tuple([operation.makes for operation in operations]),
        maker=new.maker,
        sizes=(*plain.sizes, *(plain.sizes[old] for _, old in added)),
        ranks=(*plain.ranks, *(plain.ranks[old] for _, old in added)),
        root=_roots(plain, new, reshapes),
        reshapes=reshapes,
        numbers=frozenset([op for origin in plain.numbers for op in at[origin]]),
        masks=frozenset([op for origin in plain.masks for op in at[origin]]),
        constants=plain.constants.union([new for new, old in added if old in plain.constants]),
        broadcasts=plain.broadcasts.union([new for new, old in added if old in plain.broadcasts]) - behind,
        bodies=_at(at, plain.bodies),
        handed_on=_at(at, plain.handed_on),
        kernels=_at(at, plain.kernels),
        alike={**plain.alike, **{new: plain.alike[old] for new, old in added if old in plain.alike}},
        pools=_at(at, plain.pools),
        spreads=_at(at, plain.spreads),
        traits=tuple(
            [Trait.NONE if operation.origin == BARRIER else plain.traits[operation.origin] for operation in operations]
        ),
    )


def _places(plain: KernelProgram, new: SimulatedProgram) -> Sequence[Sequence[int]]:
    """For each operation of the plain program, the new operation and its copies."""
    places: list[list[int]] = [[] for _ in range(len(plain))]
    for op, instruction in enumerate(new.operations):
        if instruction.origin != BARRIER:
            places[instruction.origin].append(op)
    return places


def _at(places: Sequence[Sequence[int]], attributes: Mapping[int, T]) -> dict[int, T]:
    """Transfer attributes of plain operations to the new operations and copies."""
    return {op: attribute for origin, attribute in attributes.items() for op in places[origin]}


def _operands(plain: KernelProgram, instruction: Instruction) -> tuple[int, ...]:
    """The operands of an instruction, with the repetitions of the original."""
    origin = instruction.origin
    if origin == BARRIER or plain.operands[origin] == plain.reads[origin]:
        return instruction.reads
    read_as = dict(zip(plain.reads[origin], instruction.reads, strict=True))
    return tuple([read_as[value] for value in plain.operands[origin]])


def _roots(plain: KernelProgram, new: SimulatedProgram, reshapes: Mapping[int, int]) -> tuple[int, ...]:
    """The owners of storage: results of reshapes share the storage of their operand, all other values own theirs."""
    roots = list(range(len(new.stands_for)))
    roots[: len(plain.root)] = plain.root
    for op in sorted(reshapes):
        instruction = new.operations[op]
        source = roots[_operands(plain, instruction)[reshapes[op]]]
        for value in instruction.makes:
            roots[value] = source
    return tuple(roots)
