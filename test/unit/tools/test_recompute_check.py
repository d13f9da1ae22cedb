"""The `recompute-check` command: verdicts, exit codes, and one located line per fault of the input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recompute.test.excerpts import diagnostics_of
from recompute.tools.recompute_check import main
from recompute.tools.recompute_opt import main as opt

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "stablehlo"
STEP = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.tanh %x : tensor<4xf32>
  %b = stablehlo.multiply %a, %x : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""
CLONED = STEP.replace("multiply %a", "multiply %c").replace(
    "  %b =",
    "  %r = stablehlo.optimization_barrier %x : tensor<4xf32>\n  %c = stablehlo.tanh %r : tensor<4xf32>\n  %b =",
)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    return write(tmp_path / "step.mlir", STEP)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def check(*arguments: Path | str) -> int:
    return main([str(argument) for argument in arguments])


def test_equal_programs_are_proved(tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(step, write(tmp_path / "cloned.mlir", CLONED)) == 0
    assert capsys.readouterr() == ("proved equal: 1 result, 4 operations before, 6 after\n", "")


def test_first_difference_is_named_in_both_files(
    tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "other.mlir", STEP.replace("tanh", "sine"))
    assert check(step, other) == 1
    assert capsys.readouterr().out == (
        "not proved: result #0 of @main differs: stablehlo.multiply operand 0: "
        f"before stablehlo.tanh at {step}:2:8, after stablehlo.sine at {other}:2:8\n"
    )


def json_of(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    captured = capsys.readouterr()
    assert captured.err == "" and captured.out.count("\n") == 1
    return json.loads(captured.out)


def test_json_states_the_first_difference_and_its_locations(
    tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write(tmp_path / "other.mlir", STEP.replace("tanh", "sine"))
    assert check(step, other, "--json", "--execute") == 1
    before, after = f"stablehlo.tanh at {step}:2:8", f"stablehlo.sine at {other}:2:8"
    path = "stablehlo.multiply operand 0"
    verdict = json_of(capsys)
    execution = verdict.pop("execution")
    assert verdict == {
        "verdict": "not proved",
        "reason": f"result #0 of @main differs: {path}: before {before}, after {after}",
        "where": "result #0 of @main",
        "before": before,
        "after": after,
        "path": [path],
        "locations": [{"file": str(file), "line": 2, "column": 8} for file in (step, other)],
        "hint": "",
        "assumptions": [],
        "rules_for_loops": False,
        "same_text": False,
        "exit_code": 1,
    }
    assert isinstance(execution, dict)
    assert (execution["verdict"], execution["inputs"], execution["result"], execution["index"]) == (
        "different",
        ["random"],
        0,
        [0],
    )


def test_json_of_a_proof_counts_results_and_operations(
    tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(step, write(tmp_path / "cloned.mlir", CLONED), "--json", "--execute", "--kind", "random") == 0
    verdict = json_of(capsys)
    assert (verdict["verdict"], verdict["results"], verdict["operations_before"], verdict["operations_after"]) == (
        "proved",
        1,
        4,
        6,
    )
    assert verdict["execution"] == {"verdict": "equal", "inputs": ["random"]} and verdict["reason"] == ""


def test_dead_endless_loop_may_be_removed_but_not_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict has a direction, as the help and docs/command_line.md state."""
    step = (
        "func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {\n  LOOP\n  return %x : tensor<4xf32>\n}"
    )
    loop = """%l = stablehlo.while(%q = %p) : tensor<i1> cond {
    stablehlo.return %q : tensor<i1>
  } do {
    stablehlo.return %q : tensor<i1>
  }"""
    endless, plain = (write(tmp_path / f"{i}.mlir", step.replace("LOOP", text)) for i, text in enumerate((loop, "")))
    assert check(endless, plain) == 0
    assert check(plain, endless) == 1
    assert "may not terminate and runs only in the rewritten program" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        check("--help")
    assert "The verdict has a direction: the second program may do less." in capsys.readouterr().out


