"""The results of a segment that later forward operations read, or that are live after the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...planning.graph import Graph


def is_live_after_backward(graph: Graph, value: int) -> bool:
    """Return whether the storage of the value is live after the backward pass."""
    return graph.root[value] in graph.live_after_backward


def kept_outputs(graph: Graph, segment: Iterable[int]) -> set[int]:
    """Return the segment's values that forward operations outside the segment read, and the owners of their storage.

    These values are kept so that recomputing a segment does not require recomputing the segment before it.
    """
    inside = set(segment)
    outputs = {
        value
        for value in graph.results_of(inside)
        if any(graph.forward[reader] and reader not in inside for reader in graph.readers[value])
    }
    return outputs | {root for value in outputs if graph.maker[root := graph.root[value]] in inside}


def kept_results_of(graph: Graph, segment: Sequence[int]) -> set[int]:
    """Return the kept results of a segment: its outputs, and its values that are live after the backward pass."""
    return kept_outputs(graph, segment) | {
        value for value in graph.results_of(segment) if is_live_after_backward(graph, value)
    }
