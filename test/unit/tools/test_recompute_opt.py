"""The `recompute-opt` command: errors for invalid input, and files written whole or not at all."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.driver.verification import verified
from recompute.proof.prove import Proof
from recompute.support import progress as progress_module
from recompute.test.documentation import training_step
from recompute.test.excerpts import diagnostics_of
from recompute.tools.diagnostics.reporting import ELLIPSIS, MAX_SOURCE_LINE
from recompute.tools.recompute_opt import main

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "stablehlo"
EXAMPLE = EXAMPLES / "chain.small.mlir"

STEP = """
func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
  %g = stablehlo.multiply %ct, %b : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}
"""
OTHER = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  BODY\n  func.return %x : tensor<4xf32>\n}\n"

# name -> (text, passes, line of the error, what the line says)
BAD: dict[str, tuple[str, str, int, str]] = {
    "truncated": (STEP[: STEP.index("  %h")], "recompute", 6, "expected|Expected"),
    "not MLIR": ("def f(x):\n  return x\n", "recompute", 1, "."),
    "use before definition": (
        OTHER.replace("BODY", "%a = stablehlo.sine %b : tensor<4xf32>\n  %b = stablehlo.sine %x : tensor<4xf32>"),
        "",
        2,
        "operand 0 of stablehlo.sine is read before it is defined",
    ),
    "undefined value": (OTHER.replace("BODY", "%a = stablehlo.sine %b : tensor<4xf32>"), "", 1, "not defined"),
    "misspelt attribute": (
        OTHER.replace("BODY", "%a = stablehlo.sine %x {recompute.recomput = true} : tensor<4xf32>"),
        "",
        2,
        "unknown attribute 'recompute.recomput'; did you mean 'recompute.recompute'",
    ),
    "attribute by its old name": (
        OTHER.replace("BODY", '%a = stablehlo.sine %x {recompute.region = "a"} : tensor<4xf32>'),
        "",
        2,
        "attribute 'recompute.region' was renamed to 'recompute.segment'",
    ),
    "ill-typed attribute": (
        OTHER.replace("BODY", '%a = stablehlo.sine %x {recompute.phase = "forward"} : tensor<4xf32>'),
        "",
        2,
        '\'recompute.phase\' must be one of "primal", "residual", "gradient", "update", not "forward"; '
        r"did you mean 'primal'\?",
    ),
    "misspelt phase": (
        OTHER.replace("BODY", '%a = stablehlo.sine %x {recompute.phase = "gradeint"} : tensor<4xf32>'),
        "",
        2,
        r"not \"gradeint\"; did you mean 'gradient'\?",
    ),
    "the backward pass as a phase": (
        OTHER.replace("BODY", '%a = stablehlo.sine %x {recompute.phase = "backward"} : tensor<4xf32>'),
        "",
        2,
        r"not \"backward\"; did you mean 'gradient'\?",
    ),
    "misspelt mark": (
        OTHER.replace("BODY", '%a = stablehlo.sine %x {recompute.recompute = "must_sav"} : tensor<4xf32>'),
        "",
        2,
        r"not \"must_sav\"; did you mean 'must_save'\?",
    ),
    "wrong types": (
        OTHER.replace("BODY", '%a = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<5xf32>'),
        "",
        2,
        "stablehlo.sine",
    ),
    "no gradient": (OTHER.replace("BODY", ""), "recompute", 1, "no gradient found"),
    "attribute against location": (
        STEP.replace("stablehlo.sine %x", 'stablehlo.sine %x {recompute.phase = "gradient"}'),
        "recompute",
        1,
        'the attribute recompute.phase = "gradient" says the backward pass, but the location .* says the forward pass',
    ),
    "pattern without a match": (
        STEP,
        "recompute{segments=layer*}",
        2,
        r"no segment matches 'layer\*'; the scopes are: block0",
    ),
    "segment to skip beyond the only one": (
        STEP,
        "recompute{skip=9}",
        2,
        r"there is no segment 9 to skip: the only segment is 0 \(block0\)$",
    ),
    "recursion": (
        "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n"
        "  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>\n  func.return %0 : tensor<f32>\n}\n",
        "recompute-inline",
        1,
        "calls itself",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_located_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, passes, line, says = BAD[name]
    source, output = tmp_path / "bad.mlir", tmp_path / "out.mlir"
    source.write_text(text)
    output.write_text("the old file")
    assert main([str(source), "-p", passes, "-o", str(output)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (message,) = diagnostics_of(captured.err)
    match = re.fullmatch(r"(\S+?):(\d+):(\d+): error: (.*)", message)
    assert match, message
    assert match[1] == str(source)
    assert int(match[2]) >= line
    assert re.search(says, match[4]), message
    assert output.read_text() == "the old file"


USAGE = {
    "unknown pass": (["-p", "recompute-clon"], "unknown pass 'recompute-clon'; did you mean 'recompute-clone'"),
    "unknown option": (["-p", "recompute{segment=auto}"], "no option 'segment'; did you mean 'segments'"),
    "option of a pass without any": (["-p", "recompute-cse{x=1}"], "no option 'x'; it has none"),
    "ill-typed option": (
        ["-p", "recompute{segment-count=x}"],
        "pass 'recompute': option 'segment-count' expects a whole number, not x",
    ),
    "several texts for one": (
        ["-p", "recompute{segments=blk*,blk1}"],
        "option 'segments' expects a string, not blk*,blk1; a string needs quotes: segments=\"blk*,blk1\"",
    ),
    "ill-typed elements": (["-p", "recompute{skip=a,1}"], "'skip' expects whole numbers separated by commas, not a,1"),
    "ill-typed option with alternatives": (["-p", "recompute{time-limit=x}"], "'time-limit' expects a number, not x"),
    "optional option without a value": (
        ["-p", "recompute{budget}"],
        "pass 'recompute': option 'budget' expects a string or a number, not nothing",
    ),
    "ill-typed option of a target": (
        ["-t", "explain{format=a,b}"],
        "target 'explain': option 'format' expects a string",
    ),
    "misspelt option of two words": (["-p", "recompute{segment-cuont=2}"], "did you mean 'segment-count'?"),
    "pass by its old name": (["-p", "recompute-pace"], "pass 'recompute-pace' was renamed to 'recompute-stagger'"),
    "option by its old name": (["-p", "recompute{regions=auto}"], "option 'regions' was renamed to 'segments'"),
    "another option by its old name": (["-p", "recompute{pace=false}"], "option 'pace' was renamed to 'stagger'"),
    "option with its old meaning": (["-p", "recompute-mark{segments=3}"], "number of segments is 'segment-count'"),
    "option of a target by its old name": (["-t", "explain{regions=auto}"], "'regions' was renamed to 'segments'"),
    "unknown target": (["-t", "explian"], "unknown target 'explian'; did you mean 'explain'"),
    "unknown format": (["-t", "explain{format=xml}"], "unknown format 'xml' for explain; expected one of text, json"),
    "unknown model": (
        ["-t", "memory-timeline{model=gpu}"],
        "unknown model 'gpu' for memory-timeline; expected one of order, xla",
    ),
    "option of a pass given twice": (
        ["-p", "cse,recompute{primal-results=0 policy=dots_saveable primal_results=1}"],
        "'recompute': option 'primal-results' may be given only once",
    ),
    "no such function before": (
        ["-t", f"memory-timeline{{before={EXAMPLE}}}"],
        "the original step has no function @",
    ),
    "unreadable pipeline": (["-p", "recompute{"], "cannot read the pipeline: '{' has no matching closing bracket"),
    "bracket that closes nothing": (
        ["-p", "recompute}"],
        "cannot read the pipeline: '}' has no matching opening bracket",
    ),
    "option without a value": (["-p", "recompute{policy=}"], "expected a value after '='; a string with special"),
    "options with commas": (["-p", "recompute{copies=2,strict=true}"], "options are separated by spaces: {a=1 b=2}"),
    "no comma between passes": (["-p", "cse dce"], "expected ',' and another pass, or options in '{…}'"),
    "two commas": (["-p", "cse,,dce"], "expected the name of a pass before and after each comma"),
    "pass that resembles none": (
        ["-p", "xyz"],
        "unknown pass 'xyz'; the passes of this project are recompute-flatten-",
    ),
    "option that resembles none": (["-p", "recompute-clone{zz=1}"], "no option 'zz'; its options are copies, chain"),
    "list of the options": (["-p", "recompute-clone{chian=1}"], "did you mean 'chain'? Its options are copies, chain"),
    "nested pipeline": (
        ["--pass-pipeline", "builtin.module(func.func(recompute-mark))"],
        "'recompute-mark' runs on builtin.module, not on func.func: write it outside 'func.func(...)'",
    ),
    "nested behind another": (
        ["--pass-pipeline", "builtin.module(cse,func.func(cse{},recompute-cse))"],
        "'recompute-cse' runs on builtin.module, not on func.func",
    ),
    "unknown pass in a nested pipeline": (
        ["-pass-pipeline=builtin.module(func.func(ces))"],
        "unknown pass 'ces'; did you mean 'dce'",
    ),
    "unknown kind of remarks": (
        ["--remarks-filter=mised"],
        "unknown kind 'mised'; expected one of passed, missed, analysis",
    ),
    "passes beside a reproducer": (
        ["--run-reproducer", "-p", "cse"],
        "--run-reproducer runs the passes of the input",
    ),
    "no reproducer": (["--run-reproducer"], "the input has no section 'mlir_reproducer'"),
    "two outputs in one file": (
        ["--remarks-file", "x.txt", "--crash-reproducer", "x.txt"],
        "--remarks-file and --crash-reproducer both name 'x.txt'",
    ),
    "pipeline without a module": (
        ["--pass-pipeline", "func.func(recompute-mark)"],
        "'recompute-mark' runs on builtin.module, not on func.func",
    ),
    "foreign pass without a module": (
        ["--pass-pipeline", "func.func(cse)"],
        "is not anchored at a module: write 'builtin.module(func.func(cse))'",
    ),
    "pipeline at a misspelt module": (
        ["--pass-pipeline", "builtin.modul(cse)"],
        "is not anchored at a module: write 'builtin.module(cse)'",
    ),
    "misspelt pass without a module": (
        ["--pass-pipeline", "recompute-mrak"],
        "unknown pass 'recompute-mrak'; did you mean 'recompute-mark'",
    ),
    "misspelt option in a nested pipeline": (
        ["--pass-pipeline", "builtin.module(builtin.module(recompute-mark{polcy=x}))"],
        "pass 'recompute-mark' has no option 'polcy'; did you mean 'policy'? Its options are segments",
    ),
    "pipeline twice": (["-p", "cse", "--pass-pipeline", "builtin.module(cse)"], "give either --passes or --pass-pi"),
    "unknown pass in a pipeline": (
        ["--pass-pipeline", "builtin.module(recompute-mrak)"],
        "unknown pass 'recompute-mrak'; did you mean 'recompute-mark'",
    ),
    "help for an unknown pass": (["--help-pass", "recompute-mrak"], "did you mean 'recompute-mark'"),
    "help for an unknown target": (["--help-pass", "memory-timelin"], "did you mean 'memory-timeline'"),
    "help for a name that resembles none": (["--help-pass", "xyz"], "recompute, memory-timeline, explain"),
    "target that resembles none": (
        ["-t", "gpu"],
        "unknown target 'gpu'; the targets of this project are memory-timeline, explain; the targets of xDSL and of "
        "other packages are arm-asm, ",
    ),
    "target among the passes": (["-p", "explain"], "unknown pass 'explain'; it is a target: -t explain"),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_exits_with_2(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, says = USAGE[name]
    source = tmp_path / "step.mlir"
    source.write_text(STEP)
    assert main([str(source), *options]) == 2
    (message,) = diagnostics_of(capsys.readouterr().err)
    assert message.startswith("recompute-opt: error: ")
    assert says in message


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("--cse", "unknown option '--cse'; run the pass with -p cse"),
        ("-recompute=x", "unknown option '-recompute'; run the pass with -p recompute"),
        ("--verfy-diagnostics", "unknown option '--verfy-diagnostics'; did you mean '--verify-diagnostics'?"),
        ("--nothing-like-it", "unknown option '--nothing-like-it'"),
        ("second.mlir", "unexpected argument 'second.mlir'"),
        ("--remarks=xml", "argument --remarks: invalid choice: 'xml' (choose from"),
    ],
)
def test_invalid_options_give_one_error_line(argument: str, error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["step.mlir", argument])
    assert exit_.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"recompute-opt: error: {error}") and line.endswith(" (--help lists the options)")


SYNTAX = "func.func @f(%a: f32) -> f32 {\n\t%0 = stablehlo.tanh %b : f32\n  func.return %0 : f32\n}\n"


def test_errors_show_source_line_and_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(SYNTAX)
    assert main([str(source)]) == 1
    error, line, caret = capsys.readouterr().err.splitlines()
    assert error == f"{source}:2:22: error: %b is used but not defined"
    assert line == "\t%0 = stablehlo.tanh %b : f32"
    assert caret == "\t" + " " * 20 + "^"


@pytest.mark.parametrize(("before", "after"), [(300, 0), (0, 300), (300, 300)])
def test_long_source_lines_are_cut_around_the_caret(
    before: int, after: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(f"module {{{' ' * before}oops{' ' * after}}}")
    assert main([str(source)]) == 1
    _, line, caret = capsys.readouterr().err.splitlines()
    assert len(line) <= MAX_SOURCE_LINE + 2 * len(ELLIPSIS)
    assert line[len(caret) - 1 :].startswith("oops")
    assert (line.startswith(ELLIPSIS), line.endswith(ELLIPSIS)) == (before > 0, after > 0)


def test_excerpts_are_not_part_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(SYNTAX)
    assert main([str(source), "--remarks=json"]) == 1
    assert sorted(json.loads(capsys.readouterr().err)) == ["category", "column", "file", "kind", "line", "message"]


def test_missing_input_gives_one_error_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nowhere.mlir"]) == 1
    assert capsys.readouterr().err == "nowhere.mlir: error: cannot read the file: No such file or directory\n"


def test_bytes_that_are_not_text_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlirbc"
    source.write_bytes(b"ML\xff\x00\xff")
    assert main([str(source)]) == 1
    assert ":1:3: error: neither UTF-8 text nor MLIR bytecode" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["-o", "--emit-plan", "--remarks-file", "--mlir-generate-reproducer"])
def test_unwritable_files_are_refused_before_the_passes(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, file = tmp_path / "step.mlir", tmp_path / "none" / "file"
    source.write_text(STEP)

    def refuse(*_: object) -> None:
        pytest.fail("a module was processed")

    monkeypatch.setattr("recompute.tools.recompute_opt.process", refuse)
    assert main([str(source), "-p", "recompute", option, str(file)]) == 1
    assert capsys.readouterr().err == f"{file}: error: cannot write the file: No such file or directory\n"


def test_unwritable_output_gives_one_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(STEP)
    assert main([str(source), "-o", str(tmp_path / "no" / "such" / "folder.mlir")]) == 1
    assert "error: cannot write the file: No such file or directory" in capsys.readouterr().err


def test_output_may_be_the_input(tmp_path: Path) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(STEP)
    assert main([str(source), "-o", str(source)]) == 0
    assert "stablehlo.sine" in source.read_text()
    assert list(tmp_path.iterdir()) == [source]


def test_split_input_keeps_line_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "two.mlir"
    source.write_text(OTHER.replace("BODY", "") + "// -----\n" + OTHER.replace("BODY", "%a = nonsense"))
    assert main([str(source), "--split-input-file"]) == 1
    assert f"{source}:7:" in capsys.readouterr().err


def test_unproved_result_is_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = tmp_path / "step.mlir", tmp_path / "out.mlir"
    source.write_text(STEP)

    def refuse(before: ModuleOp, after: ModuleOp, options: object) -> Proof:
        return Proof(False, "result #0 differs")

    monkeypatch.setattr(verified, "prove", refuse)
    assert main([str(source), "-p", "recompute-inline", "-o", str(output)]) == 1
    assert "not proved equal to the input: result #0 differs" in capsys.readouterr().err
    assert not output.exists()
    assert main([str(source), "-p", "recompute-inline", "--no-proof", "-o", str(output)]) == 0
    assert output.exists()


def test_failing_verifier_gives_located_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bare exception that xDSL raises for a load with the wrong number of indices becomes a located error."""
    source = tmp_path / "load.mlir"
    source.write_text("""func.func @f(%m: memref<4xf32>) -> f32 {
  %r = "memref.load"(%m) : (memref<4xf32>) -> f32
  return %r : f32
}
""")
    assert main([str(source)]) == 1
    assert capsys.readouterr().err.startswith(f"{source}:2:8: error: memref.load: expected an index for each dimension")


