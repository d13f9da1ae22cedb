"""The bytes that copies free, and the bytes that they keep alive instead."""

from __future__ import annotations

from collections.abc import Iterable, Set

from xdsl.ir import Operation, SSAValue

from ..step import Step
from ..storage import value_bytes


def freed_bytes(step: Step, served: Iterable[SSAValue], inputs: Iterable[SSAValue], insertion: int) -> int:
    """Bytes of the storages that nobody reads after the insertion point once the readers of `served` read copies."""
    held = {step.storages.of(value) for value in inputs}
    recomputed = dict.fromkeys(served)
    roots = dict.fromkeys(map(step.storages.of, recomputed))
    return sum(
        value_bytes(root)
        for root in roots
        if isinstance(root.owner, Operation)
        and root not in held
        and root not in step.constants
        and step.last_read.get(root, -1) >= insertion > _last_other_reader(step, root, recomputed.keys())
        and not step.returned.intersection(step.views[root])
    )


def pinned_bytes(step: Step, inputs: Iterable[SSAValue], insertion: int) -> int:
    """Bytes of the inputs that would otherwise have died before the insertion point. Arguments never die."""
    roots = dict.fromkeys(step.storages.of(value) for value in inputs)
    return sum(
        value_bytes(root)
        for root in roots
        if isinstance(root.owner, Operation)
        and root not in step.constants
        and not step.returned.intersection(step.views[root])
        and step.last_read.get(root, -1) < insertion
    )


def _last_other_reader(step: Step, root: SSAValue, served: Set[SSAValue]) -> int:
    """Position of the last reader of a storage; backward readers of the `served` values do not count."""
    order, phases = step.phases.order, step.phases
    return max(
        (
            order.position[reader]
            for view in step.views.get(root, (root,))
            for reader in order.readers(view)
            if not (view in served and not phases.is_forward(reader))
        ),
        default=-1,
    )
