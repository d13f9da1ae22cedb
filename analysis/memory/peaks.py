"""What a step needs at its peak, on each kind of executor, and whether recomputing has made that less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...dialects.stopwatch import part
from ...planning.evaluate import live_bytes, peak_bytes
from ...planning.graph import Graph
from ...planning.objective import EAGER_SHARE
from ...planning.orders import eager
from ..step.functions import functions_of, single_block
from ..step.graph_of import graph_of
from ..step.order import Order
from ..step.phases import phases
from ..step.step import Step
from .xla.memory import xla_timeline


@dataclass(frozen=True)
class Peaks:
    """Bytes of temporaries at their peak, in program order and for an executor that starts what it can."""

    module: Callable[[], ModuleOp] = field(repr=False)
    """The module that they are of, for a look that is taken only where these two do not decide."""
    in_order: int
    eager: int
    in_update: bool = False
    """Whether the peak in program order is where the update is."""

    @classmethod
    @part("peaks")
    def of(cls, module: ModuleOp, steps: Sequence[tuple[FuncOp, Step]] | None = None) -> Peaks:
        """The highest peaks among the functions of an inlined module. `steps`: those with a gradient, where known.

        Raises `Refusal` for dynamic shapes.
        """
        if steps is None:
            found = [(function, phases(function)) for function in functions_of(module)]
            steps = [(function, Step.of(classified)) for function, classified in found if classified is not None]
        graphs = {function: step.graph for function, step in steps}
        others = [function for function in functions_of(module) if function not in graphs]
        in_order = [(peak_bytes(graph_of(Order.of(single_block(function))).graph), False) for function in others]
        in_order += [_peak(graph) for graph in graphs.values()]
        when_ready = [peak_bytes(graph, eager(graph)) for graph in graphs.values()]
        highest, in_update = max(in_order, default=(0, False))
        return cls(lambda: module, highest, max(when_ready, default=0), in_update)

    def kept(self, anew: Callable[[], ModuleOp], decide: bool) -> Peaks:
        """The peaks of a module that is changed from now on, and can be made `anew`.

        Recomputing does not lower a peak in the update, and where peaks `decide`, XLA will be asked: it is asked now,
        of what is there.
        """
        if decide and self.in_update:
            _ = self.xla
            return self
        return replace(self, module=anew)

    @property
    def is_steady(self) -> bool:
        return self.eager <= EAGER_SHARE * self.in_order

    @cached_property
    def xla(self) -> int:
        """Bytes of temporaries under XLA:CPU, by the model of `analysis/memory/xla`."""
        with part("peaks"):
            return max(xla_timeline(function).peak_bytes for function in functions_of(self.module()))


def _peak(graph: Graph) -> tuple[int, bool]:
    """Bytes, and whether an operation of the update runs there."""
    live = live_bytes(graph)
    highest = int(live.argmax()) if len(live) else 0
    return int(live.max(initial=0)), bool(len(live)) and graph.update[highest]


def why_worse(before: Peaks, after: Peaks, ordered: bool) -> str | None:
    """Why a step is better left as it was; None where the peak falls.

    `ordered`: the step is for executors with an order of their own. Where the peak in program order stays the same, XLA
    may still need less: the peak of a step whose update needs as much as its backward pass is not there.
    """
    if after.in_order > before.in_order or (after.in_order == before.in_order and not ordered):
        return f"recomputing takes the peak from {before.in_order} to {after.in_order} bytes"
    if not ordered:
        return None
    if after.eager > before.eager:
        return (
            f"recomputing takes the peak of an executor that starts operations as soon as it can from {before.eager} "
            f"to {after.eager} bytes"
        )
    if after.in_order == before.in_order and after.xla >= before.xla:
        return f"recomputing leaves the peak at {before.in_order} bytes, and at {after.xla} under XLA:CPU"
    return None