def test_written_plan_reproduces_the_program(tmp_path: Path) -> None:
    source, plan = tmp_path / "step.mlir", tmp_path / "the-plan.v1.json"
    source.write_text(EXAMPLE.read_text())
    first, second = tmp_path / "first.mlir", tmp_path / "second.mlir"
    assert main([str(source), "-p", "recompute", "--emit-plan", str(plan), "-o", str(first)]) == 0
    assert main([str(source), "-p", f"recompute{{plan={plan}}}", "-o", str(second)]) == 0
    assert first.read_text() == second.read_text()


def test_emitting_plan_requires_planning_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    assert main([str(EXAMPLE), "-p", "recompute-inline", "--emit-plan", str(plan), "-o", str(tmp_path / "out")]) == 2
    assert "none of the passes makes a plan" in capsys.readouterr().err and not plan.exists()


def test_unreadable_plan_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(EXAMPLE), "-p", f"recompute{{plan={tmp_path / 'none.json'}}}"]) == 1
    assert "none.json cannot be read: No such file" in capsys.readouterr().err


def test_function_of_several_blocks_is_rejected_at_its_location(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A function with more than one block is rejected at its own location, whatever terminates the first block."""
    path = tmp_path / "blocks.mlir"
    branch = '"test.branch"() [^bb1] : () -> ()\n^bb1:\n  func.return %x : tensor<4xf32>'
    path.write_text(f"func.func @two(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {branch}\n}}\n")
    assert main([str(path), "-p", "recompute"]) != 0
    assert f"{path}:1:1: error: function 'two' has 2 blocks" in capsys.readouterr().err


def test_target_options_are_checked_before_any_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options of targets are checked before the input is read, which here does not exist."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    missing = str(tmp_path / "missing.mlir")
    assert main([missing, "-p", "recompute", "-t", "memory-timeline{format=svg}"]) == 2
    assert "SVG and PNG need matplotlib: python -m pip install" in capsys.readouterr().err
    assert main([missing, "-t", "memory-timeline{format=htm}"]) == 2
    assert "unknown format 'htm' for memory-timeline; did you mean 'html'?" in capsys.readouterr().err
    assert main([missing, "-t", "explain{cost=roofline(h10)}"]) == 2
    assert "unknown device 'h10'" in capsys.readouterr().err


def test_path_note_needs_locations_in_the_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no note if only copies have locations, because their paths are also in attributes."""
    source = tmp_path / "step.mlir"
    source.write_text(re.sub(r" loc\(.*", "", training_step("block")))
    assert main([str(source), "-p", "recompute"]) == 0
    output = capsys.readouterr()
    assert "optimization_barrier" in output.out and "note:" not in output.err


SLOW_RUNS: dict[tuple[str, ...], bool] = {
    (): True,
    ("--remarks=text",): True,
    ("--remarks=json", "--remarks-file=remarks.json"): True,
    ("--quiet",): False,
    ("--remarks=json",): False,
    ("--remarks=yaml",): False,
    ("--print-ir-after-all",): False,
    ("--timing=json",): False,
    ("--pass-statistics=json",): False,
}


@pytest.mark.parametrize("options", SLOW_RUNS)
def test_long_runs_print_progress_to_a_pipe(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As recompute-plan does, unless standard error has output for programs."""
    monkeypatch.setattr(progress_module, "FIRST_FILE_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(training_step("block"))
    assert main(["step.mlir", "-p", "recompute", "-o", "less.mlir", *options]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("recompute-opt: ") for line in lines) == SLOW_RUNS[options], lines
