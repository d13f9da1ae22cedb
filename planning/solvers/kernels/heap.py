"""Random numbers, sorting, and the heap of candidates on the board. A candidate is a storage to recompute in a stage
(`greedy.py`)."""

from __future__ import annotations

from .board import HEAP_LENGTH, HEAP_STAGE, HEAP_STORAGE, HEAP_VERSION, RANDOM_STATE, Board, Keys
from .compiled import kernel

MODULUS, MULTIPLIER = 2147483647, 48271
"""Parameters of the random number generator: the prime 2**31 - 1, and a primitive root (S. K. Park, K. W. Miller, P. K.
Stockmeyer, "Remarks on choosing and implementing random number generators", 1993)."""


@kernel
def draw(board: Board, count: int) -> int:
    """Return a random number from 0 to count - 1."""
    board[RANDOM_STATE] = board[RANDOM_STATE] * MULTIPLIER % MODULUS
    return board[RANDOM_STATE] * count // MODULUS


@kernel
def sort_entries(board: Board, start: int, count: int) -> None:
    """Sort `count` entries from position `start` on in place, in ascending order. This is Shellsort with the gaps of N.
    Tokuda, "An improved Shellsort", 1992."""
    gap = 1
    while gap < count:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9 if gap > 2 else 1
        gap = max(gap, 1)
        for index in range(start + gap, start + count):
            value, hole = board[index], index
            while hole >= start + gap and board[hole - gap] > value:
                board[hole] = board[hole - gap]
                hole -= gap
            board[hole] = value


@kernel
def push(board: Board, keys: Keys, key: float, storage: int, stage: int, version: int) -> None:
    """Push a candidate onto the heap. The candidate with the smallest key is on top; ties are broken by storage and
    stage.

    Args:
        board, keys: The board, and the keys of its heap.
        key: The score of the candidate.
        storage, stage: The storage to recompute, and the stage in which it is recomputed.
        version: The version of the candidates of the storage; see `VALID_VERSION`.
    """
    index = board[HEAP_LENGTH]
    board[HEAP_LENGTH] = index + 1
    while index > 0:
        parent = (index - 1) // 2
        if _precedes(board, keys, parent, key, storage, stage):
            break
        _copy_candidate(board, keys, index, parent)
        index = parent
    keys[index] = key
    _write_candidate(board, index, storage, stage, version)


@kernel
def pop(board: Board, keys: Keys) -> None:
    """Pop the top candidate of the heap. The last candidate replaces it and is sifted down."""
    last = board[HEAP_LENGTH] - 1
    board[HEAP_LENGTH] = last
    storages, stages = board[HEAP_STORAGE], board[HEAP_STAGE]
    key, storage, stage, version = (
        keys[last],
        board[storages + last],
        board[stages + last],
        board[board[HEAP_VERSION] + last],
    )
    index = 0
    while True:
        child = 2 * index + 1
        if child >= last:
            break
        if child + 1 < last and _precedes(
            board, keys, child + 1, keys[child], board[storages + child], board[stages + child]
        ):
            child += 1
        if not _precedes(board, keys, child, key, storage, stage):
            break
        _copy_candidate(board, keys, index, child)
        index = child
    keys[index] = key
    _write_candidate(board, index, storage, stage, version)


@kernel
def _precedes(board: Board, keys: Keys, index: int, key: float, storage: int, stage: int) -> bool:
    """Return whether the candidate at `index` precedes or equals the candidate with the given key, storage and
    stage."""
    if keys[index] != key:
        return keys[index] < key
    if board[board[HEAP_STORAGE] + index] != storage:
        return board[board[HEAP_STORAGE] + index] < storage
    return board[board[HEAP_STAGE] + index] <= stage


@kernel
def _copy_candidate(board: Board, keys: Keys, to: int, source: int) -> None:
    keys[to] = keys[source]
    board[board[HEAP_STORAGE] + to] = board[board[HEAP_STORAGE] + source]
    board[board[HEAP_STAGE] + to] = board[board[HEAP_STAGE] + source]
    board[board[HEAP_VERSION] + to] = board[board[HEAP_VERSION] + source]


@kernel
def _write_candidate(board: Board, index: int, storage: int, stage: int, version: int) -> None:
    board[board[HEAP_STORAGE] + index] = storage
    board[board[HEAP_STAGE] + index] = stage
    board[board[HEAP_VERSION] + index] = version
