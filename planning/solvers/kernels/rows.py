"""Rows of sorted numbers that grow and shrink, in one pool: entries of a row stand together, with room to spare.

A row that needs more moves to a place twice as large; what it leaves is kept by size for the next one.
"""

from __future__ import annotations

from .board import FREE, FULL, POOL, ROW_AT, ROW_LENGTH, ROW_ROOM, TOP, Board, space
from .compiled import compiled


@compiled
def below(m: Board, row: int, x: int) -> int:
    """How many entries of the row are below x."""
    base, low, high = m[m[ROW_AT] + row], 0, m[m[ROW_LENGTH] + row]
    while low < high:
        middle = (low + high) // 2
        if m[base + middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def has(m: Board, row: int, x: int) -> bool:
    k = below(m, row, x)
    return k < m[m[ROW_LENGTH] + row] and m[m[m[ROW_AT] + row] + k] == x


@compiled
def put(m: Board, row: int, k: int, x: int) -> None:
    """Make x the k-th entry of the row."""
    length = m[m[ROW_LENGTH] + row]
    if length == m[m[ROW_ROOM] + row]:
        _grow(m, row)
    base = m[m[ROW_AT] + row]
    for j in range(length, k, -1):
        m[base + j] = m[base + j - 1]
    m[base + k] = x
    m[m[ROW_LENGTH] + row] = length + 1


@compiled
def take(m: Board, row: int, k: int) -> None:
    """Take the k-th entry out of the row."""
    base, length = m[m[ROW_AT] + row], m[m[ROW_LENGTH] + row] - 1
    for j in range(k, length):
        m[base + j] = m[base + j + 1]
    m[m[ROW_LENGTH] + row] = length


@compiled
def class_of(room: int) -> int:
    found = 0
    while 1 << found < room:
        found += 1
    return found


@compiled
def claim(m: Board, size_class: int) -> int:
    """A place in the pool for 2 ** size_class entries."""
    found = m[m[FREE] + size_class]
    if found >= 0:
        m[m[FREE] + size_class] = m[found]
        return found
    found = m[TOP]
    m[TOP] = found + (1 << size_class)
    if m[TOP] > m[POOL] + space(m, POOL) - space(m, POOL) // 4:
        m[FULL] = 1
    return found


@compiled
def _grow(m: Board, row: int) -> None:
    old, room, length = m[m[ROW_AT] + row], m[m[ROW_ROOM] + row], m[m[ROW_LENGTH] + row]
    size_class = class_of(2 * room) if room > 0 else 1
    new = claim(m, size_class)
    for j in range(length):
        m[new + j] = m[old + j]
    if room > 0:
        before = class_of(room)
        m[old] = m[m[FREE] + before]
        m[m[FREE] + before] = old
    m[m[ROW_AT] + row] = new
    m[m[ROW_ROOM] + row] = 1 << size_class
