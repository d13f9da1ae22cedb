"""Tables of sweeps: rows are printed as they are found, improved rows again, and stopped searches are marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.provenance import Provenance
from recompute.planning.solvers.result import Result, refuse_after_end
from recompute.support.interrupts import Interrupt
from recompute.support.progress import ProgressLine
from recompute.test.unit.tools.plan.test_planned_step import STEP
from recompute.tools.plan.plan_arguments import SWEEP_SECONDS, parse_plan_arguments
from recompute.tools.plan.sweep_table import IMPROVED, SweepTable
from recompute.tools.recompute_plan import main

ROW = "0.5000        0.5000        {percent:<10} 0.0000     {gap:<8} greedy"


def graph() -> Problem:
    return read_graph('{"nodes": [{"id": 1, "kind": "op", "deps": [], "bytes": 4, "cost": 1}]}', "graph.json")


def result(percent: float, finished: bool = True) -> Result:
    return Result(graph(), frozenset(), 50, 50, 1, percent, 0.0, "", Provenance("greedy"), 1.0, "plain", finished)


def opened_table(interrupt: Interrupt | None = None, seconds: float | None = 30.0) -> SweepTable:
    table = SweepTable(ProgressLine("sweep"), interrupt or Interrupt(), seconds)
    table.open("title", 100)
    return table


def test_each_row_is_printed_when_it_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    table = opened_table()
    title, header = capsys.readouterr().out.splitlines()
    assert title == "title" and header.split()[:2] == ["budget", "peak"]
    table.report(50, result(2.0))
    assert capsys.readouterr().out.splitlines() == [ROW.format(percent="2.0000", gap="2.0000")]
    table.close([50], [result(2.0)])
    assert capsys.readouterr().out == ""


def test_improved_row_is_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    table = opened_table()
    table.report(50, result(2.0))
    capsys.readouterr()
    table.close([50], [result(1.5)])
    assert capsys.readouterr().out.splitlines() == [IMPROVED, ROW.format(percent="1.5000", gap="1.5000")]


def test_stopped_row_names_the_time_limit(capsys: pytest.CaptureFixture[str]) -> None:
    table = opened_table()
    table.report(50, result(2.0, finished=False))
    assert capsys.readouterr().out.endswith("greedy; stopped at the time limit of 30 s: the best plan so far\n")
    table.report(60, refuse_after_end(graph()))
    assert " stopped at the time limit of 30 s: the search ended before it found a plan" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", [None, 30.0])
def test_interrupted_row_names_no_time_limit(seconds: float | None, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(Interrupt):
        def is_set(self) -> bool:
            return True

    opened_table(Interrupted(), seconds).report(50, result(2.0, finished=False))
    assert capsys.readouterr().out.endswith("greedy; stopped: the best plan so far\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], SWEEP_SECONDS), (["--time-limit", "5"], 5.0), (["--effort", "full"], None),
     (["--effort", "long", "--time-limit", "0"], 0.0)],
)  # fmt: skip
def test_default_time_limit_applies_without_effort(arguments: list[str], expected: float | None) -> None:
    assert parse_plan_arguments(["step.mlir", "--sweep", "3", *arguments]).sweep_seconds == expected


def test_time_limit_ends_each_budget_of_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = tmp_path / "step.mlir"
    step.write_text(STEP)
    assert main([str(step), "--sweep", "5", "-q", "--time-limit", "0"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:7]
    assert [row.split()[0] for row in rows] == ["0.2000", "0.4000", "0.6000", "0.8000", "1.0000"]
    assert "stopped at the time limit of 0 s" in rows[3] and "stopped" not in rows[4]
    # A budget below the proven minimum is refused without a search.
    assert rows[0].endswith("no plan needs less than 12.0 KiB (12288 bytes)") and "stopped" not in rows[0]
