"""The greedy search: add copies in order of increasing cost per byte of removed overflow, until no stage exceeds the
budget.

A candidate is a storage that is live between two accesses, across stages above the budget. Its move recomputes the
storage before the later access. The overflow is the sum of max(0, peak - budget) over all stages. The score of a move
is its extra cost divided by its reduction of the overflow, in the best of the three modes (`compound_moves.py`). The
initial key of a candidate is a lower bound on its score.

A heap orders the candidates by their last scores. The top candidate is re-evaluated. If its score is at most (1 +
tolerance) times the next key, its move is applied; otherwise it is pushed back (lazy greedy: M. Minoux, "Accelerated
greedy algorithms", 1978).
"""

from __future__ import annotations

from .board import (
    COSTS,
    EARLIEST_STAGE,
    EXTRA_COST,
    HEAP_LENGTH,
    HEAP_STAGE,
    HEAP_STORAGE,
    HEAP_VERSION,
    IS_FULL,
    IS_OUTPUT,
    LAST_USE_ROWS,
    LOG,
    LOG_LENGTH,
    MAKERS,
    MAY_RUN_AGAIN,
    OPERATION_COUNT,
    OVERFLOW_BYTES,
    ROW_LENGTH,
    ROW_START,
    SCRATCH,
    STAGE_ROWS,
    STORAGE_BYTES,
    VALID_VERSION,
    Board,
    Keys,
    length_of,
    operands_at,
    results_of,
    uses_at,
)
from .compiled import kernel
from .compound_moves import CHEAPER, HOLD, RECOMPUTE, apply_move
from .copy_moves import RISE, undo
from .heap import draw, pop, push, sort_entries
from .rows import contains, count_below, entry
from .sqrt_blocks import overflow_in

NO_GAIN = 1e300
"""The score of a move that removes no overflow."""


@kernel
def greedy(board: Board, keys: Keys, tolerance: float, noise: float, discards_log: bool, trials: int) -> int:
    """Add copies until no stage exceeds the budget, no move lowers the overflow, or the trials are spent.

    Args:
        tolerance: As in the module docstring.
        noise: The maximum relative increase of scores by random noise.
        discards_log: Whether to discard the log. This is possible if nothing will be undone.
        trials: The maximum number of evaluations of moves.

    Returns:
        The number of trials left.
    """
    _push_all(board, keys)
    has_moved = False
    while board[OVERFLOW_BYTES] > 0 and board[IS_FULL] == 0 and trials > 0:
        if board[HEAP_LENGTH] == 0:
            if not has_moved:
                break
            _push_all(board, keys)
            has_moved = False
            continue
        storage, stage = board[board[HEAP_STORAGE]], board[board[HEAP_STAGE]]
        version = board[board[HEAP_VERSION]]
        pop(board, keys)
        operation = board[board[MAKERS] + storage]
        is_valid = version == board[board[VALID_VERSION] + storage]
        if not is_valid or contains(board, operation, stage) or not _is_held(board, storage, stage):
            continue
        trials -= 1
        score, mode = evaluate_move(board, stage, operation)
        if score >= NO_GAIN:
            continue
        if noise > 0.0:
            score *= 1.0 + noise * draw(board, 1024) / 1024.0
        if board[HEAP_LENGTH] > 0 and score > (1.0 + tolerance) * keys[0]:
            push(board, keys, score, storage, stage, version)
            continue
        mark = board[LOG_LENGTH]
        apply_move(board, stage, operation, mode)
        _push_affected(board, keys, mark)
        if discards_log:
            board[LOG_LENGTH] = 0
        has_moved = True
    return trials


@kernel
def evaluate_move(board: Board, stage: int, operation: int) -> tuple[float, int]:
    """Return the best score of the move and the mode with this score. The state does not change."""
    best_score, best_mode = NO_GAIN, HOLD
    for mode in (HOLD, RECOMPUTE, CHEAPER):
        mark, overflow, cost = board[LOG_LENGTH], board[OVERFLOW_BYTES], board[EXTRA_COST]
        has_dead_operand = apply_move(board, stage, operation, mode)
        removed, added_cost = overflow - board[OVERFLOW_BYTES], board[EXTRA_COST] - cost
        undo(board, mark)
        if removed > 0 and added_cost / removed < best_score:
            best_score, best_mode = added_cost / removed, mode
        if mode == HOLD and not has_dead_operand:
            break
    return best_score, best_mode


