"""The bytes that functions need outside their steps. A budget includes these bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...planning.graph import Graph
from ..outcome import Recomputation


@dataclass(frozen=True)
class Surroundings:
    """The public functions around the steps, and the bytes that these functions need outside the steps.

    Attributes:
        of_graph: For each step, by its graph's fingerprint: the function around it, and the bytes that this function
            needs outside the step. A step inside a loop is outlined.
        single: The function and its peak, if the module is a single step (`BudgetProblem.is_single_step`).
    """

    of_graph: Mapping[str, tuple[str, int]]
    single: tuple[str, int] | None = None

    @classmethod
    def of_single(cls, peaks: Mapping[str, int]) -> Surroundings:
        """Return the surroundings in a module that is a single step. `peaks`: the peak of its only function."""
        (single,) = peaks.items()
        return cls({}, single)

    @classmethod
    def of(cls, outcome: Recomputation, peaks: Mapping[str, int], graphs: Mapping[str, Graph]) -> Surroundings:
        """Compute the bytes that functions need outside each step.

        Args:
            outcome: The outcome of a rewrite. It names the steps and the functions that contain them.
            peaks: The peaks of the functions before anything is copied, without dead code.
            graphs: The graphs of the steps, by fingerprint.
        """
        from ...planning.liveness import peak_bytes

        of_graph = dict[str, tuple[str, int]]()
        for plan in outcome.plans:
            if (graph := graphs.get(plan.graph)) is not None:
                function = outcome.containing_functions.get(plan.function, plan.function)
                of_graph[plan.graph] = function, max(0, peaks[function] - peak_bytes(graph))
        return cls(of_graph)

    def around(self, graph: Graph) -> tuple[str, int]:
        """Return the function around the step, and the bytes that it needs outside the step."""
        from ...planning.liveness import peak_bytes

        if self.single is None:
            return self.of_graph[graph.fingerprint]
        function, peak = self.single
        return function, max(0, peak - peak_bytes(graph))
