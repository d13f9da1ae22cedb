"""Sorting and random numbers that are the same whether compiled or not."""

from __future__ import annotations

from .board import SEED, State
from .compiled import compiled

MODULUS = 2147483647


@compiled
def draw(s: State, count: int) -> int:
    """A number from 0 to count - 1 (Park and Miller's generator)."""
    s.reg[SEED] = s.reg[SEED] * 48271 % MODULUS
    return s.reg[SEED] * count // MODULUS


@compiled
def sort_keys(keys: list[int], count: int) -> None:
    """Shell's sort of the first entries, in place, smallest first (gaps of Tokuda)."""
    gap = 1
    while gap < count:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9 if gap > 2 else 1
        if gap < 1:
            gap = 1
        for at in range(gap, count):
            key, j = keys[at], at
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                j -= gap
            keys[j] = key
    return


@compiled
def push(s: State, size: int, key: float, value: int, stage: int, version: int) -> None:
    """Put a candidate on the heap of `size` entries; the smallest key is on top, ties by storage and stage."""
    at = size
    while at > 0:
        up = (at - 1) // 2
        if not _less(s, up, key, value, stage):
            _copy(s, at, up)
            at = up
        else:
            break
    s.heap_key[at] = key
    s.heap_value[at] = value
    s.heap_stage[at] = stage
    s.heap_version[at] = version


@compiled
def _less(s: State, at: int, key: float, value: int, stage: int) -> bool:
    """Whether the entry is before this one, or the same."""
    if s.heap_key[at] != key:
        return s.heap_key[at] < key
    if s.heap_value[at] != value:
        return s.heap_value[at] < value
    return s.heap_stage[at] <= stage


@compiled
def _copy(s: State, to: int, source: int) -> None:
    s.heap_key[to] = s.heap_key[source]
    s.heap_value[to] = s.heap_value[source]
    s.heap_stage[to] = s.heap_stage[source]
    s.heap_version[to] = s.heap_version[source]


@compiled
def sink(s: State, size: int) -> None:
    """Take the top of a heap of `size` entries; its last entry is put in its place and sinks."""
    last = size - 1
    key, value, stage, version = s.heap_key[last], s.heap_value[last], s.heap_stage[last], s.heap_version[last]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        if down + 1 < last and _less(s, down + 1, s.heap_key[down], s.heap_value[down], s.heap_stage[down]):
            down += 1
        if not _less(s, down, key, value, stage):
            break
        _copy(s, at, down)
        at = down
    s.heap_key[at] = key
    s.heap_value[at] = value
    s.heap_stage[at] = stage
    s.heap_version[at] = version