@kernel
def _is_held(board: Board, storage: int, stage: int) -> bool:
    """Return whether a storage is live at the start of a stage, and is used in this stage or later."""
    run = count_below(board, board[board[MAKERS] + storage], stage) - 1
    return run >= 0 and entry(board, board[LAST_USE_ROWS] + storage, run) >= stage


@kernel
def _push_all(board: Board, keys: Keys) -> None:
    """Push the candidates of all storages onto an empty heap."""
    board[HEAP_LENGTH] = 0
    for storage in range(length_of(board, STORAGE_BYTES)):
        _push_candidates(board, keys, storage)


@kernel
def _push_affected(board: Board, keys: Keys, mark: int) -> None:
    """Push the candidates of all storages that copies in the log, from entry `mark` on, read or make."""
    log = board[LOG]
    for position in range(log + mark, log + board[LOG_LENGTH], 3):
        if board[position] != RISE:
            operation = board[position + 2]
            for storage in results_of(board, operation):
                _push_candidates(board, keys, storage)
            for operand in operands_at(board, operation):
                _push_candidates(board, keys, board[operand])


@kernel
def _push_candidates(board: Board, keys: Keys, storage: int) -> None:
    """Push the candidates of a storage onto the heap, and invalidate its older candidates."""
    board[board[VALID_VERSION] + storage] += 1
    maker = board[board[MAKERS] + storage]
    if board[board[MAY_RUN_AGAIN] + maker] == 0 or board[board[STORAGE_BYTES] + storage] == 0:
        return
    accesses, earliest = board[SCRATCH], board[EARLIEST_STAGE]
    end = accesses + _list_accesses(board, storage)
    position, previous = accesses + 1, board[accesses] // 2
    while position < end:
        stage, makes = board[position] // 2, board[position] % 2 == 0
        while position < end and board[position] // 2 == stage:
            position += 1
        if not makes and stage > previous and stage >= earliest:
            _push_candidate(board, keys, storage, previous, stage)
        previous = stage
    if board[board[IS_OUTPUT] + storage] == 1 and previous < board[OPERATION_COUNT]:
        _push_candidate(board, keys, storage, previous, board[OPERATION_COUNT])


@kernel
def _list_accesses(board: Board, storage: int) -> int:
    """Write the accesses of the storage to SCRATCH in ascending order. The entry is 2 * stage for a stage that makes
    the storage, and 2 * stage + 1 for a stage that uses it. Returns the number of accesses."""
    starts, lengths = board[ROW_START], board[ROW_LENGTH]
    maker, accesses = board[board[MAKERS] + storage], board[SCRATCH]
    position, end = accesses, accesses + length_of(board, SCRATCH)
    runs = board[starts + maker]
    for run in range(runs, runs + board[lengths + maker]):
        board[position] = 2 * board[run]
        position += 1
    for use in uses_at(board, storage):
        user = board[use]
        runs = board[starts + user]
        for run in range(runs, runs + min(board[lengths + user], end - position)):
            board[position] = 2 * board[run] + 1
            position += 1
    sort_entries(board, accesses, position - accesses)
    return position - accesses


@kernel
def _push_candidate(board: Board, keys: Keys, storage: int, previous: int, stage: int) -> None:
    """Push the candidate that recomputes a storage in `stage`, after its access in the stage `previous`, if this can
    lower the overflow. Its key is its cost per removed byte, assuming that no operands must be kept live longer."""
    last = stage if board[board[ROW_LENGTH] + board[STAGE_ROWS] + stage] > 0 else stage - 1
    if last <= previous:
        return
    overflow, over_weight = overflow_in(board, previous + 1, last)
    if overflow <= 0 or board[HEAP_LENGTH] >= len(keys):
        return
    maker, freed, sizes = board[board[MAKERS] + storage], 0, board[STORAGE_BYTES]
    for result in results_of(board, maker):
        freed += board[sizes + result]
    key = board[board[COSTS] + maker] / min(freed * over_weight, overflow)
    push(board, keys, key, storage, stage, board[board[VALID_VERSION] + storage])
