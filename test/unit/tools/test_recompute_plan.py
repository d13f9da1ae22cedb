"""The `recompute-plan` command: what it prints and writes, independently checked, and clear errors for invalid
input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from recompute.support.interrupts import Interrupt
from recompute.support.units import readable_bytes
from recompute.test.benchmark_scripts import script
from recompute.tools.recompute_plan import main

BRIEFLY = ("--effort", "brief")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    planner_graphs: Any = script("solvers.planner_graphs")
    path = tmp_path_factory.mktemp("graph") / "unet.json"
    path.write_text(json.dumps(planner_graphs.unet(depth=2, blocks=1).finished()))
    return str(path)


def test_plan_agrees_with_an_independent_count(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, order = tmp_path / "plan.json", tmp_path / "order.txt"
    assert main([graph, "--budget", "0.6", "-o", str(plan), "--sequence", str(order)]) == 0
    captured = capsys.readouterr()
    assert re.fullmatch(
        r"\S+unet.json: 48 operations, 48 storages, plain peak [\d.]+ .iB \(\d+ bytes\)\n"
        r"budget: [\d.]+ .iB \(\d+ bytes\), 0\.\d+ of the plain peak\n"
        r"peak: [\d.]+ .iB \(\d+ bytes\), 0\.\d+ of the plain peak\n"
        r"extra cost: \d+(\.\d+)? %, \d+ copies\n"
        r"lower bound: \d+(\.\d+)? %, proved \(.*\); gap \d+\.\d{4} points\n"
        r"found by: .*; (plain|compiled); \d+\.\d s\n",
        captured.out,
    )
    record = json.loads(plan.read_text())
    assert record["finished"] and record["recompute_copies"] == 1 and record["peak_bytes"] <= record["budget_bytes"]
    assert main([graph, "--budget", "0.6", "--evaluate", str(order), "-q"]) == 0
    checked = capsys.readouterr().out
    assert f"peak: {readable_bytes(record['peak_bytes'])}" in checked and "budget: met" in checked
    assert re.search(r"extra cost: \S+ %", checked)[0] in captured.out  # pyright: ignore[reportOptionalSubscript]
    assert main([graph, "--budget", "0.5", "--evaluate", str(order)]) == 1
    assert "budget: not met" in capsys.readouterr().out
    executions = order.read_text().split()
    assert len(executions) == 48 + len(record["copies"])


def test_order_includes_copies_of_views(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = tmp_path / "order.txt"
    assert main([graph, "--budget", "0.45", "--view-copies", "on", "--sequence", str(order), "-q", *BRIEFLY]) == 0
    message = capsys.readouterr().out
    assert "copy:" in order.read_text() and "copies of views" in message
    assert main([graph, "--budget", "0.45", "--evaluate", str(order)]) == 0
    checked = capsys.readouterr().out
    assert next(line for line in checked.splitlines() if line.startswith("peak")) in message


def test_plan_is_written_to_standard_output(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([graph, "--budget", "70%", "-o", "-", "-q", "--solver", "greedy"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["solver"] == "greedy" and "extra cost" in captured.err


def test_extreme_budgets_are_answered_without_a_plan(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([graph, "--budget", "8GiB", "-q"]) == 0
    assert "not below the plain peak: no recomputation is needed" in capsys.readouterr().out
    assert main([graph, "--budget", "1MB", "-q"]) == 1
    refused = capsys.readouterr().out
    assert re.search(
        r"refused: no plan needs less than [\d.]+ .iB \(\d+ bytes\)\nproven minimum: .*, determined by\n  operation",
        refused,
    )
    assert main([graph, "--budget", "min", "-q", *BRIEFLY]) == 0
    assert "lower bound" in capsys.readouterr().out


def test_sweep_prints_a_curve(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([graph, "--sweep", "5", "--solver", "greedy", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        len(lines) == 7 and lines[1].startswith("budget") and lines[-1].startswith("1.0000        1.0000        0.0000")
    )


def test_curve_includes_given_orders_and_points(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The curve includes a given order, and a point of a list with the costs of the graph."""
    order, listed, curve = tmp_path / "greedy.txt", tmp_path / "theirs.json", tmp_path / "curve.json"
    assert main([graph, "--budget", "0.6", "--solver", "greedy", "--sequence", str(order), "-q"]) == 0
    match = re.search(r"peak: .* \((\d+) bytes\).*\nextra cost: (\S+) %", capsys.readouterr().out)
    assert match is not None
    listed.write_text(json.dumps([{"tag": "nothing", "peak_bytes": 7, "rec_cost": 0}]))
    beside = ["--beside", str(order), "--beside", str(listed), "--curve", str(curve)]
    assert main([graph, "--sweep", "5", "--solver", "greedy", *beside]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1].split() == ["0.0000", "0.0000", "nothing"]
    assert captured.err.count("\n") <= 1
    (data,) = json.loads(curve.read_text())
    theirs, nothing = data["markers"]
    assert (theirs["name"], theirs["peak_bytes"], nothing["percent"]) == ("greedy", int(match[1]), 0)
    assert theirs["percent"] == pytest.approx(float(match[2]), rel=5e-3)
    assert len(data["points"]) + len(data["refused"]) == 5
    own = data["points"][2 - len(data["refused"])]
    assert own["peak_bytes"] <= theirs["peak_bytes"] and own["percent"] == pytest.approx(theirs["percent"])


