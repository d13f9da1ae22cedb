"""Allocate the board of the local search (`kernels/board.py`) for a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernels.board import (
    BEST_COPIES,
    BLOCK,
    BLOCK_ADDED,
    COSTS,
    DIRTY_BLOCKS,
    EARLIEST_STAGE,
    FIRST_PART,
    FREE_PLACES,
    HEADER,
    HEAP_STAGE,
    HEAP_STORAGE,
    HEAP_VERSION,
    INNER_BYTES,
    IS_OUTPUT,
    IS_PENDING,
    LAST_USE_ROWS,
    LOG,
    MAKERS,
    MAY_RUN_AGAIN,
    MINUS_LOG_SHARES,
    MOVE_OPERATIONS,
    OPERAND_START,
    OPERANDS,
    OPERATION_COUNT,
    OPERATION_STAMP,
    ORDERED_COPIES,
    PENDING_STAGES,
    RESULT_START,
    ROW_CAPACITY,
    ROW_LENGTH,
    ROW_POOL,
    ROW_START,
    SCRATCH,
    SIZE_CLASSES,
    STAGE_PEAK,
    STAGE_RISE,
    STAGE_ROWS,
    STAGE_WEIGHT,
    STORAGE_BYTES,
    STORAGE_STAMP,
    USE_START,
    USES,
    VALID_VERSION,
    Board,
    Keys,
)
from .problem import Problem


def board_of(problem: Problem, earliest_stage: int | None = None) -> tuple[Board, Keys]:
    """Allocate the board for a problem, and the keys of its heap. Both are arrays, as compiled kernels expect.

    `as_lists` converts them for plain kernels. `reset` (`plain_step.py`) initializes the state.

    Args:
        earliest_stage: The first stage in which copies may run; None for `problem.earliest_stage`.
    """
    parts = {**_problem_parts(problem), **{part: _zeros(count) for part, count in _state_lengths(problem).items()}}
    assert list(parts) == list(range(FIRST_PART, HEADER)), "the parts are in the order of their indices"
    ends = HEADER + 1 + np.cumsum([len(entries) for entries in parts.values()])
    header = np.zeros(HEADER + 1, np.int64)
    header[FIRST_PART:] = [HEADER + 1, *ends]
    n = len(problem)
    header[OPERATION_COUNT], header[STAGE_ROWS], header[LAST_USE_ROWS] = n, n, 2 * n + 1
    header[EARLIEST_STAGE] = problem.earliest_stage if earliest_stage is None else earliest_stage
    # Rows of operands and of uses start at positions on the board.
    parts[OPERAND_START] = parts[OPERAND_START] + header[OPERANDS]
    parts[USE_START] = parts[USE_START] + header[USES]
    board: Any = np.concatenate([header, *parts.values()]).astype(np.int64)
    keys: Any = np.zeros(len(parts[HEAP_STORAGE]), np.float64)
    return board, keys


def _problem_parts(problem: Problem) -> dict[int, Any]:
    """Return the entries of the board parts that describe the problem."""
    minus_log = np.round(-np.log((np.arange(1024) + 0.5) / 1024) * 1e6).astype(np.int64)
    return {
        COSTS: problem.costs,
        INNER_BYTES: problem.inner_bytes,
        MAY_RUN_AGAIN: problem.may_run_again,
        RESULT_START: problem.result_start,
        OPERAND_START: problem.operand_start,
        OPERANDS: problem.operands,
        STORAGE_BYTES: problem.storage_bytes,
        IS_OUTPUT: problem.is_output,
        MAKERS: problem.makers,
        USE_START: problem.use_start,
        USES: problem.uses,
        MINUS_LOG_SHARES: minus_log,
    }


def _state_lengths(problem: Problem) -> dict[int, int]:
    """Return the number of entries of each board part that holds search state.

    The lengths of the pool, the log, the heap and the lists of copies limit the search. They grow linearly with the
    problem.
    """
    operations, storages, reads = len(problem), len(problem.storage_bytes), len(problem.operands)
    stages = operations + 1
    blocks, rows = (operations + BLOCK) // BLOCK + 1, operations + stages + storages
    copies, candidates = 16 * (operations + reads) + 4096, 6 * (reads + storages) + 4096
    return {
        ROW_POOL: 64 * (operations + storages) + min(200 * operations, 200_000) + 4096,
        **dict.fromkeys((ROW_START, ROW_LENGTH, ROW_CAPACITY), rows),
        FREE_PLACES: SIZE_CLASSES,
        STAGE_PEAK: blocks * BLOCK,
        STAGE_RISE: stages,
        STAGE_WEIGHT: blocks * BLOCK,
        **dict.fromkeys((IS_PENDING, PENDING_STAGES), stages),
        **dict.fromkeys(range(BLOCK_ADDED, DIRTY_BLOCKS + 1), blocks),
        LOG: 3 * (24 * operations + min(300 * operations, 300_000) + 4096),
        STORAGE_STAMP: storages,
        OPERATION_STAMP: operations,
        MOVE_OPERATIONS: operations + 64,
        **dict.fromkeys((SCRATCH, ORDERED_COPIES), copies),
        **dict.fromkeys((HEAP_STORAGE, HEAP_STAGE, HEAP_VERSION), candidates),
        VALID_VERSION: storages,
        BEST_COPIES: copies,
    }


def _zeros(count: int) -> Any:
    return np.zeros(count, np.int64)
