"""The cost of moves between device and host, and the time that computation waits for them."""

from __future__ import annotations

from recompute.planning.host_moves import NO_MOVES, Moves
from recompute.support.units import PICOSECONDS

SECOND = int(PICOSECONDS)
MOVES = Moves(values=2, bytes_to_host=300, bytes_from_host=500)


def test_each_fetch_is_charged_for_both_directions() -> None:
    assert MOVES.cost(speed=100) == 10 * SECOND and NO_MOVES.cost(speed=100) == 0


def test_transfers_overlap_with_the_computation_of_their_pass() -> None:
    assert MOVES.waiting_time(100, forward=SECOND, backward=2 * SECOND) == (2 + 3) * SECOND
    assert MOVES.waiting_time(100, forward=9 * SECOND, backward=2 * SECOND) == 3 * SECOND


def test_free_transfers_cost_nothing() -> None:
    assert MOVES.cost(speed=0) == MOVES.waiting_time(0, forward=0, backward=0) == 0
