"""What an iteration of a loop copies of what it carries.

As XLA's copy insertion does (`xla/service/copy_insertion.cc`): a new value is written over the old one. The old one is
copied before if something may still read it then: by the order that operands alone give, whatever the schedule says.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ....planning.graph import OUTSIDE
from ....rules.fusion import WRITES_OVER
from .buffers import all_before, storage_owners
from .fusion import Fusion
from .traits import Trait


def copied_bytes(body: Fusion) -> int:
    """Bytes of the carried values that are copied in an iteration."""
    program, owners, total = body.program, storage_owners(body), 0
    readers = _readers(body, owners)
    for old, value in enumerate(program.returned[: program.arguments]):
        new = owners.get(value, value)
        maker = program.maker[new]
        if new == old or new in program.constants or maker == OUTSIDE:
            # What comes from outside is written where the old value was.
            total += program.sizes[old] if new != old and new < program.arguments else 0
        elif not _all_read_before(maker, readers.get(old, frozenset()), body):
            total += program.sizes[old]
    return total


def _readers(body: Fusion, owners: Mapping[int, int]) -> Mapping[int, Set[int]]:
    """The kernels that read each storage, but for the terminator."""
    found = dict[int, set[int]]()
    for op, values in body.reads.items():
        for value in values if op != body.program.terminator else ():
            found.setdefault(owners.get(value, value), set()).add(op)
    return found


def _all_read_before(maker: int, readers: Set[int], body: Fusion) -> bool:
    """Whether all `readers` have run when `maker` writes; it may write element by element over what it reads."""
    program = body.program
    by_element = program.traits[maker] & Trait.FUSIBLE and maker not in body.library
    itself = {maker} if program.names[maker] in WRITES_OVER or by_element else set[int]()
    return all_before(maker, readers - itself, body)
