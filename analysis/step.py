"""A training step with what several analyses need to know of it, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Operation, SSAValue

from .constants import constants_only
from .order import producers, read_values
from .phases import Phases
from .storage import Storages, storages


@dataclass(frozen=True)
class Step:
    """A classified function; valid until it is changed."""

    phases: Phases
    constants: set[SSAValue] = field(repr=False)
    storages: Storages = field(repr=False)

    @classmethod
    def of(cls, phases: Phases) -> Step:
        return cls(phases, constants_only(phases.order), storages(phases.order))

    @cached_property
    def returned(self) -> frozenset[SSAValue]:
        """Values that leave the function."""
        return frozenset(self.phases.order.operations[-1].operands)

    @cached_property
    def lives_on(self) -> frozenset[SSAValue]:
        """Storages that the update or the caller reads: they outlive the backward pass whatever is recomputed."""
        order, phases = self.phases.order, self.phases
        return frozenset(
            self.storages.of(value)
            for op in order.operations
            if phases.is_update(op)
            for value in read_values(op)
            if value in self.storages.root or order.definition(value) >= 0
        )

    @cached_property
    def known_after(self) -> Mapping[Operation, int]:
        """For each gradient operation the last forward operation that it needs, as a position; -1 where it needs none.

        An executor that starts what it can runs it right after that one, wherever it is written.
        """
        order, phases = self.phases.order, self.phases
        found = dict[Operation, int]()
        for op in order.operations:
            needed = (found.get(producer, -1) for producer in producers(op))
            found[op] = order.position[op] if phases.is_forward(op) else max(needed, default=-1)
        return found

    @cached_property
    def needs_cotangent(self) -> frozenset[Operation]:
        """Gradient operations that need an argument which no forward operation reads: a cotangent from outside."""
        order, phases = self.phases.order, self.phases
        arguments = (
            argument for argument in order.block.args if not any(map(phases.is_forward, order.readers(argument)))
        )
        given, found = set[SSAValue](arguments), set[Operation]()
        for op in order.operations:
            if phases.is_gradient(op) and any(value in given or value.owner in found for value in read_values(op)):
                found.add(op)
        return frozenset(found)

    @cached_property
    def last_read(self) -> Mapping[SSAValue, int]:
        """Position of the last reader of each storage that is made here and read, through any view."""
        found = dict[SSAValue, int]()
        for index, op in enumerate(self.phases.order.operations):
            for value in read_values(op):
                found[self.storages.of(value)] = index
        return found

    @cached_property
    def views(self) -> Mapping[SSAValue, tuple[SSAValue, ...]]:
        """Every value that looks at a storage, by its owner."""
        found = dict[SSAValue, list[SSAValue]]()
        for op in self.phases.order.operations:
            for result in op.results:
                found.setdefault(self.storages.of(result), []).append(result)
        return {root: tuple(values) for root, values in found.items()}
