"""A training step: a function's phases and graph, and the maps between graph indices and IR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...planning.graph import Graph
from ...rules.costs.cost import CostsOf
from .graph_of import NumberedGraph, graph_of
from .phases import Phases


@dataclass(frozen=True)
class Step:
    """The phases and the graph of a function; valid until the function is changed."""

    phases: Phases
    numbered: NumberedGraph = field(repr=False)

    @classmethod
    def of(cls, phases: Phases, bare: bool = False, costs: CostsOf | None = None) -> Step:
        """Build the step from a function's phases.

        `bare` and `costs`: as in `graph_of`.

        Raises:
            Refusal: A storage has an unknown size, or an operation has no cost.
        """
        return cls(phases, graph_of(phases.order, phases.phase, bare=bare, costs=costs))

    @classmethod
    def with_graph(cls, phases: Phases, numbered: NumberedGraph) -> Step:
        """Build the step from its phases, and from a graph of the same operations whose phases may differ."""
        stated = tuple([phases.phase[op] for op in phases.order.operations])
        if stated != numbered.graph.phases:
            numbered = replace(numbered, graph=replace(numbered.graph, phases=stated))
        return cls(phases, numbered)

    @property
    def graph(self) -> Graph:
        return self.numbered.graph

    def value(self, number: int) -> SSAValue:
        return self.numbered.values[number]

    def operation(self, number: int) -> Operation:
        return self.numbered.operations[number]

    def number(self, value: SSAValue) -> int:
        return self.numbered.number[value]

    def position(self, op: Operation) -> int:
        return self.phases.order.position[op]

    def positions(self, operations: Iterable[Operation]) -> list[int]:
        return [self.phases.order.position[op] for op in operations]

    @cached_property
    def constants(self) -> frozenset[SSAValue]:
        """The values that are computed only from constants."""
        return frozenset(self.numbered.values_of(self.graph.constants))


Steps = Sequence[tuple[FuncOp, Step]]
"""The functions with a gradient, and their steps; valid until the module is changed."""
