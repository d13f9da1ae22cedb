"""`--pass-statistics` prints the timed parts in their order, and costs nothing if it is off."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest

from recompute.support.timing import TimedPart, part, time_parts
from recompute.test.unit.tools.test_recompute_opt import EXAMPLE
from recompute.tools.instrumentation.timings import times
from recompute.tools.recompute_opt import main


@dataclass(frozen=True)
class Frozen(Exception):
    """An exception that cannot be modified while it propagates."""

    word: str


def _names(actual: TimedPart) -> object:
    return {name: _names(inner) for name, inner in actual.parts.items()}


def test_parts_nest_in_start_order():
    @part("work")
    def work(depth: int) -> int:
        with part("inner"):
            return depth

    with time_parts() as whole:
        work(1)
        with part("other"):
            work(2)
        work(3)
    assert _names(whole) == {"work": {"inner": {}}, "other": {"work": {"inner": {}}}}
    assert list(whole.parts) == ["work", "other"]
    assert whole.seconds >= sum(value.seconds for value in whole.parts.values()) > 0


def test_recursive_function_is_a_part_of_itself():
    @part("down")
    def down(depth: int) -> None:
        if depth:
            down(depth - 1)

    with time_parts() as whole:
        down(1)
    assert _names(whole) == {"down": {"down": {}}}


def test_failing_part_is_counted_and_ended():
    with time_parts() as whole:
        with pytest.raises(Frozen), part("fails"):
            raise Frozen("no")
        with part("goes on"):
            pass
    assert list(whole.parts) == ["fails", "goes on"]


def test_parts_without_timer_are_not_recorded():
    with part("alone"):
        pass
    with time_parts() as whole:
        pass
    assert whole.parts == {}


def test_statistics_are_printed_as_a_table():
    whole = TimedPart("total", 2.0, {"a": TimedPart("a", 1.5, {"b": TimedPart("b", 0.5)}), "c": TimedPart("c", 0.5)})
    assert times(whole, "text").splitlines() == [
        "  seconds  percent  part",
        "   2.0000   100.0%  total",
        "   1.5000    75.0%    a",
        "   0.5000    25.0%      b",
        "   1.0000    50.0%      rest",
        "   0.5000    25.0%    c",
    ]
    assert json.loads(times(whole, "json").splitlines()[2]) == {"part": "total/a/b", "seconds": 0.5, "percent": 25.0}


def test_pass_reports_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(EXAMPLE), "-p", "recompute"]) == 0
    plain = capsys.readouterr()
    assert main([str(EXAMPLE), "-p", "recompute", "--pass-statistics=json"]) == 0
    output = capsys.readouterr()
    assert output.out == plain.out
    rows = [json.loads(line) for line in output.err.splitlines() if line.startswith("{")]
    parts = [row["part"] for row in rows if "part" in row]
    known = [actual for actual in parts if not actual.endswith("rest")]
    below = [item.removeprefix("total/recompute/") for item in known if item.startswith("total/recompute/")]
    assert [item for item in known if item.count("/") < 2] == [
        "total",
        *("total/parse", "total/verify", "total/recompute", "total/prove", "total/print"),
    ]
    assert below == [
        *("verify", "prepare", "prepare/inline", "phases", "graph", "plan", "plan/decide"),
        *("peaks", "clone", "cse", "lower", "stagger", "calls"),
    ]


@pytest.mark.parametrize(
    ("options", "reports"),
    [
        (["--pass-statistics"], 1),
        (["-mlir-timing", "-mlir-pass-statistics"], 1),
        (["--timing=list", "--pass-statistics"], 1),
        (["--timing=json", "--pass-statistics=json"], 1),
        (["--timing=json", "--pass-statistics"], 2),
    ],
)
def test_times_are_printed_once_in_each_form(
    options: list[str], reports: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(EXAMPLE), "-p", "recompute-phase", *options]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert sum("operations, 0 copies" in line or "copies_after" in line for line in lines) == 1
    assert len([line for line in lines if re.search(r'[ "/]prove("|$)', line)]) == reports
