"""Find the operations that value numbering treats as effects: all operations that are neither known nor declared to be
pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Operation

from ...dialects.placements import is_placement
from ...support.operations import name_of
from ..expressions.terms import ClosedRegion
from ..operations.pure_operations import CUSTOM_CALL, MemoryReferences, declared_name, is_listed
from ..operations.pure_traits import is_pure_by_traits
from .per_device import is_exchange
from .scope import RegionScope


class OperationEffects:
    """Finds the effects of one program and collects the declarations of purity that it relies on.

    Args:
        pure: Names of the operations without effects.
        declared: The operations in `pure` that are pure only because the user declares them pure.

    Attributes:
        assumed_pure: The operations in the program that are pure only by a declaration of the user or by their traits.
    """

    def __init__(self, pure: Collection[str], declared: frozenset[str]):
        self.declared = declared
        self.assumed_pure = set[str]()
        self._pure = pure
        self._memory = MemoryReferences()

    def has_effect(self, op: Operation, regions: Sequence[ClosedRegion], scope: RegionScope) -> bool:
        """Return whether an operation is an effect, itself or through its regions."""
        pure = name_of(op) in self._pure or is_exchange(op, scope) or is_placement(op)
        if name_of(op) == CUSTOM_CALL and not pure:
            pure = is_listed(op) or declared_name(op) in self.declared
        pure = pure or is_pure_by_traits(op)
        if not pure or any(region.inside and region.inside.has_effects for region in regions):
            return True
        return self._memory.is_among(op.operands) or self._memory.is_among(op.results)

    def is_assumed(self, op: Operation) -> bool:
        """Return whether the operation is pure only because its name is declared or because of its traits."""
        name = name_of(op)
        return name in self.declared or (name not in self._pure and is_pure_by_traits(op))

    def record_assumption(self, op: Operation) -> None:
        """Record that the proof treats this operation as pure, if it does so only by a declaration or by traits."""
        self.assumed_pure.update(self.declared.intersection((name_of(op), declared_name(op))))
        if self.is_assumed(op):
            self.assumed_pure.add(name_of(op))