UNROLLED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32> loc("jit(f)/block0/tanh"(#line))
  %1 = stablehlo.sine %0 : tensor<4xf32> loc("jit(f)/block0/sin"(#line))
  %2 = stablehlo.tanh %1 : tensor<4xf32> loc("jit(f)/block1/tanh"(#line))
  func.return %2 : tensor<4xf32>
}
#line = loc("model.py":7:9)
"""


def test_operations_of_unrolled_blocks_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = write(tmp_path / "step.mlir", UNROLLED)
    other = write(tmp_path / "other.mlir", UNROLLED.replace("%2 = stablehlo.tanh", "%2 = stablehlo.cosine"))
    assert check(step, other) == 1
    assert capsys.readouterr().out == (
        "not proved: result #0 of @main differs: "
        f'before stablehlo.tanh at model.py:7:9 (%2 at {step}:4, "jit(f)/block1/tanh"), '
        f'after stablehlo.cosine at model.py:7:9 (%2 at {other}:4, "jit(f)/block1/tanh")\n'
    )


def test_difference_inside_a_rewritten_loop_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loops = Path(__file__).parents[2] / "filecheck" / "tools" / "check-loops.mlir"
    less, other = tmp_path / "less.mlir", tmp_path / "other.mlir"
    assert opt([str(loops), "-p", "recompute-loops", "--no-print-debuginfo", "-o", str(less)]) == 0
    # The copies of the body in the backward loop, whose stack the forward loop no longer writes.
    line = next(i for i, text in enumerate(loops.read_text().splitlines(), 1) if "= stablehlo.cosine" in text)
    lines = less.read_text().splitlines()
    copy = next(index for index, text in enumerate(lines) if "stablehlo.cosine" in text)
    lines[copy] = lines[copy].replace("cosine", "exponential")
    write(other, "\n".join(lines))
    capsys.readouterr()
    assert check(loops, other) == 1
    answer = capsys.readouterr().out
    assert answer.startswith("not proved: result #1 of @carry differs: ")
    assert f"before stablehlo.cosine at {loops}:{line}:10, after stablehlo.exponential at {other}:{copy + 1}:" in answer


def test_expected_verdict_may_be_given(tmp_path: Path, step: Path) -> None:
    other = write(tmp_path / "other.mlir", STEP.replace("tanh", "sine"))
    assert check(step, step, "--expect", "proved") == 0
    assert check(step, step, "--expect", "not-proved") == 1
    assert check(step, other, "--expect", "proved") == 1
    assert check(step, other, "--expect", "not-proved") == 0


BAD = {
    "truncated": (STEP[: STEP.index("%b")].encode(), "3:3: error: "),
    "not MLIR": (b"import jax\n", "1:1: error: "),
    "empty": (b"", "1:1: error: "),
    "not UTF-8": (b"func.func\xff", "1:10: error: neither UTF-8 text nor MLIR bytecode"),
    "bytecode": (b"ML\xefR\x00\x01", "1:1: error: the bytecode cannot be read: "),
    "read before it is defined": (
        STEP.replace("tanh %x", "tanh %b").encode(),
        "2:8: error: operand 0 of stablehlo.tanh",
    ),
    "a value that does not exist": (
        STEP.replace("tanh %x", "tanh %z").encode(),
        "error: %z is used but not defined",
    ),
    "types that do not fit": (
        STEP.replace("%a, %x : ", "%a, %x : (tensor<4xf32>, tensor<4xf32>) -> ")
        .replace("-> tensor<4xf32>\n  return", "-> tensor<5xf32>\n  return")
        .encode(),
        "error: ",
    ),
    "nested without end": (b"{" * 100_000, "error: "),
    "segments nested without end": (b'"a.b"() ({' * 10_000, "error: "),
}


@pytest.mark.parametrize("what", BAD)
def test_invalid_input_gives_one_located_line(
    what: str, tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, message = BAD[what]
    bad = tmp_path / "bad.mlir"
    bad.write_bytes(content)
    for arguments in ((bad, step), (step, bad)):
        assert check(*arguments) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert error.startswith(f"{bad}:")
        assert message in error
        assert len(diagnostics_of(error)) == 1


def test_missing_file_gives_one_error_line(tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(step, tmp_path / "none.mlir") == 2
    missing = tmp_path / "none.mlir"
    assert capsys.readouterr().err == f"{missing}: error: cannot read the file: No such file or directory\n"


@pytest.mark.parametrize("arguments", [[], ["a.mlir"], ["-", "-"], ["a.mlir", "b.mlir", "--expect", "maybe"]])
def test_invalid_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "recompute-check: error: " in capsys.readouterr().err


@pytest.mark.slow
def test_result_is_independent_of_hash_seed(tmp_path: Path, step: Path) -> None:
    other = write(tmp_path / "other.mlir", CLONED.replace("%c, %x", "%x, %c"))
    command = [sys.executable, "-m", "recompute.tools.recompute_check", step, other]
    answers = {
        subprocess.run(command, capture_output=True, text=True, env={"PYTHONHASHSEED": seed}).stdout for seed in "0123"
    }
    assert len(answers) == 1
    assert answers.pop().startswith("not proved: result #0 of @main differs: ")


@pytest.mark.parametrize("name", ["chain", "mlp"])
def test_jax_checkpoint_is_proved(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(EXAMPLES / f"{name}.small.mlir", EXAMPLES / f"{name}.small.checkpoint.mlir") == 0
    assert capsys.readouterr().out.startswith("proved equal: ")


def test_invalid_input_is_named_with_the_position_in_the_model(
    tmp_path: Path, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STEP.replace(
        "%a, %x : tensor<4xf32>", '%a, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32> loc("m.py":4:2)'
    )
    broken = write(
        tmp_path / "broken.mlir",
        text.replace("-> tensor<4xf32> {", "-> tensor<5xf32> {").replace(
            "return %b : tensor<4xf32>", "return %b : tensor<5xf32>"
        ),
    )
    for arguments in ((step, broken), (broken, step)):
        assert check(*arguments) == 2
        error = capsys.readouterr().err.split("\n")[0]
        assert error.startswith(f"{broken}:3:8: error: stablehlo.multiply: ")
        assert error.endswith(" (from m.py:4:2)")


def test_verdict_is_printed_if_the_function_to_run_is_ambiguous(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = STEP.replace("@main", "@f") + STEP.replace("@main", "@g")
    pair = write(tmp_path / "a.mlir", two), write(tmp_path / "b.mlir", f"{two}\n")
    assert check(*pair, "--execute") == 2
    output, error = capsys.readouterr()
    assert output.startswith("proved equal: ") and "the module has 2 public functions" in error


CALLS = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.custom_call @my_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = stablehlo.subtract %a, %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
"""


def test_repeated_custom_call_is_refused_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = next(line for line in CALLS.splitlines() if "custom_call" in line)
    twice = CALLS.replace(call, f"{call}\n{call.replace('%a', '%c')}").replace("%a, %a", "%a, %c")
    pair = write(tmp_path / "a.mlir", CALLS), write(tmp_path / "b.mlir", twice)
    assert check(*pair) == 1
    assert capsys.readouterr().out.endswith(
        " (calls to @my_kernel may have effects, and B contains more of them; if they have none, give "
        "--repeatable my_kernel)\n"
    )
    assert check(*pair, "--repeatable", "my_kernel") == 0
