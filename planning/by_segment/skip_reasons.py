"""The reasons why a segment or a value is not recomputed, as strings for messages."""

from __future__ import annotations

from collections.abc import Collection

from ..graph import Graph
from .plan_targets import Targets, copyable_targets

FROM_CONSTANTS = "it is computed only from constants, and keeping it costs nothing"
NO_GATE = "the backward pass begins with these values, so recomputing them would free nothing"
NOT_READ_BY_GRADIENT = "no gradient operation reads a value from it"
ONLY_KEPT_READ = (
    "gradient operations read only values of it that are kept: outputs, which operations after it read, returned "
    "values, and values that are marked to be saved"
)
ALL_KEPT = (
    "every value is marked to be saved or is an output, which later operations read; the option outputs also "
    "recomputes outputs"
)
FREES_NOTHING = (NO_GATE, NOT_READ_BY_GRADIENT, ONLY_KEPT_READ, ALL_KEPT)
"""Reasons for which copies of a segment would free no memory."""
SKIPPED = "it is on the list of segments to skip"
LIVES_ON = "the function returns it, so it lives to the end anyway"
NOTHING_FREED = "nothing is saved: everything that it would recompute stays alive for other uses"


def why_no_copies(graph: Graph, targets: Targets, segment: str, refused: Collection[int]) -> str:
    """Return the reason why no target of a segment is copied.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        segment: The name of the segment.
        refused: Operations that must not run twice.
    """
    operations = (op for op, name in targets.segments.items() if name == segment)
    read = [op for op in operations if any(graph.gradient_readers[value] for value in graph.makes[op])]
    refused_read = [op for op in read if op in refused and not targets.values.isdisjoint(graph.makes[op])]
    if refused_read:
        names = " and ".join(dict.fromkeys(graph.names[op] for op in refused_read))
        reason = graph.effects[refused_read[0]]
        return f"gradient operations read results of {names}, which must not run twice: {reason}"
    copyable = copyable_targets(graph, targets, refused).values
    return ONLY_KEPT_READ if any(copyable.isdisjoint(graph.makes[op]) for op in read) else NOT_READ_BY_GRADIENT
