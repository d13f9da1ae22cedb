"""What XLA:CPU will need once a plan is carried out: the model of a program that nobody has written yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp

from ....planning.rewriting import BARRIER, BARRIER_NAME, Instruction, Rewritten
from ...step.functions import single_block
from .donation import donated_for
from .kernel_copies import with_kernel_copies
from .memory import temporaries
from .program import Program
from .read_program import program_of
from .run import Run, live_bytes
from .traits import Trait


@dataclass(frozen=True)
class Plain:
    """A step before anything is copied. Its operations and values have the numbers of its graph."""

    program: Program
    donated: Mapping[int, int]

    @classmethod
    def of(cls, function: FuncOp) -> Plain:
        """Raises `Refusal` for dynamic shapes."""
        return cls(program_of(single_block(function)), donated_for(function))

    def peak_bytes(self, rewritten: Rewritten) -> int:
        """Temporaries of the program as it will be, by the model of `memory.py`."""
        run = Run.of(with_kernel_copies(_program(self.program, rewritten)).program)
        return max(live_bytes(temporaries(self.donated, run), run.inner_bytes()), default=0)


def _program(plain: Program, new: Rewritten) -> Program:
    operations = new.operations
    own = [(op, one.origin) for op, one in enumerate(operations) if one.origin != BARRIER]
    behind = {value for one in operations if one.origin == BARRIER for value in one.makes}
    return replace(
        plain,
        names=tuple([BARRIER_NAME if one.origin == BARRIER else plain.names[one.origin] for one in operations]),
        operands=tuple([_operands(plain, one) for one in operations]),
        reads=tuple([one.reads for one in operations]),
        makes=tuple([one.makes for one in operations]),
        maker=new.maker,
        sizes=tuple([plain.sizes[value] for value in new.stands_for]),
        ranks=tuple([plain.ranks[value] for value in new.stands_for]),
        root=_roots(plain, new),
        reshapes={op: plain.reshapes[origin] for op, origin in own if origin in plain.reshapes},
        numbers=frozenset([op for op, origin in own if origin in plain.numbers]),
        masks=frozenset([op for op, origin in own if origin in plain.masks]),
        constants=frozenset([new for new, old in enumerate(new.stands_for) if old in plain.constants]),
        broadcasts=frozenset([new for new, old in enumerate(new.stands_for) if old in plain.broadcasts]) - behind,
        bodies={op: plain.bodies[origin] for op, origin in own if origin in plain.bodies},
        iteration_bytes={op: plain.iteration_bytes[origin] for op, origin in own if origin in plain.iteration_bytes},
        kernels={op: plain.kernels[origin] for op, origin in own if origin in plain.kernels},
        alike={new: plain.alike[old] for new, old in enumerate(new.stands_for) if old in plain.alike},
        pools={op: plain.pools[origin] for op, origin in own if origin in plain.pools},
        spreads={op: plain.spreads[origin] for op, origin in own if origin in plain.spreads},
        traits=tuple([Trait.NONE if one.origin == BARRIER else plain.traits[one.origin] for one in operations]),
    )


def _operands(plain: Program, one: Instruction) -> tuple[int, ...]:
    """With repetitions, as the original has them."""
    if one.origin == BARRIER or plain.operands[one.origin] == plain.reads[one.origin]:
        return one.reads
    read_as = dict(zip(plain.reads[one.origin], one.reads, strict=True))
    return tuple([read_as[value] for value in plain.operands[one.origin]])


def _roots(plain: Program, new: Rewritten) -> tuple[int, ...]:
    found = list(range(len(new.stands_for)))
    found[: len(plain.root)] = plain.root
    for one in new.operations:
        for value in one.makes:
            at = plain.reshapes.get(one.origin)
            found[value] = value if at is None else found[_operands(plain, one)[at]]
    return tuple(found)
