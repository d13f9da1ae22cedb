"""The `recompute-run` command, and `recompute-check --execute`."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from recompute.interpreters.execute_check import Equality
from recompute.mlir_io.parser import parse_module
from recompute.test.excerpts import diagnostics_of
from recompute.tools import recompute_check
from recompute.tools.execution import Execution, ExecutionRequest, run_both
from recompute.tools.recompute_check import main as check
from recompute.tools.recompute_run import main

STEP = """\
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %c = stablehlo.constant dense<7> : tensor<i32>
  %a = stablehlo.negate %x : tensor<4xf32>
  %b = stablehlo.multiply %a, %x : tensor<4xf32>
  return %b, %c : tensor<4xf32>, tensor<i32>
}
"""
# Equal whatever the input, and beyond what is proved.
COMMUTED = STEP.replace("%a, %x", "%x, %a")
DIFFERENT = STEP.replace("negate", "abs")


@pytest.fixture
def step(tmp_path: Path) -> Path:
    return write(tmp_path / "step.mlir", STEP)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_run_writes_results_and_trace(step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, results, trace = (tmp_path / name for name in ("in.npz", "out.npz", "trace.json"))
    np.savez(inputs, np.array([1, 2, 3, 0], np.float32))
    assert main([str(step), "--inputs", str(inputs), "--results", str(results), "--trace", str(trace)]) == 0
    assert capsys.readouterr() == (
        "@main: 4 operations, 2 results\n"
        f"  #0   tensor<4xf32>  crc32 {crc32(np.array([-1, -4, -9, -0.0], np.float32).tobytes()):08x}\n"
        f"  #1   tensor<i32>    crc32 {crc32(np.int32(7).tobytes()):08x}\n"
        "peak of temporaries: 16 bytes metered, 16 bytes modelled, at operation 1, stablehlo.negate\n"
        "not counted: at most 4 bytes of constants and of values computed only from them\n",
        "",
    )
    with np.load(results) as archive:
        assert archive["result_0"].tolist() == [-1.0, -4.0, -9.0, -0.0]
        assert archive["result_1"] == 7
    record = json.loads(trace.read_text())
    assert record["metered_peak_bytes"] == record["modelled_peak_bytes"] == 16
    assert [row["metered_bytes"] for row in record["operations"]] == [0, 16, 16, 0]


CALLED = """\
func.func @tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = call @tanh(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = call @same(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %c = call @tanh(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %d = stablehlo.negate %c : tensor<4xf32>
  return %a, %b, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


def test_public_function_results_are_not_temporaries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, trace = write(tmp_path / "called.mlir", CALLED), tmp_path / "trace.json"
    assert main([str(module), "--trace", str(trace)]) == 0
    assert "@main: 5 operations, 3 results" in capsys.readouterr().out
    # What @tanh returns counts while it runs; then %a and %d are results, and %c alone is a temporary.
    assert [row["metered_bytes"] for row in json.loads(trace.read_text())["operations"]] == [16, 0, 16, 16, 0]


def test_equal_seeds_give_equal_results(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = list[str]()
    for seed in ("1", "1", "2"):
        assert main([str(step), "--seed", seed, "--kind", "adversarial"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (
            STEP.replace("stablehlo.negate %x : ", '"a.b"(%x) : (tensor<4xf32>) -> '),
            [],
            ":3:8: error: a.b cannot be exec",
        ),
        (STEP[:100], [], "error: "),
        (STEP, ["--function", "f"], "error: there is no function 'f'; the module contains main"),
        (STEP, ["--inputs", "none.npz"], "none.npz: error: cannot read the file: No such file or directory"),
        (STEP, ["--results", "none/out.npz"], "none/out.npz: error: cannot write the file: No such file or directory"),
    ],
)
def test_errors_give_one_line(
    text: str, arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(write(tmp_path / "bad.mlir", text)), *arguments]) == 1
    output, error = capsys.readouterr()
    assert output == ""
    assert message in error and len(diagnostics_of(error)) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"numbers"])
def test_invalid_input_archive_is_rejected(
    content: bytes, step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    assert main([str(step), "--inputs", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: error: ")


def test_invalid_usage_exits_with_2() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["a.mlir", "--seed", "1", "--inputs", "in.npz"])
    assert stop.value.code == 2


def test_check_executes_proved_programs(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check([str(step), str(step), "--execute"]) == 0
    assert capsys.readouterr().out == (
        "proved equal: 2 results, 5 operations before, 5 after; the text is the same\n"
        "executed: equal bit for bit on random, positive, adversarial inputs\n"
    )


def test_check_executes_the_chosen_kind_of_inputs(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check([str(step), str(step), "--execute", "--kind", "positive"]) == 0
    assert capsys.readouterr().out.endswith("\nexecuted: equal bit for bit on positive inputs\n")


LOOP = """\
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<2147483647> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%k = %i, %c = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.sine %c : tensor<4xf32>
      %m = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %m, %s : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32>
}
"""


def test_execution_stops_at_the_time_limit_inside_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = write(tmp_path / "loop.mlir", LOOP)
    assert check([str(step), str(step), "--execute", "--time-limit", "0.2"]) == 3
    assert capsys.readouterr().out == (
        "proved equal: 1 result, 11 operations before, 11 after; the text is the same\n"
        "the execution was stopped after 0.2 s (--time-limit): nothing was compared\n"
    )


def test_time_limit_does_not_hide_a_failed_proof(tmp_path: Path) -> None:
    step, other = write(tmp_path / "a.mlir", LOOP), write(tmp_path / "b.mlir", LOOP.replace("sine", "cosine"))
    assert check([str(step), str(other), "--execute", "--time-limit", "0"]) == 1
    assert check([str(step), str(other), "--expect", "equal", "--time-limit", "0"]) == 3


def test_stopped_execution_states_what_was_compared() -> None:
    stopped = Execution((("random", Equality(1, 0, None)),), stopped_after=300.0)
    assert stopped.equal
    assert str(stopped) == (
        "the execution was stopped after 300 s (--time-limit): the results are equal bit for bit on random inputs, the "
        "others were not compared"
    )


def test_progress_of_executions_is_reported(step: Path) -> None:
    module, phases = parse_module(step.read_text()), list[tuple[str, float]]()

    def report(phase: str, share: float) -> None:
        phases.append((phase, share))

    run_both(module, module, ExecutionRequest(kind="random"), report)
    assert phases[0] == ("executing the first program on random inputs", 0.0)
    assert phases[-1] == ("executing the second program on random inputs", 1.0)
    assert phases == sorted(phases)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "positive"], "--kind has an effect only with --execute"),
        (["--seed", "0"], "--seed has an effect only with --execute"),
        (["--time-limit", "2"], "--time-limit has an effect only with --execute"),
        (["--execute", "--time-limit", "-1"], "--time-limit must be at least 0 seconds, not -1"),
        (["--execute", "--kind", "positive", "--inputs", "in.npz"], "--kind: not allowed with argument --inputs"),
    ],
)
def test_check_rejects_options_without_effect(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        check(["a.mlir", "b.mlir", *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_interrupted_check_ends_with_one_line(
    step: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recompute_check, "run_both", interrupt)
    assert check([str(step), str(step), "--execute"]) == 130
    output, error = capsys.readouterr()
    assert output.startswith("proved equal: ") and error == "recompute-check: interrupted\n"


def test_check_executes_unproved_programs(step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write(tmp_path / "other.mlir", COMMUTED)
    assert check([str(step), str(other), "--execute"]) == 1
    assert check([str(step), str(other), "--expect", "equal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == lines[2:]
    assert lines[0].startswith("not proved: ")
    assert lines[1] == "executed: equal bit for bit on random, positive, adversarial inputs"


def test_check_reports_different_results(step: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write(tmp_path / "other.mlir", DIFFERENT)
    inputs = tmp_path / "in.npz"
    np.savez(inputs, np.array([-1, 2, 3, 0], np.float32))
    for expectation in ("proved", "equal"):
        assert check([str(step), str(other), "--inputs", str(inputs), "--expect", expectation]) == 1
        assert capsys.readouterr().out.endswith(
            "\ndifferent: result #0 [1]: before -4.0, after 4.0; 3 elements differ; "
            f"first new value: stablehlo.abs at {other}:3:8; on given inputs\n"
        )


def test_error_about_the_module_names_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = "  func.func @{}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n    return %x : tensor<4xf32>\n  }}\n"
    text = f'module {{\n{function.format("f")}{function.format("g")}}} loc("other.mlir":1:1)\n'
    path = write(tmp_path / "two.mlir", text)
    assert main([str(path)]) != 0
    assert capsys.readouterr().err.startswith(f"{path}:1:1: error: the module has 2 public functions")
