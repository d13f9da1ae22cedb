"""Sorted rows of stages and of operations, stored in one pool on the board.

There are three kinds of rows, for n operations:

- The row of operation i lists the stages in which it runs, including its own stage, in ascending order.
- Row `STAGE_ROWS + t` lists the operations that are copied in stage t, for t from 0 to n.
- Row `LAST_USE_ROWS + v` lists the stage of the last use of each instance of storage v; its entries correspond to the
  entries in the row of the maker of v. For an instance without uses, the entry is the stage in which it is made.

A row that exceeds its capacity moves to a place of twice the size. Its old place is added to the free list for places
of that size.
"""

from __future__ import annotations

from .board import (
    FREE_PLACES,
    IS_FULL,
    LAST_USE_ROWS,
    MAKERS,
    POOL_TOP,
    ROW_CAPACITY,
    ROW_LENGTH,
    ROW_POOL,
    ROW_START,
    Board,
    length_of,
)
from .compiled import kernel


@kernel
def entry(board: Board, row: int, index: int) -> int:
    """Return the entry of the row at `index`."""
    return board[board[board[ROW_START] + row] + index]


@kernel
def set_entry(board: Board, row: int, index: int, value: int) -> None:
    """Replace the entry of the row at `index`."""
    board[board[board[ROW_START] + row] + index] = value


@kernel
def count_below(board: Board, row: int, limit: int) -> int:
    """Return the number of entries of the row that are less than `limit`."""
    start, low, high = board[board[ROW_START] + row], 0, board[board[ROW_LENGTH] + row]
    while low < high:
        middle = (low + high) // 2
        if board[start + middle] < limit:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def contains(board: Board, row: int, value: int) -> bool:
    """Return whether the row contains this value."""
    index = count_below(board, row, value)
    return index < board[board[ROW_LENGTH] + row] and entry(board, row, index) == value


@kernel
def last_use_in(board: Board, storage: int, stage: int) -> int:
    """Return the stage of the last use of an instance: the most recent instance of the storage at `stage`."""
    run = count_below(board, board[board[MAKERS] + storage], stage + 1) - 1
    return entry(board, board[LAST_USE_ROWS] + storage, run)


@kernel
def insert_entry(board: Board, row: int, index: int, value: int) -> None:
    """Insert the value into the row at `index`."""
    length = board[board[ROW_LENGTH] + row]
    if length == board[board[ROW_CAPACITY] + row]:
        _enlarge(board, row)
    start = board[board[ROW_START] + row]
    for position in range(start + length, start + index, -1):
        board[position] = board[position - 1]
    board[start + index] = value
    board[board[ROW_LENGTH] + row] = length + 1


@kernel
def delete_entry(board: Board, row: int, index: int) -> None:
    """Delete the entry of the row at `index`."""
    start, length = board[board[ROW_START] + row], board[board[ROW_LENGTH] + row] - 1
    for position in range(start + index, start + length):
        board[position] = board[position + 1]
    board[board[ROW_LENGTH] + row] = length


@kernel
def _size_class(capacity: int) -> int:
    """Return the size class of a capacity: the smallest c with 2 ** c >= capacity."""
    size_class = 0
    while 1 << size_class < capacity:
        size_class += 1
    return size_class


@kernel
def _allocate(board: Board, size_class: int) -> int:
    """Allocate a place for 2 ** size_class entries. Return its board position.

    If less than a quarter of the pool is left, mark the board as full. The rest of the pool suffices for the present
    move.
    """
    free_place = board[FREE_PLACES] + size_class
    place = board[free_place]
    if place >= 0:
        board[free_place] = board[place]
        return place
    place = board[POOL_TOP]
    board[POOL_TOP] = place + (1 << size_class)
    if board[POOL_TOP] > board[ROW_POOL] + length_of(board, ROW_POOL) - length_of(board, ROW_POOL) // 4:
        board[IS_FULL] = 1
    return place


@kernel
def _enlarge(board: Board, row: int) -> None:
    """Move the row to a place of twice its capacity."""
    old, capacity = board[board[ROW_START] + row], board[board[ROW_CAPACITY] + row]
    size_class = _size_class(2 * capacity) if capacity > 0 else 1
    new = _allocate(board, size_class)
    for index in range(board[board[ROW_LENGTH] + row]):
        board[new + index] = board[old + index]
    if capacity > 0:
        free_place = board[FREE_PLACES] + _size_class(capacity)
        board[old] = board[free_place]
        board[free_place] = old
    board[board[ROW_START] + row] = new
    board[board[ROW_CAPACITY] + row] = 1 << size_class
