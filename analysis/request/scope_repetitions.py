"""Repetitions of scopes. If a scope is entered several times, such as the scope `layer` by each layer of a model, every
repetition is a segment instance: `layer`, `layer#1`, …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from ...support.locations import LocationNumbers
from ...support.operations import name_of
from ..step.jax_paths import scope_of

Path = tuple[str, ...]


def numbered_repetitions(segment_path: Mapping[Operation, Path]) -> dict[Operation, str]:
    """Return the segment name of each operation. Later repetitions of a scope are numbered: `layer`, `layer#1`, ..."""
    members = dict[Path, list[Operation]]()
    for op, path in segment_path.items():
        members.setdefault(path, []).append(op)
    name_of_op = dict[Operation, str]()
    numbers = LocationNumbers()
    for path, operations in members.items():
        for op, repetition in zip(operations, _repetitions(operations, numbers), strict=True):
            name_of_op[op] = "/".join(path) + (f"#{repetition}" if repetition else "")
    return {op: name_of_op[op] for op in segment_path}


def _repetitions(operations: Sequence[Operation], numbers: LocationNumbers) -> list[int]:
    """Return, for each operation of a scope, the index of the scope's repetition in which it runs.

    Operations are identified by their source location. If a scope is entered n times, most of its operations occur n
    times, and a repetition starts at the first of these operations. If that operation occurs m * n times, for example
    because it is the first operation of a loop inside the scope, a repetition starts at every m-th occurrence.
    Constants are ignored, because called functions share their locations. Operations of called functions are ignored as
    well, because the scope may call a function twice. If all operations that occur n times lie between operations that
    occur once, these operations are the iterations of an unrolled loop, and the scope was entered once.
    """
    places = [None if not op.operands else (name_of(op), numbers.number_of(op.location)) for op in operations]
    own = [place if not scope_of(op.location).functions else None for op, place in zip(operations, places, strict=True)]
    places = own if any(own) else places
    occurrences = Counter(place for place in places if place is not None)
    if not occurrences:
        return [0] * len(places)
    times = Counter(occurrences.values()).most_common(1)[0][0]
    if times > 1 and _lies_between(times, [occurrences[place] for place in places if place is not None]):
        return [0] * len(places)
    start = next(place for place in places if place is not None and occurrences[place] % times == 0)
    occurrences_per_repetition = occurrences[start] // times
    starts, repetitions = 0, list[int]()
    for place in places:
        starts += place == start
        repetitions.append(max(starts - 1, 0) // occurrences_per_repetition)
    return repetitions


def _lies_between(times: int, occurrences: Sequence[int]) -> bool:
    """Return whether all operations that occur `times` times lie between operations that occur once."""
    first = occurrences.index(times)
    last = len(occurrences) - occurrences[::-1].index(times)
    return 1 in occurrences[:first] and 1 in occurrences[last:]
