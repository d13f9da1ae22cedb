"""Ruin and recreate: remove some copies, repair the plan with the greedy search, run reverse delete, and accept cheaper
results.

The kind of each ruin is drawn at random. It may remove, for example, the copies in a window of stages or of operations,
or around a stage whose peak is near the budget. In half of the rounds, the bytes in random windows of stages have
larger weights. In some rounds, random copies are added first. Results are accepted as in simulated annealing (Schrimpf
et al., "Record breaking optimization results using the ruin and recreate principle", 2000).
"""

from __future__ import annotations

from .board import (
    BEST_COPIES,
    BEST_COST,
    BEST_COUNT,
    BUDGET_BYTES,
    EARLIEST_STAGE,
    EXTRA_COST,
    IS_FULL,
    LAST_USE_ROWS,
    LOG,
    LOG_LENGTH,
    MAKERS,
    MAY_RUN_AGAIN,
    MINUS_LOG_SHARES,
    OPERATION_COUNT,
    ORDERED_COPIES,
    OVERFLOW_BYTES,
    STORAGE_BYTES,
    Board,
    Keys,
    length_of,
    results_of,
    uses_at,
)
from .compiled import kernel
from .compound_moves import RECOMPUTE, apply_move
from .copy_lists import list_copies
from .copy_moves import remove_copy, settle, undo
from .greedy import greedy
from .heap import draw
from .reverse_delete import reverse_delete
from .rows import contains, count_below, entry
from .sqrt_blocks import peak_of_stage, set_weight

HOTTEST, COLDEST = 0.003, 6e-05
"""The first and the last temperature, as shares of the cost of the step."""
MAX_TRIALS = 3000
"""Maximum number of greedy-search trials in one round. It limits the time of a round. Beyond it, the round ends with
the copies so far."""
MAX_RANDOM_REMOVALS = 60
"""Maximum number of copies that are removed at random in one round. It limits the work of the subsequent greedy
search."""
STAGES, OPERATIONS, AT_RANDOM, STAGES_AND_OPERATIONS, STAGE_OR_OPERATION, TWO_WINDOWS, AT_BUDGET, NEAR_BUDGET = range(8)
"""The kinds of ruin, by the copies that are removed. STAGES: those in a window of stages. OPERATIONS: those of a window
of operations. AT_RANDOM: a random share. STAGES_AND_OPERATIONS: those in both windows. STAGE_OR_OPERATION: those in the
stage, or of the operation, of one copy. TWO_WINDOWS: those of two windows of operations. AT_BUDGET: those near a stage
close to the budget, or live in it. NEAR_BUDGET: those near such a stage."""


@kernel
def record_best(board: Board) -> None:
    """Record the copies of the state as the best copies."""
    board[BEST_COST] = board[EXTRA_COST]
    board[BEST_COUNT] = list_copies(board, BEST_COPIES)


@kernel
def anneal(board: Board, keys: Keys, first: int, last: int, total: int, step_cost: float) -> int:
    """Run the rounds from `first` to `last` (exclusive) of an annealing of `total` rounds.

    Before the call, no stage may be pending. On return, the state contains the copies of the last round, and
    `BEST_COPIES` contains the best copies.

    Args:
        step_cost: The cost of the plain step.

    Returns:
        The number of improvements of the best copies.
    """
    improvements = 0
    for round_number in range(first, last):
        temperature = step_cost * (HOTTEST + (COLDEST - HOTTEST) * round_number / total)
        board[LOG_LENGTH] = 0
        board[IS_FULL] = 0
        overflow, cost = board[OVERFLOW_BYTES], board[EXTRA_COST]
        _run_round(board, keys)
        if board[OVERFLOW_BYTES] < overflow or (
            board[OVERFLOW_BYTES] == overflow and board[EXTRA_COST] - cost <= _accepted_rise(board, temperature)
        ):
            is_cheapest = board[BEST_COST] < 0 or board[EXTRA_COST] < board[BEST_COST]
            if board[OVERFLOW_BYTES] == 0 and is_cheapest:
                record_best(board)
                improvements += 1
        else:
            undo(board, 0)
    return improvements


@kernel
def _accepted_rise(board: Board, temperature: float) -> float:
    """Return the largest increase in cost that is accepted: -temperature * log(random number)."""
    return temperature * board[board[MINUS_LOG_SHARES] + draw(board, length_of(board, MINUS_LOG_SHARES))] / 1e6


