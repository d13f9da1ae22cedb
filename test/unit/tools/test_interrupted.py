"""After Ctrl-C in the search, the best plan so far is printed and written, with the exit code of a plan."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recompute.test.benchmark_scripts import script
from recompute.tools.plan import planned_graph
from recompute.tools.recompute_plan import main

PROGRAM = """\
import logging
import sys

from recompute.tools.recompute_plan import main

logging.basicConfig(level=logging.DEBUG)
sys.exit(main())
"""
"""A process that logs each phase of the search, without waiting for the progress line."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a graph file whose search takes minutes."""
    planner_graphs: Any = script("solvers.planner_graphs")
    path = tmp_path_factory.mktemp("graph") / "unet.json"
    path.write_text(json.dumps(planner_graphs.unet().finished()))
    return str(path)


def interrupted(arguments: list[str], after: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of recompute-plan, interrupted once it prints `after`."""
    call = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None and tool.stderr is not None
        message = list[str]()
        for line in tool.stderr:
            message.append(line)
            if re.search(after, line):
                tool.send_signal(signal.SIGINT)
                break
        out, rest = tool.communicate(timeout=60)
    return tool.returncode, out, "".join(message) + rest


def test_interrupted_search_prints_the_best_plan(graph: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    code, out, output = interrupted([graph, "--budget", "0.3", "-o", str(plan)], after="extra cost")
    assert (code, output.count("interrupted: the best result so far follows"), "Traceback" in output) == (0, 1, False)
    assert "; stopped: the best plan so far" in out
    record = json.loads(plan.read_text())
    assert not record["finished"] and record["copies"] and record["peak_bytes"] <= record["budget_bytes"]


def test_interrupted_sweep_reports_best_so_far(graph: str, tmp_path: Path) -> None:
    curve = tmp_path / "curve.json"
    code, out, output = interrupted([graph, "--sweep", "10", "--curve", str(curve)], after="extra cost")
    assert (code, "Traceback" in output) == (0, False)
    started = list(dict.fromkeys(map(int, re.findall(r"budget (\d+) of 10", output))))
    assert started == list(range(1, len(started) + 1)) and len(started) < 10
    rows = out.splitlines()[2:]
    assert len(rows) == 10 and all(row.endswith("stopped: the best plan so far") for row in rows[started[-1] - 1 :])
    points = json.loads(curve.read_text())[0]["points"]
    assert len(points) == 10 - started[-1] + 1 and not any(point["finished"] for point in points)


def test_rows_of_a_sweep_are_printed_while_it_runs(graph: str) -> None:
    call = [sys.executable, "-m", "recompute.tools.recompute_plan", graph, "--sweep", "10", "-q"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        first = [tool.stdout.readline() for _ in range(3)]
        assert tool.poll() is None, "the search for the larger budgets still runs"
        tool.send_signal(signal.SIGINT)
        # `communicate` would lose the rows that `readline` has already read into its buffer.
        rest = tool.stdout.read()
    assert first[1].split()[0] == "budget" and first[2].startswith("0.1000 ")
    rows = [line for line in (first[2] + rest).splitlines() if re.match(r"[01]\.", line)]
    assert [row.split()[0] for row in rows] == [f"{at / 10:.4f}" for at in range(1, 11)]


def test_second_interrupt_exits_without_output(
    graph: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted_at_once(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planned_graph, "read_graph", interrupted_at_once)
    assert main([graph, "--budget", "0.5"]) == 130
    assert capsys.readouterr() == ("", "recompute-plan: interrupted: no file is written\n")
