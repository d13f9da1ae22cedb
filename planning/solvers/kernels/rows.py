"""Sorted rows of stages and operations, in one pool on the board.

Row i < n has the stages in which operation i runs, in order, including its own. Row n + t has the copies in stage t,
from 0 to n. Row 2 n + 1 + v has the stage of the last use of each instance of storage v, one for each entry of the row
of its maker. A row that exceeds its capacity moves to a place of twice the size; its old place goes to the free list of
its size.
"""

from __future__ import annotations

from .compiled import kernel
from .state import FREE, FULL, ROW_AT, ROW_LENGTH, ROW_POOL, ROW_ROOM, TOP, Board, space


@kernel
def below(m: Board, row: int, x: int) -> int:
    """Return the number of entries of the row that are less than x."""
    base, low, high = m[m[ROW_AT] + row], 0, m[m[ROW_LENGTH] + row]
    while low < high:
        middle = (low + high) // 2
        if m[base + middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def has(m: Board, row: int, x: int) -> bool:
    k = below(m, row, x)
    return k < m[m[ROW_LENGTH] + row] and m[m[m[ROW_AT] + row] + k] == x


@kernel
def put(m: Board, row: int, k: int, x: int) -> None:
    """Insert x as the k-th entry of the row."""
    length = m[m[ROW_LENGTH] + row]
    if length == m[m[ROW_ROOM] + row]:
        _grow(m, row)
    base = m[m[ROW_AT] + row]
    for j in range(length, k, -1):
        m[base + j] = m[base + j - 1]
    m[base + k] = x
    m[m[ROW_LENGTH] + row] = length + 1


@kernel
def take(m: Board, row: int, k: int) -> None:
    """Remove the k-th entry of the row."""
    base, length = m[m[ROW_AT] + row], m[m[ROW_LENGTH] + row] - 1
    for j in range(k, length):
        m[base + j] = m[base + j + 1]
    m[m[ROW_LENGTH] + row] = length


@kernel
def class_of(room: int) -> int:
    size_class = 0
    while 1 << size_class < room:
        size_class += 1
    return size_class


@kernel
def claim(m: Board, size_class: int) -> int:
    """Allocate a place in the pool for 2 ** size_class entries."""
    place = m[m[FREE] + size_class]
    if place >= 0:
        m[m[FREE] + size_class] = m[place]
        return place
    place = m[TOP]
    m[TOP] = place + (1 << size_class)
    if m[TOP] > m[ROW_POOL] + space(m, ROW_POOL) - space(m, ROW_POOL) // 4:
        m[FULL] = 1
    return place


@kernel
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