@kernel
def _run_round(board: Board, keys: Keys) -> None:
    """Run one round: a ruin, the greedy search and reverse delete. Some rounds also add random copies and set stage
    weights."""
    n = board[OPERATION_COUNT]
    _ruin(board)
    settle(board)
    if draw(board, 10) < 4:
        for _ in range(1 + draw(board, 2)):
            _add_random_copy(board)
    is_weighted = draw(board, 2) == 1
    if is_weighted:
        for _ in range(1 + draw(board, 4)):
            start = draw(board, n + 1)
            set_weight(board, start, min(n, start + draw(board, n // 4 + 1)), 2 + draw(board, 8))
    kind = draw(board, 3)
    noise = 0.0 if kind == 0 else 0.3 if kind == 1 else 1.0
    greedy(board, keys, 0.0, noise, False, MAX_TRIALS)
    if is_weighted:
        set_weight(board, 0, n, 1)
    reverse_delete(board, False, 3)


@kernel
def _ruin(board: Board) -> None:
    """Remove copies around a random copy, with a random kind of ruin."""
    kind = draw(board, 8)
    n = board[OPERATION_COUNT]
    ordered = board[ORDERED_COPIES]
    count = list_copies(board, ORDERED_COPIES)
    if count == 0:
        return
    center_stage, center_operation = divmod(board[ordered + draw(board, count)], n + 1)
    width = 1 + draw(board, max(2, n // 6))
    first_stage = center_stage - draw(board, width + 1)
    first_operation = center_operation - draw(board, width + 1)
    other_first = draw(board, n)
    per_mille = 20 + draw(board, 180)
    tight_stage = _stage_at_budget(board)
    reach = 1 + width // 8
    removed = 0
    for position in range(ordered, ordered + count):
        stage, operation = divmod(board[position], n + 1)
        is_in_stages = first_stage <= stage <= first_stage + width
        is_in_operations = first_operation <= operation <= first_operation + width
        if kind == STAGES:
            is_ruined = is_in_stages
        elif kind == OPERATIONS:
            is_ruined = is_in_operations
        elif kind == AT_RANDOM:
            is_ruined = removed < MAX_RANDOM_REMOVALS and draw(board, 1000) < per_mille
        elif kind == STAGES_AND_OPERATIONS:
            is_ruined = is_in_stages and is_in_operations
        elif kind == STAGE_OR_OPERATION:
            is_ruined = stage == center_stage or operation == center_operation
        elif kind == TWO_WINDOWS:
            is_ruined = is_in_operations or other_first <= operation <= other_first + width
        else:
            is_near = tight_stage - reach <= stage <= tight_stage + reach
            is_ruined = is_near or (kind == AT_BUDGET and _is_live_in(board, stage, operation, tight_stage))
        if is_ruined and board[LOG_LENGTH] * 2 < length_of(board, LOG):
            remove_copy(board, stage, operation)
            removed += 1


@kernel
def _stage_at_budget(board: Board) -> int:
    """Return the first stage with a peak of at least 99 % of the budget, searching cyclically from a random stage. If
    there is no such stage, return the random stage."""
    n = board[OPERATION_COUNT]
    first = draw(board, board[OPERATION_COUNT] + 1)
    near_budget = board[BUDGET_BYTES] - board[BUDGET_BYTES] // 100
    for step in range(n + 1):
        stage = (first + step) % (n + 1)
        if peak_of_stage(board, stage) >= near_budget:
            return stage
    return first


@kernel
def _is_live_in(board: Board, copy_stage: int, operation: int, stage: int) -> bool:
    """Return whether a result of the operation's copy in `copy_stage` is live in `stage`."""
    if copy_stage > stage:
        return False
    run = count_below(board, operation, copy_stage)
    for storage in results_of(board, operation):
        last_use = entry(board, board[LAST_USE_ROWS] + storage, run)
        if last_use >= stage:
            return True
    return False


@kernel
def _add_random_copy(board: Board) -> None:
    """Copy the maker of a random storage before a random use of this storage, and recompute the dead operands of the
    maker."""
    storage = draw(board, length_of(board, STORAGE_BYTES))
    operation = board[board[MAKERS] + storage]
    uses = uses_at(board, storage)
    if board[board[MAY_RUN_AGAIN] + operation] == 0 or len(uses) == 0:
        return
    stage = board[uses.start + draw(board, len(uses))]
    if stage >= board[EARLIEST_STAGE] and not contains(board, operation, stage):
        apply_move(board, stage, operation, RECOMPUTE)
