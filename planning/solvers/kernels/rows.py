"""Rows of sorted numbers that grow and shrink, in one pool: entries of a row stand together, with room to spare.

A row that needs more moves to a place twice as large; what it leaves is kept by size for the next one.
"""

from __future__ import annotations

from .board import FULL, TOP, State
from .compiled import compiled


@compiled
def below(s: State, row: int, x: int) -> int:
    """How many entries of the row are below x."""
    base, low, high = s.at[row], 0, s.length[row]
    while low < high:
        middle = (low + high) // 2
        if s.pool[base + middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def has(s: State, row: int, x: int) -> bool:
    k = below(s, row, x)
    return k < s.length[row] and s.pool[s.at[row] + k] == x


@compiled
def put(s: State, row: int, k: int, x: int) -> None:
    """Make x the k-th entry of the row."""
    length = s.length[row]
    if length == s.room[row]:
        _grow(s, row)
    base = s.at[row]
    for j in range(length, k, -1):
        s.pool[base + j] = s.pool[base + j - 1]
    s.pool[base + k] = x
    s.length[row] = length + 1


@compiled
def take(s: State, row: int, k: int) -> None:
    """Take the k-th entry out of the row."""
    base, length = s.at[row], s.length[row] - 1
    for j in range(k, length):
        s.pool[base + j] = s.pool[base + j + 1]
    s.length[row] = length


@compiled
def class_of(room: int) -> int:
    found = 0
    while (1 << found) < room:
        found += 1
    return found


@compiled
def claim(s: State, size_class: int) -> int:
    """A place in the pool for 2 ** size_class entries."""
    found = s.free[size_class]
    if found >= 0:
        s.free[size_class] = s.pool[found]
        return found
    found = s.reg[TOP]
    s.reg[TOP] = found + (1 << size_class)
    if s.reg[TOP] > len(s.pool) - len(s.pool) // 4:
        s.reg[FULL] = 1
    return found


@compiled
def _grow(s: State, row: int) -> None:
    old, room, length = s.at[row], s.room[row], s.length[row]
    size_class = class_of(2 * room) if room > 0 else 1
    new = claim(s, size_class)
    for j in range(length):
        s.pool[new + j] = s.pool[old + j]
    if room > 0:
        before = class_of(room)
        s.pool[old] = s.free[before]
        s.free[before] = old
    s.at[row] = new
    s.room[row] = 1 << size_class
