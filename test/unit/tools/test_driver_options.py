"""Options that recompute-opt shares with mlir-opt: crash reproducers, dumps, completion, and spellings."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from recompute.driver.pipelines import pipeline
from recompute.tools.arguments import command_line
from recompute.tools.arguments.opt_arguments import argument_parser, as_argparse_expects
from recompute.tools.help.completion import SHELLS, completion
from recompute.tools.instrumentation.reproducer import pipeline_in, reproducer
from recompute.tools.recompute_opt import main
from recompute.universe import RECOMPUTE_PASSES

STEP = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
"""


@dataclass(frozen=True)
class CrashingPass(ModulePass):
    """Mark the module, and raise an exception that is no diagnostic."""

    name = "crash"

    words: str = "no such\nkey"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["other.mark"] = StringAttr("made by crash")
        raise KeyError(self.words)


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Callable[[], type[ModulePass]]] = {**pipeline.known_passes(), "crash": lambda: CrashingPass}
    monkeypatch.setattr(command_line, "known_passes", lambda: known)


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    return path


@pytest.mark.parametrize("program", ["mlir-opt", "mlir-opt-of-another-name"])
def test_missing_program_of_a_pass_is_named(
    program: str, step: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main([str(step), "-p", f"mlir-opt{{executable={program}}}"]) == 2
    assert capsys.readouterr().err == (
        f"recompute-opt: error: the pass 'mlir-opt' runs the program '{program}', which is not found: install it, or "
        "give its path as mlir-opt{executable=PATH}\n"
    )


@pytest.mark.usefixtures("crash")
def test_crash_gives_one_error_line(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(step), "-p", "cse,crash"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"{step}:1:1: error: crash failed: KeyError: 'no such\\nkey' (a bug in the pass; ")


@pytest.mark.usefixtures("crash")
def test_traceback_is_printed_on_request(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(step), "-p", "crash", "--mlir-print-stacktrace-on-diagnostic"]) == 1
    assert "raise KeyError(self.words)" in capsys.readouterr().err


@pytest.mark.usefixtures("crash")
def test_crash_writes_its_ir_and_a_reproducer(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = step.with_name("saved.mlir")
    options = ["-p", 'crash{words="a \\"b\\""}', "--print-ir-after-failure", "--crash-reproducer", str(saved)]
    assert main([str(step), *options]) == 1
    error = capsys.readouterr().err
    assert "IR Dump After CrashingPass Failed (crash)" in error
    assert "made by crash" in error
    text = saved.read_text()
    assert "made by crash" not in text
    assert "stablehlo.sine" in text
    assert main([str(saved), "--run-reproducer"]) == 1
    assert "error: crash failed: KeyError: 'a \"b\"'" in capsys.readouterr().err


@pytest.mark.usefixtures("crash")
def test_every_part_of_a_split_file_is_processed(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step.write_text(f"{STEP}// -----\n{STEP}")
    assert main([str(step), "-split-input-file", "-p", "crash"]) == 1
    assert [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()] == ["error", "error"]


def test_split_markers_may_be_chosen(step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step.write_text(f"{STEP}// ====\n{STEP}")
    assert main(["--split-input-file=// ====", "--output-split-marker=// ~~~~", str(step)]) == 0
    first, second = capsys.readouterr().out.split("// ~~~~\n")
    assert first == second
    assert first.count("func.func") == 1


def test_pipeline_is_read_from_a_reproducer() -> None:
    assert pipeline_in(STEP) is None
    assert pipeline_in(reproducer(STEP, [], True)) == "builtin.module()"
    section = 'mlir_reproducer: { verify_each: true, pipeline: "builtin.module(a{b=\\"}\\"})" }'
    theirs = f"{{-# external_resources: {{ {section} }} #-}}"
    assert pipeline_in(theirs) == 'builtin.module(a{b="}"})'


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["-verify-diagnostics", "a.mlir"], ["--verify-diagnostics=all", "a.mlir"]),
        (["--verify-diagnostics=only-expected"], ["--verify-diagnostics=only-expected"]),
        (["-pass-pipeline=builtin.module(cse)"], ["--pass-pipeline=builtin.module(cse)"]),
        (["-pass-pipeline", "builtin.module(cse)"], ["--pass-pipeline", "builtin.module(cse)"]),
        (["-mlir-timing", "-"], ["--mlir-timing=tree", "-"]),
        (["-p", "cse", "-o", "-", "-v"], ["-p", "cse", "-o", "-", "-v"]),
        (["--", "-timing"], ["--", "-timing"]),
        (["-no-such-option"], ["-no-such-option"]),
    ],
)
def test_spellings_of_mlir_opt_are_accepted(given: list[str], read: list[str]) -> None:
    assert as_argparse_expects(argument_parser(), given) == read