def test_invalid_points_are_rejected(graph: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "theirs.json"
    for text, reason in (
        ("[1, ]", ":1:5: error: the file is not valid JSON"),
        ('[{"tag": "x"}]', ":1:1: error: point 0: peak_bytes must be a number from 0 to 2**53, not None"),
    ):
        path.write_text(text)
        assert main([graph, "--sweep", "2", "-q", "--beside", str(path)]) == 2
        assert reason in capsys.readouterr().err


def test_fit_verdict_is_printed(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([graph, "--fit", "9GiB", "-q"]) == 0
    assert capsys.readouterr().out.startswith("yes, as it is: the graph fits in 9GiB\n")
    assert main([graph, "--fit", "60%", "-q", "--solver", "greedy"]) == 0
    assert re.match(r"yes, with recomputation: the graph fits in 60% at \d+\.\d+ % extra work", capsys.readouterr().out)
    assert main([graph, "--fit", "1MB", "-q"]) == 1
    assert capsys.readouterr().out.startswith("no: the graph does not fit in 1MB\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--sweep", "2", "--curve", "curve.pdf"], "--curve curve.pdf: unknown suffix '.pdf'; expected one of"),
        (["--budget", "3 apples"], "recompute-plan: error: invalid budget '3 apples': "),
        (["--budget", ""], "recompute-plan: error: invalid budget '': expected bytes ('8GiB'"),
        (["--budget", "1e400"], "invalid budget '1e400': the number is too large"),
        (
            ["--budget", "1.5"],
            "invalid budget '1.5': a share of the peak of the original step must be at most 1, and bytes must be whole",
        ),
        (["--budget", "0.5", "--memory-model", "xla"], "--memory-model applies only to steps in MLIR"),
        (["--budget", "0.5", "--evaluate", "{graph}"], "unet.json:1:1: error: "),
        (["--sweep", "0"], "recompute-plan: error: --sweep must be at least 1, not 0"),
        (["--budget", "0.5", "--solver", "chen", "--view-copies", "on"], "--view-copies on requires --solver auto"),
        (["--budget", "0.8", "-o", "/nowhere/plan.json"], "/nowhere/plan.json: error: cannot write the file"),
    ],
)
def test_invalid_input_gives_one_error_line(
    arguments: list[str], reason: str, graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([graph, "-q", *(argument.replace("{graph}", graph) for argument in arguments)]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err and captured.err.count("\n") == 1 and captured.out == ""


def test_invalid_graph_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"nodes": [1, ]}')
    assert main([str(path), "--budget", "0.5"]) == 2
    assert f"{path}:1:15: error: the graph is not valid JSON" in capsys.readouterr().err
    assert main([str(tmp_path / "none.json"), "--budget", "0.5"]) == 2
    assert "none.json: error: cannot read the file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--budget", "0.5", "--sweep", "3"]])
def test_invalid_usage_exits_with_2(arguments: list[str], graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([graph, *arguments])
    assert left.value.code == 2 and "give exactly one of --budget, --sweep and --fit" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_invalid_time_limit_is_rejected(seconds: str, graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([graph, "--budget", "0.5", "--time-limit", seconds])
    assert left.value.code == 2 and f"--time-limit must be at least 0 seconds, not {seconds}" in capsys.readouterr().err


def test_exhausted_time_limit_is_reported(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([graph, "--budget", "0.5", "--time-limit", "0", "-q"]) == 3
    assert (
        "refused: the search ended before it found a plan, but it is not proved that none exists"
        in capsys.readouterr().out
    )


def test_graph_without_bytes_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"nodes": [{"id": 1, "kind": "op", "deps": [], "bytes": 0, "cost": 1}]}')
    assert main([str(path), "--budget", "0.5"]) == 2
    assert f"{path}: error: the plain peak is 0 bytes: there is nothing to plan" in capsys.readouterr().err


def test_first_interrupt_sets_flag_and_second_raises(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.is_set()
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_set() and "the best result so far follows" in capsys.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_search_outside_the_main_thread_sets_no_signals() -> None:
    items = list[bool]()

    def elsewhere() -> None:
        with Interrupt() as interrupt:
            items.append(interrupt.is_set())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert items == [False]


def test_closed_output_pipe_is_tolerated(graph: str) -> None:
    call = f"sys.exit(main([{graph!r}, '--budget', '9GiB', '-q']))"
    program = f"import sys\nfrom recompute.tools.recompute_plan import main\n{call}"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        assert tool.stdout is not None and tool.stderr is not None
        tool.stdout.close()
        assert tool.stderr.read() == b""
