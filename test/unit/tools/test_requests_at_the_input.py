"""Diagnostics about options and functions are located in the input file, not in the source of its locations."""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.test.excerpts import diagnostics_of
from recompute.tools.recompute_check import main as check
from recompute.tools.recompute_opt import main as opt
from recompute.tools.recompute_plan import main as plan
from recompute.tools.recompute_run import main as run

T = "tensor<4xf32>"
# As JAX writes it: operations have positions in the model, the module and its functions have none.
STEP = f"""\
#unknown = loc(unknown)
module @jit_step {{
  func.func public @main(%x: {T}, %ct: {T}) -> ({T}, {T}) {{
    %a = stablehlo.sine %x : {T} loc("jit(f)/jvp(block0)/sin"("model.py":3:4))
    %b = stablehlo.tanh %a : {T} loc("jit(f)/jvp(block0)/tanh"("model.py":4:4))
    %g = stablehlo.multiply %ct, %b : {T} loc("jit(f)/transpose(jvp())/mul"("model.py":5:4))
    %h = stablehlo.multiply %g, %a : {T} loc("jit(f)/transpose(jvp(block0))/mul"("model.py":3:4))
    return %b, %h : {T}, {T} loc(#unknown)
  }} loc(#unknown)
}} loc(#unknown)
"""

# options of `recompute` -> line:column, and what the error says
OPTIONS = {
    "policy=dots": ("1:1", "unknown policy 'dots'; did you mean 'dots_saveable'?"),
    "policy=sometimes": ("1:1", "unknown policy 'sometimes'; expected one of nothing_saveable, everything_saveable"),
    "policy=save_only_these_names": (
        "1:1",
        "policy save_only_these_names saves only values with given names, but no names are given",
    ),
    "budget=50% memory-model=xl": ("1:1", "unknown memory model 'xl'; did you mean 'xla'?"),
    "memory-model=foo": ("1:1", "unknown memory model 'foo'; expected one of order, xla"),
    "budget=-5KiB": ("1:1", "invalid budget '-5KiB': a budget must be positive"),
    "budget=-2.5GiB": ("1:1", "invalid budget '-2.5GiB': a budget must be positive"),
    "time-limit=-1 budget=50%": ("1:1", "time-limit must be a positive number of seconds, not -1"),
    "time-limit=5": (
        "1:1",
        "recompute: time-limit has no effect without budget: give budget as well, or omit time-limit",
    ),
    "memory-model=order": (
        "1:1",
        "recompute: memory-model has no effect without budget: give budget as well, or omit memory-model",
    ),
    "target=stable": ("1:1", "unknown target 'stable'; did you mean 'stablehlo'?"),
    "cost=flop": ("1:1", "unknown cost 'flop'; expected one of flops, bytes, roofline"),
    "cost=roofline(h10)": ("1:1", "unknown device 'h10'; expected one of a100, h100"),
    "plan=missing.json": ("1:1", "the plan file missing.json cannot be read"),
    "attempts=0": ("1:1", "attempts must be at least 1, not 0"),
    "loops=twice": ("1:1", "loops must be true, false, keep(50%)"),
    "repeatable=mine": ("1:1", "repeatable: 'mine' matches no custom call"),
    "segments=block7": ("3:3", "no segment matches 'block7'"),
    "checkpoints=nowhere": ("3:3", "checkpoint 'nowhere' names no operation of the forward pass"),
    "skip=4": ("3:3", "there is no segment 4 to skip"),
    "primal-results=9": ("3:3", "primal-results=9 is out of range: the function has 2 results, numbered from 0"),
    "primal-values=z": ("3:3", "primal-values: no value is named 'z'"),
    "segment-budgets=head:1KiB": ("3:3", "segment-budgets: no segment matches 'head'"),
    "budget=1B": ("3:3", "no plan is within the budget of 1B"),
    "budget=1% memory-model=order": ("3:3", "no plan is within the budget of 1% (1 B of "),
}