def test_options_of_mlir_opt_without_effect_are_accepted(step: Path) -> None:
    output = step.with_name("out.mlir")
    options = ["--allow-unregistered-dialect", "--verify-each=false", "-mlir-print-op-generic", "-o", str(output)]
    assert main([str(step), *options]) == 0
    assert '"stablehlo.sine"(%x)' in output.read_text()


@pytest.mark.parametrize(
    "option", ["--mlir-disable-threading", "-mlir-disable-threading", "--mlir-disable-threading=true"]
)
def test_threading_can_be_disabled_without_effect(option: str, step: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, str(step)]) == 0
    assert "stablehlo.sine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("abbreviation", "option"),
    [("--print-ir-after-al", "--print-ir-after-all"), ("--disable", "--disable-verify")],
)
def test_abbreviated_options_are_rejected_with_a_suggestion(
    abbreviation: str, option: str, step: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main([str(step), abbreviation])
    assert exit.value.code == 2
    assert f"unknown option '{abbreviation}'; did you mean '{option}'?" in capsys.readouterr().err


def test_lists_name_passes_and_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-passes"]) == 0
    printed = capsys.readouterr().out
    ours, others = printed.split("\n\n")
    assert ours.startswith("Passes of recompute:\n") and others.startswith("Passes of xDSL and of other packages:\n")
    lines = {line.split()[0]: line.split(maxsplit=1)[-1] for line in printed.splitlines() if line.startswith("  ")}
    assert "  recompute" not in others and "  canonicalize" in others
    assert (
        lines["recompute-clone"]
        == "- copy the marked operations of each segment to the point where the gradient reads their results"
    )
    assert all(text for name, text in lines.items() if name.startswith("recompute"))
    assert "Pass()" not in printed
    assert main(["-show-dialects"]) == 0
    assert ",recompute,scf,sdy,stablehlo," in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_script_has_every_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    for action in argument_parser()._actions:
        for name in action.option_strings:
            assert (f"-l {name[2:]}" if shell == "fish" and name.startswith("--") else name.lstrip("-")) in script
    assert "recompute-clone" in script


@pytest.mark.skipif(which("bash") is None, reason="bash is not installed")
def test_bash_completes_options_and_passes(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(completion(argument_parser(), "bash", {"-p": ["recompute-mark", "cse"]}))
    lines = [
        f"source {script}",
        "COMP_WORDS=(recompute-opt --print-ir-bef); COMP_CWORD=1; _recompute_opt; echo ${COMPREPLY[@]}",
        "COMP_WORDS=(recompute-opt -p recompute-m); COMP_CWORD=2; _recompute_opt; echo ${COMPREPLY[@]}",
        "COMP_WORDS=(recompute-opt --remarks y); COMP_CWORD=2; _recompute_opt; echo ${COMPREPLY[@]}",
    ]
    printed = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["--print-ir-before --print-ir-before-all", "recompute-mark", "yaml"]


def test_dumps_of_unknown_passes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "missing.mlir")
    for option in ("--print-ir-before", "--mlir-print-ir-after"):
        with_typo = f"{option}=recompute-mark,recompute-clonee"
        assert main([missing, "-p", "recompute-mark,recompute-clone", with_typo]) == 2
        line = capsys.readouterr().err
        name = option.replace("--mlir", "-")
        assert f"{name}: unknown pass 'recompute-clonee'; did you mean 'recompute-clone'?" in line


def test_dumps_of_passes_that_do_not_run_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump of a pass that does not run gives a warning at the end, and exit code 0."""
    step, output = tmp_path / "step.mlir", str(tmp_path / "out.mlir")
    gradient = '  %g = stablehlo.sine %a {recompute.phase = "gradient"} : tensor<4xf32>\n'
    step.write_text(STEP.replace("  func.return %a", f"{gradient}  func.return %g"))
    assert main([str(step), "-p", "recompute", "--print-ir-after=recompute-clone", "-o", output]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "warning" in line] == [lines[-1]]
    assert lines[-1].startswith("recompute-opt: warning: --print-ir-after=recompute-clone prints nothing")
    assert "'recompute' does the work of several passes" in lines[-1]
    assert lines[-1].endswith(f"-pass-pipeline='builtin.module({','.join(RECOMPUTE_PASSES)})'")
    pipeline = lines[-1].rpartition(" -pass-pipeline=")[2].strip("'")
    assert main([str(step), f"-pass-pipeline={pipeline}", "--print-ir-after=recompute-clone", "-o", output]) == 0
    assert "IR Dump After ClonePass (recompute-clone)" in capsys.readouterr().err
    assert main([str(step), "-p", "recompute-inline", "--print-ir-before=recompute-inline", "-o", output]) == 0
    assert "warning" not in capsys.readouterr().err
