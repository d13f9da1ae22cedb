"""Random numbers, sorting, and the heap of candidates on the board."""

from __future__ import annotations

from .compiled import kernel
from .state import HEAP, HEAP_STAGE, HEAP_VALUE, HEAP_VERSION, SEED, Board, Keys

MODULUS = 2147483647
"""The modulus of the generator of random numbers, 2**31 - 1."""


@kernel
def draw(m: Board, count: int) -> int:
    """Return a number from 0 to count - 1 (Park and Miller's generator)."""
    m[SEED] = m[SEED] * 48271 % MODULUS
    return m[SEED] * count // MODULUS


@kernel
def sort_keys(m: Board, start: int, count: int) -> None:
    """Sort `count` entries from `start` on in place, smallest first, by Shell's sort (gaps of Tokuda)."""
    gap = 1
    while gap < count:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9 if gap > 2 else 1
        gap = max(gap, 1)
        for at in range(gap, count):
            key, j = m[start + at], at
            while j >= gap and m[start + j - gap] > key:
                m[start + j] = m[start + j - gap]
                j -= gap
            m[start + j] = key


@kernel
def push(m: Board, keys: Keys, key: float, value: int, stage: int, version: int) -> None:
    """Push a candidate onto the heap. The smallest key is on top; ties are broken by storage and stage."""
    at = m[HEAP]
    m[HEAP] = at + 1
    while at > 0:
        up = (at - 1) // 2
        if not _less(m, keys, up, key, value, stage):
            _copy(m, keys, at, up)
            at = up
        else:
            break
    keys[at] = key
    m[m[HEAP_VALUE] + at] = value
    m[m[HEAP_STAGE] + at] = stage
    m[m[HEAP_VERSION] + at] = version


@kernel
def _less(m: Board, keys: Keys, at: int, key: float, value: int, stage: int) -> bool:
    """Return whether the entry at `at` precedes or equals the given one."""
    if keys[at] != key:
        return keys[at] < key
    if m[m[HEAP_VALUE] + at] != value:
        return m[m[HEAP_VALUE] + at] < value
    return m[m[HEAP_STAGE] + at] <= stage


@kernel
def _copy(m: Board, keys: Keys, to: int, source: int) -> None:
    keys[to] = keys[source]
    m[m[HEAP_VALUE] + to] = m[m[HEAP_VALUE] + source]
    m[m[HEAP_STAGE] + to] = m[m[HEAP_STAGE] + source]
    m[m[HEAP_VERSION] + to] = m[m[HEAP_VERSION] + source]


@kernel
def pop(m: Board, keys: Keys) -> None:
    """Pop the top of the heap: the last entry takes its place and sinks."""
    last = m[HEAP] - 1
    m[HEAP] = last
    key, value = keys[last], m[m[HEAP_VALUE] + last]
    stage, version = m[m[HEAP_STAGE] + last], m[m[HEAP_VERSION] + last]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        if down + 1 < last and _less(m, keys, down + 1, keys[down], m[m[HEAP_VALUE] + down], m[m[HEAP_STAGE] + down]):
            down += 1
        if not _less(m, keys, down, key, value, stage):
            break
        _copy(m, keys, at, down)
        at = down
    keys[at] = key
    m[m[HEAP_VALUE] + at] = value
    m[m[HEAP_STAGE] + at] = stage
    m[m[HEAP_VERSION] + at] = version
