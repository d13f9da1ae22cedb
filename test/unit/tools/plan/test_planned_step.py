"""recompute-plan on a step in MLIR: the curve over budgets, whether a budget fits, and refusals."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recompute.driver.api import memory, rewrite
from recompute.driver.budgets import fit as fit_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import Infeasible, Result, Stop
from recompute.planning.solvers.solvers_by_name import solve
from recompute.support.progress import ProgressLine
from recompute.test.excerpts import diagnostics_of
from recompute.tools.plan import planned_step
from recompute.tools.plan.plan_arguments import FIT_SECONDS, PLANNED, REFUSED, UNPROVED
from recompute.tools.plan.planned_step import FOR_GRAPHS
from recompute.tools.recompute_plan import argument_parser, main

STEP = """\
func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin"("m.py":3:4))
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp"("m.py":4:4))
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh"("m.py":5:4))
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin"("m.py":6:4))
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp"("m.py":7:4))
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh"("m.py":8:4))
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul"("m.py":7:4))
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul"("m.py":4:4))
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul"("m.py":3:4))
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
"""
KIB = 1024


@pytest.fixture
def step(tmp_path: Path) -> str:
    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    return str(path)


def test_curve_over_budgets_is_printed_and_written(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, data = tmp_path / "curve.svg", tmp_path / "curve.json"
    assert main([step, "--sweep", "6", "--curve", str(data)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("@step: 10 operations, plain peak 20.0 KiB (20480 bytes) of temporaries")
    assert lines[7].startswith("1.0000        1.0000        0.0000")
    # Three values of 4 KiB are alive while %g is computed, whatever runs again.
    assert "proven minimum: 12.0 KiB (12288 bytes) of temporaries, determined by" in lines
    assert "  while stablehlo.multiply %g (m.py:7:4) executes" in lines
    assert re.fullmatch(r"  0.8333: block0 11.\d+ % \(1\)", lines[-2])
    assert captured.err.count("\n") <= 1, "at most one line in the first minute"
    (curve,) = json.loads(data.read_text())
    assert [item["peak_bytes"] for item in curve["points"]] == [12 * KIB, 16 * KIB, 20 * KIB]
    assert curve["points"][1]["recomputed_segments"][0]["values"] == ["stablehlo.sine %a (m.py:3:4)"]
    assert main([step, "--sweep", "2", "-q", "--curve", str(picture)]) == 0
    assert "</svg>" in picture.read_text() and capsys.readouterr().err == ""


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_plot_without_matplotlib_is_refused_early(
    suffix: str, step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([step, "--sweep", "2", "--curve", str(tmp_path / f"curve.{suffix}")]) == 2
    (line,) = diagnostics_of(capsys.readouterr().err)
    assert "curve." in line and "need matplotlib: python -m pip install '.[plot]'" in line
    # HTML needs nothing.
    assert main([step, "--sweep", "2", "-q", "--curve", str(tmp_path / "curve.html")]) == 0


def test_plain_step_fits(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([step, "--fit", "32KiB"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "yes, as it is: the step fits in 32KiB"
    assert second.startswith("  @step needs 32.0 KiB of device memory in program order: temporaries 20.0 KiB, ")


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ("100%", "yes, as it is: the step fits in 100% (20.0 KiB of 20.0 KiB of temporaries)"),
        ("0.8", "yes, with recomputation: the step fits in 0.8 (16.0 KiB of 20.0 KiB of temporaries) at 11."),
        ("50%", "no: the step does not fit in 50% (10.0 KiB of 20.0 KiB of temporaries): the proven minimum"),
    ],
)
def test_share_is_printed_with_its_bytes(
    budget: str, expected: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([step, "--fit", budget])
    assert capsys.readouterr().out.startswith(expected)


def test_reported_fit_matches_written_step(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([step, "--fit", "28KiB"]) == 0
    message = capsys.readouterr().out
    first = re.match(
        r"yes, with recomputation: the step fits in 28KiB at (\S+) % extra work \(at least (\S+) % is proved", message
    )
    assert first is not None and float(first[2]) <= float(first[1]) < 12
    assert "temporaries 20.0 KiB -> 16.0 KiB" in message
    assert "-p 'recompute{budget=28KiB memory-model=order}'" in message
    result = rewrite(STEP, RecomputeOptions(budget="28KiB", memory_model="order"))
    assert memory(result.module)["step"].peak_bytes == 16 * KIB
    # A copy of the sine, of nine operations on 1024 elements.
    assert result.copies == 1 and float(first[1]) == pytest.approx(100 / 9, rel=1e-3)


EFFORTS_ASKED: list[tuple[list[str], Effort]] = [
    ([], Effort.brief()),
    (["--effort", "full"], Effort()),
    (["--effort", "long"], Effort.long()),
]


@pytest.mark.parametrize(("requests", "expected"), EFFORTS_ASKED)
def test_bound_effort_follows_options(
    requests: list[str], expected: Effort, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    efforts = list[Effort]()

    def solve_and_record_effort(problem: Problem, budget: int, best: Incumbent, effort: Effort) -> Result | Infeasible:
        efforts.append(effort)
        return solve(problem, budget, best=best, effort=effort)

    monkeypatch.setattr(fit_module, "solve", solve_and_record_effort)
    assert main([step, "--fit", "28KiB", *requests]) == 0
    assert efforts == [expected]


def test_unreachable_fit_reports_live_values(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([step, "--fit", "23KiB"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "no: the step does not fit in 23KiB: the proven minimum is 24.0 KiB of device memory, "
        "12.0 KiB (12288 bytes) of temporaries, in program order"
    )
    assert lines[1] == (
        "  a compiler that reorders or fuses operations may need less: "
        "recompute.jax.jit(step, budget='23KiB') compiles the step and measures its memory"
    )
    assert lines[-4] == "    while stablehlo.multiply %g (m.py:7:4) executes"
    assert [line.split() for line in lines[-3:]] == [
        ["4.0", "KiB", "stablehlo.sine", "%d", "(m.py:6:4)"],
        ["4.0", "KiB", "stablehlo.exponential", "%e", "(m.py:7:4)"],
        ["4.0", "KiB", "stablehlo.multiply", "%g", "(m.py:7:4)"],
    ]
    assert main([step, "--fit", "10KiB"]) == 1
    assert (
        "arguments and results of @step, which no plan changes, need 12.0 KiB (12288 bytes)" in capsys.readouterr().out
    )


def test_xla_model_gives_no_lower_bound(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([step, "--fit", "70%", "--memory-model", "xla"]) == 0
    message = capsys.readouterr().out
    assert "(no lower bound is known)" in message and "by the XLA:CPU model" in message


def test_unproved_refusal_is_unknown(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([step, "--fit", "1%", "--memory-model", "xla"]) == UNPROVED == 3
    first, reason, *_ = capsys.readouterr().out.splitlines()
    share = "1% (81 B of 8.0 KiB of temporaries)"
    assert first == f"unknown: no plan was found with which the step fits in {share}, but one may exist"
    assert reason.startswith("  no plan is within the budget of 1% (") and "proven minimum" not in reason
    assert main([step, "--fit", "28KiB", "--time-limit", "0"]) in (PLANNED, UNPROVED)


def test_fit_search_ends_after_its_time_limit(
    step: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = list[float | None]()

    @contextmanager
    def stopped(seconds: float | None = None) -> Generator[Stop, None, None]:
        limits.append(seconds)
        yield lambda: True

    monkeypatch.setattr(planned_step, "stop_predicate", stopped)
    main([step, "--fit", "28KiB"])
    main([step, "--fit", "28KiB", "--time-limit", "7"])
    assert limits == [FIT_SECONDS, 7.0]


def test_impossible_budget_is_refused_without_a_search(
    step: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_module, "search_within", None)
    assert main([step, "--fit", "23KiB"]) == REFUSED == 1
    assert "the proven minimum is 24.0 KiB of device memory" in capsys.readouterr().out


def test_bound_of_zero_is_not_reported(step: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    def no_bound(*_: object) -> float:
        return 0.0

    monkeypatch.setattr(fit_module, "_bound", no_bound)
    assert main([step, "--fit", "28KiB"]) == PLANNED
    assert "% extra work (no lower bound is known)" in capsys.readouterr().out


def test_progress_is_one_line_that_names_the_budget(
    step: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[str]()

    def record(line: ProgressLine, phase: str, share: float | None = None) -> None:
        shown.append(phase)

    monkeypatch.setattr(ProgressLine, "set_phase", record)
    assert main([step, "--sweep", "3"]) == PLANNED
    assert "budget 1 of 3, 6.7 KiB: solving" in shown and "budget 3 of 3, 20.0 KiB: solving" in shown
    shown.clear()
    assert main([step, "--fit", "28KiB"]) == PLANNED
    assert shown == [
        "counting the bytes of the plain step",
        "proving a minimum of temporaries",
        "looking for a plan within 28KiB",
        "proving a minimum of extra work",
    ]
    assert capsys.readouterr().err.count("\n") <= 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--budget", "50%"], "--budget applies only to graphs; for a step, use --sweep, --fit or recompute-opt -p"),
        (["--sweep", "2", "--beside", "x.txt"], "--beside applies only to graphs"),
        (["--fit", "50%", "-o", "plan.json"], "--output applies only to graphs"),
        (["--fit", "50%", "--sequence", "order.txt"], "--sequence applies only to graphs"),
        (["--sweep", "2", "--view-copies", "on"], "--view-copies applies only to graphs"),
        (["--sweep", "2", "--memory-model", "xla", "--solver", "chen"], "--solver and --time-limit apply only to"),
        (["--sweep", "2", "--memory-model", "xla", "--time-limit", "2"], "--solver and --time-limit apply only to"),
        (["--sweep", "0"], "--sweep must be at least 1, not 0"),
        (["--sweep", "2", "--curve", "curve.pdf"], "--curve curve.pdf: unknown suffix '.pdf'; expected one of"),
        (["--fit", "min"], "invalid budget 'min'"),
        (["--fit", "lots"], "invalid budget 'lots'"),
        (["--fit", "50%", "--solver", "chen"], "--solver applies only to graphs and to --sweep; --fit always uses"),
        (["--fit", "50"], "invalid budget '50': '50' has no unit: write '50%', '50MiB', '50GiB', or '50B' for bytes"),
    ],
)
def test_invalid_usage_exits_with_2(
    arguments: list[str], reason: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([step, "-q", *arguments]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err and len(diagnostics_of(captured.err)) == 1 and captured.out == ""


@pytest.mark.parametrize("way", [["--fit", "1GiB"], ["--sweep", "2"]])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n", "no gradient found"),
        (STEP.replace("1024", "?"), "needs static shapes"),
        ("func.func @f(\n", r"step.mlir:\d+:\d+: error: "),
    ],
)
def test_invalid_input_gives_one_error_line(
    text: str, reason: str, way: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(text)
    assert main([str(path), *way, "-q"]) == 2
    captured = capsys.readouterr()
    assert re.search(reason, captured.err) and len(diagnostics_of(captured.err)) == 1 and captured.out == ""


def test_parts_of_a_file_are_planned_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "steps.mlir"
    path.write_text(f"{STEP}// -----\n{STEP.replace('@step', '@other')}")
    assert main([str(path), "--split-input-file", "--sweep", "2", "-q"]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if line.startswith("@")]
    assert [title.partition(":")[0] for title in titles] == ["@step", "@other"]
    path.write_text(f"{STEP}// -----\nfunc.func @broken(")
    assert main([str(path), "--split-input-file", "--sweep", "2", "-q"]) == 2
    assert f"{path}:14:" in capsys.readouterr().err


def test_output_file_is_rejected_for_several_steps(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([step, "--split-input-file", "--sweep", "2", "--curve", "curve.json"])
    assert "--curve writes a file for a single step" in capsys.readouterr().err


def test_graphs_are_not_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "graph.json"
    path.write_text("{}")
    assert main([str(path), "--split-input-file", "--budget", "0.5"]) == 2
    assert "--split-input-file applies only to steps" in capsys.readouterr().err


@pytest.mark.parametrize("option", [*FOR_GRAPHS, "view_copies"])
def test_help_names_the_options_that_apply_only_to_graphs(option: str) -> None:
    (action,) = [action for action in argument_parser()._actions if action.dest == option]
    assert "for graphs: " in str(action.help) or "of a graph: " in str(action.help)
