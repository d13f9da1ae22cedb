"""Transparent operations: their results are their operands, or the values that their bodies return.

%2, %3 = stablehlo.optimization_barrier %0, %1      %2 is %0 and %3 is %1: the positional identity
%1 = recompute.segment { … yield %0 }               %1 is %0: it only groups operations
%2 = @annotate_device_placement("device", %1)       %2 is %0 if %1 is %0 moved to host memory
%1 = sdy.manual_computation(%0) { … }               parts and wholes (`per_device.py`)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Block, Operation, SSAValue

from ..dialects.placements import FRONTEND, HOST, is_from_host, placed_in
from ..support.diagnostics import Refusal
from .anatomy import attributes_of, name_of
from .blocks import body_of, is_known_end
from .heads import Heads
from .identities import Identities
from .memory_spaces import MemorySpaces
from .per_device import PerDevice
from .scope import RegionScope
from .terms import Head, Side, Terms
from .wrapping import Wrapping, into


class SeenThrough(ABC):
    """The part of a numbering that handles transparent operations."""

    def __init__(self, side: Side, terms: Terms):
        self.heads = Heads(terms.attributes)
        self._terms = terms
        self._wrapping = Wrapping(terms, self.heads)
        self._memory_spaces = MemorySpaces(terms)
        self._identities = Identities(terms, self.heads)
        self._origins = terms.origins[side]

    @abstractmethod
    def _operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]: ...

    @abstractmethod
    def _block(self, block: Block, scope: RegionScope) -> tuple[int, tuple[int, ...]]: ...

    def _identity(self, op: Operation, values: Sequence[SSAValue], scope: RegionScope) -> Sequence[int]:
        if op.regions or self.heads.types(values, op) != self.heads.types(op.results, op):
            raise Refusal(op, f"{name_of(op)} does not give back its values one by one, with the same types")
        around = self._wrapping.around(("barrier", op, attributes_of(op)))
        return self._wrapping.wrapped(around, self._operands(op, scope)[: len(values)])

    def _group(self, op: Operation, scope: RegionScope) -> Sequence[int]:
        """Number the operations of a group, which run in place."""
        block = body_of(op)
        last = block.last_op
        if last is None or name_of(last) != "recompute.yield" or block.args or op.operands or not is_known_end(last):
            raise Refusal(op, f"{name_of(op)} does not yield its results")
        inner = scope.within()
        around = self._wrapping.around(("group", op, attributes_of(op)), ("yield", last, attributes_of(last)))
        entered = self._wrapping.wrapped_state(into(around), scope.state, ())
        inner.state = entered
        _, numbers = self._block(block, inner)
        if self.heads.types(last.operands, last) != self.heads.types(op.results, op):
            raise Refusal(op, f"{name_of(op)} does not yield its results")
        if inner.state != entered:
            scope.state = self._wrapping.wrapped_state(around, inner.state, numbers)
        return self._wrapping.wrapped(around, numbers)

    def _fetched(self, op: Operation, scope: RegionScope) -> int | None:
        """The original value on the device, if the operation only moves it back from the host; else None."""
        if not is_from_host(op) or op.regions:
            return None
        (number,) = self._operands(op, scope)
        host_attributes = self.heads.attributes(op, attributes_of(op) | {FRONTEND: placed_in(HOST)})
        move = self._terms.head_of(number)
        if (move.kind, move.name, move.attributes) != ("operation", name_of(op), host_attributes):
            return None
        (source,) = self._terms.operands_of(number)
        is_same = self._terms.types_of(source) == self.heads.types(op.results, op)
        return source if is_same and self._memory_spaces.is_on_device(source) else None

    def _on_each_device(self, body: PerDevice, scope: RegionScope) -> Sequence[int]:
        place = body.place(self._terms, scope.place)
        entered = self._terms.term(Head("place", "entered"), (place, scope.state))
        inner = replace(scope.called(entered), place=place, kept={})
        parts = body.parts(self._terms, self.heads, place, self._operands(body.op, scope))
        inner.values.update(zip(body.block.args, parts, strict=True))
        _, returned = self._block(body.block, inner)
        if inner.state != entered:
            scope.state = self._terms.term(Head("place", "left"), (place, inner.state))
        scope.kept.update((self._terms.term(Head("place", "kept"), (place, term)), None) for term in inner.kept)
        results = body.wholes(self._terms, self.heads, place, returned)
        for result in results:
            self._origins.setdefault(result, body.op)
        return results
