"""The tree of live spans agrees with a table of every address at every step."""

from __future__ import annotations

from random import Random

from recompute.analysis.memory.xla.buffer_assignment import OccupiedPlaces

STEPS, PLACES = 13, 9


def test_first_free_place_matches_reference_table():
    random = Random(0)
    result = set[int | None]()
    for _ in range(200):
        taken, table = OccupiedPlaces(STEPS), set[tuple[int, int]]()
        for _ in range(12):
            first = random.randrange(-1, STEPS)
            last = random.randrange(first, STEPS)
            wanted = random.randrange(1 << PLACES)
            free = [
                place
                for place in range(PLACES)
                if wanted >> place & 1 and all((place, step) not in table for step in range(first, last + 1))
            ]
            place = taken.first_free(wanted, first, last)
            assert place == min(free, default=None)
            result.add(place)
            put = random.randrange(PLACES) if place is None else place
            taken.put(put, first, last)
            table.update((put, step) for step in range(first, last + 1))
    assert None in result and len(result) > 4


def test_step_before_the_first_can_be_occupied():
    taken = OccupiedPlaces(1)
    taken.put(0, -1, -1)
    assert taken.first_free(1, -1, 0) is None
    assert taken.first_free(1, 0, 0) == 0


def test_place_that_is_no_candidate_is_not_assigned():
    assert OccupiedPlaces(4).first_free(0, 0, 3) is None
