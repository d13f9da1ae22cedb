"""What is to be recomputed, value by value, and the regions that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..rules.kinds import is_constant
from ..rules.permission import Permission
from .step import Step

Regions = Mapping[Operation, str]


@dataclass(frozen=True)
class Wanted:
    """The `values` to recompute; and the region of each operation that makes one or stands in a region."""

    regions: Regions
    values: frozenset[SSAValue]

    def region_of(self, value: SSAValue) -> str:
        assert isinstance(value.owner, Operation), "only results of operations are recomputed"
        return self.regions[value.owner]


def outputs_of(step: Step, wanted: Wanted) -> frozenset[SSAValue]:
    """Values that a forward operation outside of their region reads."""
    return frozenset(
        value
        for value in wanted.values
        if any(
            step.phases.is_forward(reader) and wanted.regions.get(reader) != wanted.region_of(value)
            for reader in step.phases.order.readers(value)
        )
    )


def possible(step: Step, wanted: Wanted, permission: Permission) -> Wanted:
    """What may be copied, and would not outlive the backward pass anyway."""
    allowed = {op for op in wanted.regions if not is_constant(op) and permission.why_not(op) is None}
    values = (v for v in wanted.values if v.owner in allowed and step.storages.of(v) not in step.lives_on)
    return Wanted(wanted.regions, frozenset(values))
