"""The reasons why segments or values are not recomputed, as strings for messages. A message may name several segments
before a reason, so reasons do not refer to a segment as "it"."""

from __future__ import annotations

from collections.abc import Collection

from ..gates import NO_GATE
from ..graph import Graph
from .plan_targets import Targets, copyable_targets

FROM_CONSTANTS = "all values are computed only from constants, and keeping them costs nothing"
NOT_READ_BY_GRADIENT = "no gradient operation reads any of the values"
ONLY_KEPT_READ = (
    "gradient operations read only values that are kept: outputs (later operations read them), returned "
    "values, and values marked to be saved"
)
ALL_OUTPUTS = (
    "every value is an output (later operations read it), and outputs are saved unless the option outputs is set"
)
ALL_TO_SAVE = "marks, checkpoints or the policy demand that every value is saved"
ALL_KEPT = (
    "every value is an output (later operations read it), or marks, checkpoints or the policy demand that it is saved; "
    "outputs are saved unless the option outputs is set"
)
FREES_NOTHING = (NO_GATE, NOT_READ_BY_GRADIENT, ONLY_KEPT_READ, ALL_OUTPUTS, ALL_TO_SAVE, ALL_KEPT)
"""Reasons for which copies of a segment would free no memory."""
SKIPPED = "listed among the segments to skip"
LIVES_ON = "the function returns it, so it lives to the end anyway"
NOTHING_FREED = "no memory would be freed: all values that would be recomputed stay alive for other uses"


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
    read_values = {value for op in read for value in graph.makes[op] if graph.gradient_readers[value]}
    return NOT_READ_BY_GRADIENT if read_values <= copyable else ONLY_KEPT_READ
