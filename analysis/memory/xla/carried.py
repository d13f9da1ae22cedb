"""Copies of carried values in an iteration of a loop.

As in XLA's copy insertion (`xla/service/copy_insertion.cc`), a new value overwrites the old one. The old value is
copied first if a reader may run later: by use-def edges alone, independent of the schedule.
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
            # A captured value is copied to the place of the old value.
            total += program.sizes[old] if new != old and new < program.arguments else 0
        elif not _all_read_before(maker, readers.get(old, frozenset()), body):
            total += program.sizes[old]
    return total


def _readers(body: Fusion, owners: Mapping[int, int]) -> Mapping[int, Set[int]]:
    """The kernels that read each storage, without the terminator."""
    readers = dict[int, set[int]]()
    for op, values in body.reads.items():
        for value in values if op != body.program.terminator else ():
            readers.setdefault(owners.get(value, value), set()).add(op)
    return readers


def _all_read_before(maker: int, readers: Set[int], body: Fusion) -> bool:
    """Whether all `readers` have run when `maker` writes; an elementwise `maker` may overwrite its own operand."""
    program = body.program
    by_element = program.traits[maker] & Trait.FUSIBLE and maker not in body.library
    itself = {maker} if program.names[maker] in WRITES_OVER or by_element else set[int]()
    return all_before(maker, readers - itself, body)
