"""The predicted peak memory of a step on each kind of executor, with or without a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects.func import FuncOp

from ...options.recompute_options import DEFAULT_OPTIONS, Emission
from ...planning.by_segment.early_parts import early_parts
from ...planning.graph import Graph
from ...planning.liveness import CountedStorages, peak_bytes
from ...planning.objective import MAX_EAGER_FACTOR
from ...planning.orders import eager_order
from ...planning.plan import Plan
from ...planning.simulate import Barrier, SimulatedProgram, as_graph, insert_barriers, simulate
from ...support.deferred import Deferred
from ...support.interface import interface_wording
from ...support.timing import part
from ...support.units import readable_bytes
from ..memory.xla.memory import PlainStep, xla_timeline
from ..step.step import Step


@dataclass(frozen=True)
class OrderPeaks:
    """Peak bytes of temporaries in program order and in the order of an eager executor."""

    in_order: int
    eager: int

    @classmethod
    @part("peaks")
    def of(cls, graph: Graph) -> OrderPeaks:
        counted = CountedStorages.of(graph)
        return cls(peak_bytes(graph, counted=counted), peak_bytes(graph, eager_order(graph), counted))


@dataclass(frozen=True)
class Peaks:
    """Peak bytes of temporaries on each executor.

    Each peak is computed on first access, so that a search that uses one of them does not wait for the others.

    Attributes:
        orders: The peaks in program order and of the eager schedule.
        xla_peak: The peak under the XLA:CPU model, which is slow to compute.
    """

    orders: Deferred[OrderPeaks] = field(repr=False)
    xla_peak: Deferred[int] = field(repr=False)

    @classmethod
    def from_values(cls, in_order: int, eager: int, compute_xla: Callable[[], int]) -> Peaks:
        """Return peaks whose values for program order and the eager schedule are given. The peak under the XLA:CPU
        model is computed on first access."""
        orders = OrderPeaks(in_order, eager)
        return cls(Deferred(lambda: orders), Deferred(compute_xla))

    @classmethod
    def of(cls, graph: Graph, compute_xla: Callable[[], int]) -> Peaks:
        return cls(Deferred(lambda: OrderPeaks.of(graph)), Deferred(compute_xla))

    @classmethod
    def of_step(cls, function: FuncOp, step: Step) -> Peaks:
        """Return the peaks of an emitted step."""
        return cls.of(step.graph, lambda: xla_timeline(function, step.phases).peak_bytes)

    def with_orders(self) -> Peaks:
        """Compute the peaks of program order and of the eager schedule now instead of on first use. Return `self`."""
        _ = self.orders.value
        return self

    @property
    def in_order(self) -> int:
        """The peak if the operations run in program order."""
        return self.orders.value.in_order

    @property
    def eager(self) -> int:
        """The peak of the eager schedule."""
        return self.orders.value.eager

    def of_target(self, keeps_barriers: bool) -> int:
        """Return the peak for a target: the peak under the XLA:CPU model if the target keeps barriers, otherwise the
        peak in program order."""
        return self.xla if keeps_barriers else self.in_order

    def to_compare(self, keeps_barriers: bool) -> tuple[int, ...]:
        """Return the peaks by which attempts are compared: the peak of the target, and the peak in program order. It is
        enough that an attempt reduces one of them."""
        return (self.xla, self.in_order) if keeps_barriers else (self.in_order,)

    @property
    def is_steady(self) -> bool:
        """Whether the eager schedule needs at most `MAX_EAGER_FACTOR` times the memory of the program order."""
        return self.eager <= MAX_EAGER_FACTOR * self.in_order

    def notes(self) -> Iterator[str]:
        """If the eager schedule needs much more memory than the program order, yield a remark with both peaks and a
        remedy."""
        if not self.is_steady:
            model = interface_wording("memory-model=order", 'memory_model="order"')
            yield (
                f"peak {readable_bytes(self.eager)} on an executor that starts operations as soon as their operands "
                f"exist, {readable_bytes(self.in_order)} in program order: XLA is not such an executor; for one that "
                f"is, run the step in program order, or set a smaller budget with {model}"
            )

    @property
    def xla(self) -> int:
        """The peak under the XLA:CPU model, computed on first access."""
        with part("peaks"):
            return self.xla_peak.value


@dataclass(frozen=True)
class PeakChange:
    """The peaks of a function before and after a rewrite, in bytes.

    Attributes:
        in_order: The peaks in program order.
        xla: The peaks under the XLA:CPU model; None if they are not known.
    """

    in_order: tuple[int, int]
    xla: tuple[int, int] | None = None


@dataclass(frozen=True)
class Forecast:
    """Predicts the peaks of a step under plans without rewriting the step.

    Attributes:
        graph: The graph of the step.
        plain: A function that returns the representation of the unchanged step in the XLA:CPU model.
        keeps_barriers: Whether the target keeps the barriers that enforce the order of copies.
        staggered: Whether early parts of segments are delayed.
    """

    graph: Graph
    plain: Callable[[], PlainStep]
    keeps_barriers: bool = True
    staggered: bool = True

    @classmethod
    def of(cls, function: FuncOp, step: Step, emission: Emission = DEFAULT_OPTIONS.emission) -> Forecast:
        """Return a forecast for the function as it will be emitted.

        Predicting XLA's peak raises `Refusal` for dynamic shapes.
        """
        plain = Deferred(lambda: PlainStep.of(function, step.phases.order))
        return cls(step.graph, lambda: plain.value, emission.keeps_barriers, emission.staggered)

    def read_function(self) -> None:
        """Read the function now, so that later changes to the function affect neither this forecast nor the peaks that
        the forecast has returned."""
        _ = self.plain()

    def detach(self) -> Forecast:
        """Return a copy of the forecast that does not refer to the function. The function is read now."""
        plain = self.plain()
        return replace(self, plain=lambda: plain)

    def without_copies(self) -> Peaks:
        """Return the peaks of the unchanged step."""
        return self.of_program(simulate(self.graph, Plan()))

    def of_plan(self, plan: Plan, segments: Mapping[int, str]) -> Peaks:
        """Return the peaks that the step would have under a plan.

        `segments`: for each operation of a segment whose early parts may be delayed, the name of the segment.
        """
        program = simulate(self.graph, plan, self.keeps_barriers)
        if self.keeps_barriers and self.staggered and segments:
            graph = as_graph(self.graph, program)
            delayed = self._delay_early_parts(program, graph, segments)
            if delayed is program:
                return Peaks.of(graph, lambda: self.plain().peak_bytes(program))
            program = delayed
        return self.of_program(program)

    def _delay_early_parts(
        self, program: SimulatedProgram, graph: Graph, segments: Mapping[int, str]
    ) -> SimulatedProgram:
        """Insert barriers before the early parts of segments, which could run long before the remaining parts. `graph`:
        the graph of the program."""
        segment_of = {
            op: segments[instruction.origin]
            for op, instruction in enumerate(program.operations)
            if instruction.origin in segments and not instruction.is_new and graph.forward[op]
        }
        parts = early_parts(graph, segment_of)
        return insert_barriers(
            graph, program, [Barrier(early.operations[0], early.barrier_operands) for early in parts]
        )

    def of_program(self, program: SimulatedProgram) -> Peaks:
        """Return the peaks of a simulated program."""

        def orders() -> OrderPeaks:
            return OrderPeaks.of(as_graph(self.graph, program))

        return Peaks(Deferred(orders), Deferred(lambda: self.plain().peak_bytes(program)))
