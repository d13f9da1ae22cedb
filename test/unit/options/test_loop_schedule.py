"""Loop schedules: parsed once, and printed in the form in which users give them."""

from __future__ import annotations

import pytest

from recompute.options.loop_schedule import (
    SMALLEST_STACKS,
    UNCUT,
    BadSchedule,
    Loops,
    LoopSchedule,
    demand_proof,
    schedule_of,
)
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import BadSelection

SCHEDULES: list[tuple[Loops, LoopSchedule]] = [
    (True, SMALLEST_STACKS),
    (False, UNCUT),
    ("keep(33.3%)", LoopSchedule("cut", keep=33.3 / 100)),
    ("keep(2048B)", LoopSchedule("cut", keep=2048)),
    ("periodic(8)", LoopSchedule("periodic", every=8)),
    ("periodic(auto)", LoopSchedule("periodic")),
    ("binomial(4)", LoopSchedule("binomial", slots=4)),
    ("binomial(2048B)", LoopSchedule("binomial", bytes=2048)),
]


@pytest.mark.parametrize(("option", "schedule"), SCHEDULES)
def test_schedule_prints_as_the_given_option(option: Loops, schedule: LoopSchedule) -> None:
    assert schedule_of(option) == schedule and schedule.option == option
    assert schedule_of(schedule) is schedule


def test_pass_options_are_parsed_into_schedules() -> None:
    assert SMALLEST_STACKS.pass_option == "loops=true"
    assert LoopSchedule("periodic").pass_option == 'loops="periodic(auto)"'


def test_limit_on_stacks_is_parsed() -> None:
    assert LoopSchedule("cut", keep=0.5).kept_limit(1001) == 500
    assert LoopSchedule("cut", keep=64).kept_limit(1001) == 64
    assert SMALLEST_STACKS.kept_limit(1001) is None


@pytest.mark.parametrize("option", ["keep(min)", "keep(-1)", "keep()", "binomial(50%)", "periodic(0)", "twice"])
def test_invalid_loops_are_rejected_with_or_without_proof(option: str) -> None:
    for proof in (True, False):
        with pytest.raises(BadSchedule, match="loops must be true, false"):
            RecomputeOptions(loops=option, proof=proof)


def test_error_names_the_kind_of_the_unproved_schedule() -> None:
    with pytest.raises(
        BadSelection, match=r"loops=binomial\(…\) cannot be proved, because no rule covers it: disable the proof"
    ):
        demand_proof(schedule_of("binomial(1GiB)"))
