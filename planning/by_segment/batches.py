"""Which copies of a segment run first, where one token for all of them would set too much loose at once.

A segment is often two computations that meet late: random bits, which run through many large values and leave a small
mask, and the layer itself. An executor that starts what it can would run both side by side, the temporaries of both
alive. So the part that runs through much more than it leaves comes first, and the rest waits for what it leaves. For
two independent computations the order by (peak - what is left) is the best one: R. Sethi, J. D. Ullman, "The generation
of optimal code for arithmetic expressions", 1970; J. W. H. Liu, "An application of generalized tree pebbling to sparse
matrix factorization", 1987.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ..graph import Graph
from ..objective import BATCH_CANDIDATES, BATCH_SHARE
from ..plan import Batch


def split(graph: Graph, operations: Sequence[int], freed_bytes: int, beside: bool = False) -> tuple[Batch, ...]:
    """One batch, or two where the first holds back enough. `operations` are in program order.

    `beside`: only where a part of the second could run beside the first, and is larger than what the second token
    stores: a compiler that fuses may not have stored it at all.
    """
    inputs = graph.outside_of(operations)
    first = _first_to_run(graph, operations, inputs, freed_bytes)
    early = tuple([op for op in operations if op in first])
    late = tuple([op for op in operations if op not in first])
    if not first or (beside and not _runs_beside(graph, early, late)):
        return (Batch(tuple(operations), inputs),)
    early_inputs = graph.outside_of(early)
    late_inputs = tuple([value for value in inputs if value not in early_inputs])
    awaited = tuple([value for value in _left(graph, early) if value not in graph.constants])
    return Batch(early, early_inputs), Batch(late, late_inputs, awaited)


def in_turn(graph: Graph, groups: Sequence[Sequence[int]], left: Set[int]) -> tuple[Batch, ...]:
    """One batch for each group; each waits for what the one before it leaves, of the values `left` for good."""
    batches, read = list[Batch](), set[int]()
    awaited: tuple[int, ...] = ()
    for group in groups:
        made = graph.results_of(group)
        inputs = tuple([value for value in graph.outside_of(group) if value not in read])
        batches.append(Batch(tuple(group), inputs, awaited))
        read.update(inputs)
        read.update(made)
        awaited = tuple([value for value in made if value in left and value not in graph.constants])
    return tuple(batches)


def _runs_beside(graph: Graph, early: Sequence[int], late: Sequence[int]) -> bool:
    """Whether what of the later part needs nothing of the early one takes more than the early one leaves."""
    waiting = {value for value in graph.results_of(early) if value not in graph.constants}
    free = list[int]()
    for op in late:
        if waiting.isdisjoint(graph.reads[op]):
            free.append(op)
        else:
            waiting.update(graph.makes[op])
    return sum(_run_bytes(graph, free)) > _run_bytes(graph, early)[1]


def excess_bytes(graph: Graph, part: Sequence[int]) -> int:
    """Peak of the part run on its own, in program order, less what it leaves behind."""
    peak, left = _run_bytes(graph, part)
    return peak - left


def _run_bytes(graph: Graph, part: Sequence[int]) -> tuple[int, int]:
    """Peak of the part run on its own, in program order, and what it leaves behind."""
    root = graph.root
    left = {root[value] for value in _left(graph, part)}
    made = set(graph.results_of(part)) - graph.constants
    last = {root[value]: op for op in part for value in graph.reads[op]}
    live = peak = 0
    for op in part:
        owned = [value for value in graph.makes[op] if value in made and root[value] == value]
        live += sum([graph.sizes[value] for value in owned])
        peak = max(peak, live + graph.inner_bytes[op])
        for storage in {*[root[value] for value in graph.reads[op]], *owned}:
            if last.get(storage, op) == op and storage in made and storage not in left:
                live -= graph.sizes[storage]
    return peak, sum(graph.sizes[storage] for storage in left if storage in made)


def _most_bytes(graph: Graph, part: Sequence[int]) -> int:
    """What the part takes if nothing dies: its excess is never more, and this is found in no time."""
    inner = max([graph.inner_bytes[op] for op in part], default=0)
    return sum([graph.stored_bytes[op] for op in part]) + inner


def _first_to_run(graph: Graph, operations: Sequence[int], inputs: Sequence[int], freed_bytes: int) -> set[int]:
    """The part that runs through most beyond what it leaves: all operations that need only some of the inputs.

    Of a large segment the parts that need the fewest inputs are looked at, so that the work is in proportion to it.
    """
    needs = _needed_inputs(graph, operations, inputs)
    best, most = set[int](), BATCH_SHARE * freed_bytes
    for mask in sorted(sorted(set(needs.values()), key=int.bit_count)[:BATCH_CANDIDATES]):
        part = [op for op in operations if needs[op] | mask == mask]
        if len(part) == len(operations) or _most_bytes(graph, part) <= most:
            continue
        if (excess := excess_bytes(graph, part)) > most:
            best, most = set(part), excess
    return best


def _needed_inputs(graph: Graph, operations: Sequence[int], inputs: Sequence[int]) -> Mapping[int, int]:
    """For each operation the inputs that it depends on, as a set of bits."""
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


def _left(graph: Graph, part: Sequence[int]) -> list[int]:
    """What somebody outside of the part reads."""
    inside = set(part)
    return [
        value
        for value in graph.results_of(part)
        if any(reader not in inside and not graph.update[reader] for reader in graph.readers[value])
    ]
