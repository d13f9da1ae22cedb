"""What a step needs at its peak on each kind of executor, as it is and once a plan is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.func import FuncOp

from ...planning.by_segment.early import early_parts
from ...planning.evaluate import live_bytes, peak_bytes
from ...planning.graph import Graph
from ...planning.objective import EAGER_SHARE
from ...planning.orders import eager
from ...planning.plan import Plan
from ...planning.rewriting import HoldingBack, Rewritten, as_graph, carried_out, held_back
from ...support.timing import part
from ..step.step import Step
from .xla.memory import xla_timeline
from .xla.planned import Plain


@dataclass(frozen=True)
class Peaks:
    """Bytes of temporaries at their peak: in program order, for an executor that starts what it can, and by the model
    of XLA:CPU, which is asked when somebody wants to know. `in_update`: the update needs the most, in program order.
    """

    in_order: int
    eager: int
    in_update: bool
    ask_xla: Callable[[], int] = field(repr=False)

    @classmethod
    @part("peaks")
    def of(cls, graph: Graph, ask_xla: Callable[[], int]) -> Peaks:
        live = live_bytes(graph)
        highest = int(live.argmax()) if len(live) else 0
        in_update = bool(len(live)) and graph.update[highest]
        return cls(int(live.max(initial=0)), peak_bytes(graph, eager(graph)), in_update, ask_xla)

    @classmethod
    def written(cls, function: FuncOp, step: Step) -> Peaks:
        """Of a step as it stands."""
        return cls.of(step.graph, lambda: xla_timeline(function, step.phases).peak_bytes)

    @property
    def is_steady(self) -> bool:
        return self.eager <= EAGER_SHARE * self.in_order

    def said(self) -> Iterator[str]:
        """R8: both numbers, where they are far apart."""
        if not self.is_steady:
            yield (
                f"an executor that starts operations as soon as it can needs {self.eager} bytes at its peak, and "
                f"{self.in_order} in program order"
            )

    @cached_property
    def xla(self) -> int:
        with part("peaks"):
            return self.ask_xla()


@dataclass(frozen=True)
class Forecast:
    """The peaks of a step under plans, before one of them is carried out.

    `ordered`, `staggered`: what the target keeps, and whether early parts of segments are held back.
    """

    graph: Graph
    plain: Callable[[], Plain]
    ordered: bool = True
    staggered: bool = True

    @classmethod
    def of(cls, function: FuncOp, step: Step, ordered: bool = True, staggered: bool = True) -> Forecast:
        """Raises `Refusal` for dynamic shapes, when XLA is asked."""
        read = list[Plain]()

        def plain() -> Plain:
            if not read:
                read.append(Plain.of(function, step.phases.order))
            return read[0]

        return cls(step.graph, plain, ordered, staggered)

    def read(self) -> Forecast:
        """The same for a function that is changed from now on."""
        self.plain()
        return self

    def without_copies(self) -> Peaks:
        return self.of_program(carried_out(self.graph, Plan()))

    def of_plan(self, plan: Plan, segments: Mapping[int, str]) -> Peaks:
        """`segments`: of operations, those of which early parts are held back."""
        program = carried_out(self.graph, plan, self.ordered)
        if self.ordered and self.staggered:
            program = self._held_back(program, segments)
        return self.of_program(program)

    def _held_back(self, program: Rewritten, segments: Mapping[int, str]) -> Rewritten:
        graph = as_graph(self.graph, program)
        there = {
            op: segments[one.origin]
            for op, one in enumerate(program.operations)
            if one.origin in segments and not one.is_new and graph.forward[op]
        }
        parts = early_parts(graph, there)
        return held_back(graph, program, [HoldingBack(one.operations[0], one.waiting) for one in parts])

    def of_program(self, program: Rewritten) -> Peaks:
        return Peaks.of(as_graph(self.graph, program), lambda: self.plain().peak_bytes(program))