@pytest.fixture
def step(tmp_path: Path) -> str:
    path = tmp_path / "step.mlir"
    path.write_text(STEP)
    return str(path)


@pytest.mark.parametrize("options", OPTIONS)
def test_option_errors_are_located_in_the_input(options: str, step: str, capsys: pytest.CaptureFixture[str]) -> None:
    position, words = OPTIONS[options]
    assert opt([step, "-p", f"recompute{{{options}}}"]) == 1
    (line,) = diagnostics_of(capsys.readouterr().err)
    assert line.startswith(f"{step}:{position}: error: {words}")


def test_option_errors_are_located_in_generic_form(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generic = str(tmp_path / "generic.mlir")
    assert opt([step, "--print-op-generic", "-o", generic]) == 0
    assert opt([generic, "-p", "recompute{skip=4}"]) == 1
    assert capsys.readouterr().err.startswith(f"{generic}:2:3: error: there is no segment 4 to skip")


@pytest.mark.parametrize("options", ["names=foo", "names=foo policy=save_only_these_names"])
def test_names_without_effect_are_reported_once(options: str, step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt([step, "-p", f"recompute{{{options}}}"]) == 0
    assert capsys.readouterr().err.count("remark: names") == 1


@pytest.mark.parametrize("pipeline", ["recompute", "recompute-mark", "recompute-plan"])
def test_unknown_checkpoint_is_reported_at_the_function_that_states_it(
    pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """func.func @{name}(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32>{attributes} {{
  %a = stablehlo.sine %x {{recompute.phase = "primal"}} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %a {{recompute.phase = "gradient"}} : tensor<4xf32>
  func.return %g : tensor<4xf32>
}}
"""
    path = tmp_path / "two.mlir"
    stating = ' attributes {recompute.checkpoints = "zz"}'
    path.write_text(text.format(name="first", attributes="") + text.format(name="second", attributes=stating))
    assert opt([str(path), "-p", pipeline]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:6:1: error: checkpoint 'zz' names no operation")


def test_remarks_on_the_whole_step_are_at_the_input(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt([step, "-p", "recompute{save=nothing}"]) == 0
    first, second = diagnostics_of(capsys.readouterr().err)
    assert first == f"{step}:3:3: remark: save=nothing saves nothing: it matches no operation of a segment"
    assert second.startswith(f"{step}:3:3: remark: recomputing changes the peak from 32 bytes to 32 bytes")


def test_remarks_on_operations_are_in_the_model(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(step).write_text(STEP.replace("tanh %a", "tanh %a {recompute.recompute = true}"))
    assert opt([step, "-p", "recompute-mark{segments=none},recompute-clone"]) == 0
    assert "model.py:4:4: remark: " in capsys.readouterr().err


def test_other_tools_locate_errors_at_the_function(step: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = f"{step}:1:1: error: there is no function 'man'; did you mean 'main'?\n"
    assert run([step, "--function", "man"]) == 1
    assert capsys.readouterr().err == error
    assert check([step, step, "--execute", "--function", "man"]) == 2
    assert capsys.readouterr().err == error


def test_recompute_plan_locates_a_step_without_gradient(
    step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step without a gradient is refused at its function."""
    forward = tmp_path / "forward.mlir"
    forward.write_text(STEP.replace("transpose(jvp", "again((jvp"))
    assert plan([str(forward), "--sweep", "2"]) == 2
    assert capsys.readouterr().err.startswith(f"{forward}:3:3: error: no gradient found")


def test_missing_function_error_names_its_file(step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the second program if only the first one has the function."""
    other = tmp_path / "other.mlir"
    other.write_text(STEP.replace("@main", "@step"))
    assert check([step, str(other), "--execute", "--function", "main"]) == 2
    assert capsys.readouterr().err.startswith(f"{other}:1:1: error: there is no function 'main'")
