"""Split the copies of a group into batches. Each batch waits for its own token: a value that orders operations.

A segment often consists of two computations that meet late. One draws random bits, which takes many large temporaries
and yields a small mask; the other is the layer itself. An eager executor would run both concurrently, with the
temporaries of both live. Therefore the part whose peak is far above its live-out bytes runs first, and the second part
waits for its results. For two independent computations, it is optimal to run the one with the larger difference between
peak and live-out bytes first: R. Sethi, J. D. Ullman, "The generation of optimal code for arithmetic expressions",
1970; J. W. H. Liu, "An application of generalized tree pebbling to sparse matrix factorization", 1987.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ..graph import Graph
from ..plan import Batch

MIN_BATCH_SHARE = 0.25
"""Minimum number of bytes that a separate batch must delay, as a share of the bytes that its group frees. The batch's
barrier prevents fusion, and this loss may cancel a smaller gain. The same threshold applies to a barrier before an
early part of a segment in the forward pass (`early_parts.py`)."""
MAX_BATCH_CANDIDATES = 32
"""Maximum number of parts of a segment that are considered for a batch. This limit keeps the work linear in the size of
the segment."""


def split_into_batches(
    graph: Graph, operations: Sequence[int], freed_bytes: int, only_concurrent: bool = False
) -> tuple[Batch, ...]:
    """Split the copies of a group into two batches if delaying the second batch frees enough memory.

    Args:
        graph: The graph of the step.
        operations: The copied operations, in program order.
        freed_bytes: The bytes that the group frees.
        only_concurrent: Whether to split only if a part of the second batch could run concurrently with the first
            batch, and needs more bytes than the values that the second token waits for. The token makes a fusing
            compiler store these values, which it might otherwise never materialize.

    Returns:
        One or two batches.
    """
    inputs = graph.outside_of(operations)
    first_part = _part_to_run_first(graph, operations, inputs, freed_bytes)
    first = tuple([op for op in operations if op in first_part])
    second = tuple([op for op in operations if op not in first_part])
    if not first or (only_concurrent and not _may_run_concurrently(graph, first, second)):
        return (Batch(tuple(operations), inputs),)
    first_inputs = graph.outside_of(first)
    second_inputs = tuple([value for value in inputs if value not in first_inputs])
    awaited = tuple([value for value in _live_out(graph, first) if value not in graph.constants])
    return Batch(first, first_inputs), Batch(second, second_inputs, awaited)


def sequential_batches(graph: Graph, groups: Sequence[Sequence[int]], live_out: Set[int]) -> tuple[Batch, ...]:
    """Return one batch for each group of operations; each batch waits for the preceding one.

    Args:
        graph: The graph of the step.
        groups: The operations of each batch, in the order of the batches.
        live_out: The values that are read after the copies. Each batch waits for the live-out values of the preceding
            batch.
    """
    batches, read = list[Batch](), set[int]()
    awaited: tuple[int, ...] = ()
    for group in groups:
        results = graph.results_of(group)
        inputs = tuple([value for value in graph.outside_of(group) if value not in read])
        batches.append(Batch(tuple(group), inputs, awaited))
        read.update(inputs)
        read.update(results)
        awaited = tuple([value for value in results if value in live_out and value not in graph.constants])
    return tuple(batches)


def _may_run_concurrently(graph: Graph, first: Sequence[int], second: Sequence[int]) -> bool:
    """Return whether a large share of the second part could run concurrently with the first part. This is the case if
    the operations of the second part that do not depend on the first part need more bytes than the first part leaves
    live."""
    dependent = {value for value in graph.results_of(first) if value not in graph.constants}
    independent = list[int]()
    for op in second:
        if dependent.isdisjoint(graph.reads[op]):
            independent.append(op)
        else:
            dependent.update(graph.makes[op])
    return sum(_run_bytes(graph, independent)) > _run_bytes(graph, first)[1]


def excess_bytes(graph: Graph, part: Sequence[int]) -> int:
    """Return the peak bytes of the part when it runs alone, in program order, minus its live-out bytes."""
    peak, live_out_bytes = _run_bytes(graph, part)
    return peak - live_out_bytes


def _run_bytes(graph: Graph, part: Sequence[int]) -> tuple[int, int]:
    """Return the part's peak bytes and its live-out bytes if it runs alone, in program order."""
    root, sizes, reads, inner_bytes = graph.root, graph.sizes, graph.reads, graph.inner_bytes
    live_out = {root[value] for value in _live_out(graph, part)}
    results = set(graph.results_of(part)) - graph.constants
    last_reader = {root[value]: op for op in part for value in reads[op]}
    # The storages that die at each operation: storages that it reads last, and unread storages that it makes.
    dying = dict[int, list[int]]()
    for storage in results - live_out:
        if root[storage] == storage or storage in last_reader:
            dying.setdefault(last_reader.get(storage, graph.maker[storage]), []).append(storage)
    live_bytes = peak = 0
    for op in part:
        for value in graph.makes[op]:
            if value in results and root[value] == value:
                live_bytes += sizes[value]
        peak = max(peak, live_bytes + inner_bytes[op])
        for storage in dying.get(op, ()):
            live_bytes -= sizes[storage]
    return peak, sum(sizes[storage] for storage in live_out if storage in results)


def _max_excess_bytes(graph: Graph, part: Sequence[int]) -> int:
    """Return an upper bound on `excess_bytes` that is cheap to compute: the bytes of all results plus the bytes of the
    largest region."""
    inner = max([graph.inner_bytes[op] for op in part], default=0)
    return sum([graph.stored_bytes[op] for op in part]) + inner


def _part_to_run_first(graph: Graph, operations: Sequence[int], inputs: Sequence[int], freed_bytes: int) -> set[int]:
    """Return the operations of the part with the largest `excess_bytes`. The result is empty if no part exceeds
    `MIN_BATCH_SHARE` of the freed bytes. Each part consists of all operations that depend only on a given subset of the
    inputs.

    To bound the work for large segments, only the `MAX_BATCH_CANDIDATES` parts with the fewest inputs are considered.
    """
    needs = _needed_inputs(graph, operations, inputs)
    best = set[int]()
    largest_excess = MIN_BATCH_SHARE * freed_bytes
    for mask in sorted(sorted(set(needs.values()), key=int.bit_count)[:MAX_BATCH_CANDIDATES]):
        part = [op for op in operations if needs[op] | mask == mask]
        if len(part) == len(operations) or _max_excess_bytes(graph, part) <= largest_excess:
            continue
        if (excess := excess_bytes(graph, part)) > largest_excess:
            best, largest_excess = set(part), excess
    return best


def _needed_inputs(graph: Graph, operations: Sequence[int], inputs: Sequence[int]) -> Mapping[int, int]:
    """Return, for each operation, a bit mask of the inputs that it depends on."""
    bit = {value: 1 << index for index, value in enumerate(inputs)}
    needs = dict[int, int]()
    for op in operations:
        mask = 0
        for value in graph.reads[op]:
            mask |= bit.get(value, 0)
        for producer in graph.producers[op]:
            mask |= needs.get(producer, 0)
        needs[op] = mask
    return needs


def _live_out(graph: Graph, part: Sequence[int]) -> list[int]:
    """Return the results of the part that are read by operations outside the part, other than updates."""
    inside = set(part)
    return [
        value
        for value in graph.results_of(part)
        if any(reader not in inside and not graph.update[reader] for reader in graph.readers[value])
    ]
