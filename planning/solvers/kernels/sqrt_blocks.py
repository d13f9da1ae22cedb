"""Maintain the peak bytes of each stage, and the overflow above the budget, in blocks of 64 stages (square-root
decomposition).

A block that is entirely above or entirely below the budget is updated as a whole. Only mixed blocks are scanned, and
only once after any number of changes.
"""

from __future__ import annotations

from .board import (
    BLOCK,
    BLOCK_ADDED,
    BLOCK_MAX,
    BLOCK_MIN,
    BLOCK_OVER_WEIGHT,
    BLOCK_OVERFLOW,
    BLOCK_WEIGHT,
    BLOCK_WEIGHTED,
    BUDGET_BYTES,
    DIRTY_BLOCKS,
    DIRTY_COUNT,
    IS_DIRTY,
    OPERATION_COUNT,
    OVERFLOW_BYTES,
    STAGE_PEAK,
    STAGE_WEIGHT,
    Board,
    enqueue,
)
from .compiled import kernel


@kernel
def add_bytes(board: Board, first: int, last: int, change: int) -> None:
    """Add `change` bytes to the peaks of the stages from `first` to `last`, both inclusive."""
    if first > last or change == 0:
        return
    left, right = first // BLOCK, last // BLOCK
    if left == right:
        _add_to_part(board, left, first, last, change)
        return
    _add_to_part(board, left, first, (left + 1) * BLOCK - 1, change)
    for block in range(left + 1, right):
        _add_to_block(board, block, change)
    _add_to_part(board, right, right * BLOCK, last, change)


@kernel
def _add_to_part(board: Board, block: int, first: int, last: int, change: int) -> None:
    """Add `change` bytes to the peaks of the stages from `first` to `last`. These stages must be in one block."""
    peaks = board[STAGE_PEAK]
    for position in range(peaks + first, peaks + last + 1):
        board[position] += change
    mark_dirty(board, block)


@kernel
def mark_dirty(board: Board, block: int) -> None:
    """Mark the block as dirty, so that `scan_dirty_blocks` scans it."""
    enqueue(board, DIRTY_BLOCKS, DIRTY_COUNT, IS_DIRTY, block)


@kernel
def _add_to_block(board: Board, block: int, change: int) -> None:
    """Add `change` bytes to the peaks of all stages of a block. The block is marked for a scan only if the budget is
    between its smallest and its largest peak."""
    board[board[BLOCK_ADDED] + block] += change
    if board[board[IS_DIRTY] + block] == 1:
        return
    weight, budget = board[board[BLOCK_WEIGHT] + block], board[BUDGET_BYTES]
    board[board[BLOCK_MAX] + block] += change
    board[board[BLOCK_MIN] + block] += change
    board[board[BLOCK_WEIGHTED] + block] += change * weight
    if board[board[BLOCK_MAX] + block] <= budget:
        _set_overflow(board, block, 0, 0)
    elif board[board[BLOCK_MIN] + block] > budget:
        _set_overflow(board, block, board[board[BLOCK_WEIGHTED] + block] - budget * weight, weight)
    else:
        mark_dirty(board, block)


@kernel
def _set_overflow(board: Board, block: int, overflow: int, weight: int) -> None:
    board[OVERFLOW_BYTES] += overflow - board[board[BLOCK_OVERFLOW] + block]
    board[board[BLOCK_OVERFLOW] + block] = overflow
    board[board[BLOCK_OVER_WEIGHT] + block] = weight


@kernel
def scan_dirty_blocks(board: Board) -> None:
    """Scan the dirty blocks. Afterwards, `OVERFLOW_BYTES` is valid."""
    dirty_blocks = board[DIRTY_BLOCKS]
    for index in range(board[DIRTY_COUNT]):
        scan_block(board, board[dirty_blocks + index])
    board[DIRTY_COUNT] = 0


@kernel
def scan_block(board: Board, block: int) -> None:
    """Scan the stages of a block, and recompute its fields."""
    board[board[IS_DIRTY] + block] = 0
    first, peaks, weights = block * BLOCK, board[STAGE_PEAK], board[STAGE_WEIGHT]
    added = board[board[BLOCK_ADDED] + block]
    allowed = board[BUDGET_BYTES] - added
    most = least = board[peaks + first]
    weighted_peaks, total_weight, overflow, over_weight = 0, 0, 0, 0
    for stage in range(first, first + BLOCK):
        peak, weight = board[peaks + stage], board[weights + stage]
        most = max(most, peak)
        least = min(least, peak)
        weighted_peaks += weight * peak
        total_weight += weight
        if peak > allowed:
            overflow += weight * (peak - allowed)
            over_weight += weight
    board[board[BLOCK_MAX] + block] = most + added
    board[board[BLOCK_MIN] + block] = least + added
    board[board[BLOCK_WEIGHTED] + block] = weighted_peaks + added * total_weight
    board[board[BLOCK_WEIGHT] + block] = total_weight
    _set_overflow(board, block, overflow, over_weight)


@kernel
def peak_of_stage(board: Board, stage: int) -> int:
    """Return the peak bytes in a stage."""
    return board[board[STAGE_PEAK] + stage] + board[board[BLOCK_ADDED] + stage // BLOCK]


@kernel
def overflow_in(board: Board, first: int, last: int) -> tuple[int, int]:
    """Return the overflow in bytes of the stages from `first` to `last`, both inclusive, and the total weight of the
    stages in this range that exceed the budget."""
    overflow, over_weight, stage = 0, 0, first
    peaks, weights = board[STAGE_PEAK], board[STAGE_WEIGHT]
    while stage <= last:
        block = stage // BLOCK
        if board[board[BLOCK_OVERFLOW] + block] == 0:
            stage = (block + 1) * BLOCK
        elif stage == block * BLOCK and stage + BLOCK - 1 <= last:
            overflow += board[board[BLOCK_OVERFLOW] + block]
            over_weight += board[board[BLOCK_OVER_WEIGHT] + block]
            stage += BLOCK
        else:
            stop = min(last, (block + 1) * BLOCK - 1)
            allowed = board[BUDGET_BYTES] - board[board[BLOCK_ADDED] + block]
            while stage <= stop:
                peak, weight = board[peaks + stage], board[weights + stage]
                if peak > allowed:
                    overflow += weight * (peak - allowed)
                    over_weight += weight
                stage += 1
    return overflow, over_weight


@kernel
def set_weight(board: Board, first: int, last: int, weight: int) -> None:
    """Set the weight with which the stages from `first` to `last`, both inclusive, contribute to the overflow."""
    for stage in range(first, last + 1):
        board[board[STAGE_WEIGHT] + stage] = weight
    for block in range(first // BLOCK, last // BLOCK + 1):
        scan_block(board, block)


@kernel
def peak_bytes(board: Board) -> int:
    """Return the peak over all stages in bytes. No stage may be pending."""
    most = 0
    for block in range(board[OPERATION_COUNT] // BLOCK + 1):
        most = max(most, board[board[BLOCK_MAX] + block])
    return most
