"""A rewritten step obeys these rules on every example at both sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.residuals import residuals
from recompute.dialects.context import make_context
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.operations import name_of
from recompute.test.examples import (
    FOLDER,
    PEAK_IN_UPDATE,
    PLAIN,
    SMALL,
    classified,
    original,
    peaks_after,
    peaks_before,
    peaks_of,
    phases_after,
    recomputed,
    with_calls,
    with_tokens,
)
from recompute.transforms.inline import inline
from recompute.transforms.lower import lower
from recompute.transforms.verify import verify

pytestmark = pytest.mark.slow

# Temporaries after / before in program order, from below the value measured when the test was written.
BARS = {"chain": 0.35, "mlp": 0.85, "gpt": 0.55, "gpt_train": 0.55}


@dataclass(frozen=True)
class SavedValue:
    """What recomputing again must not change: the residual set, named by location, and the peak."""

    residuals: tuple[tuple[str, str], ...]
    peak_bytes: int


def holding(module: ModuleOp) -> SavedValue:
    classes = classified(module)
    values = (residual.value for residual in residuals(classes))
    names = sorted((name_of(value.owner), str(value.type)) for value in values)  # pyright: ignore[reportArgumentType]
    return SavedValue(tuple(names), timeline(functions_of(module)[0], classes).peak_bytes)


def clean_three_times(module: ModuleOp) -> None:
    context = make_context()
    for _ in range(3):
        for cleanup in (CommonSubexpressionElimination(), CanonicalizePass(), DeadCodeElimination()):
            cleanup.apply(context, module)


@pytest.mark.parametrize("name", PLAIN)
def test_peak_falls_and_result_is_proved(name: str) -> None:
    assert prove(original(name), recomputed(name))
    before, after = peaks_before(name), peaks_after(name)
    assert after.in_order < before.in_order or (name == PEAK_IN_UPDATE and after.xla < 0.75 * before.xla)
    if ".large" in name:
        assert after.in_order <= BARS[name.split(".")[0]] * before.in_order


def test_step_without_peak_reduction_is_unchanged() -> None:
    """A step is unchanged if its optimizer update needs as much as its backward pass; only XLA would need less."""
    plain = original(PEAK_IN_UPDATE)
    module = plain.clone()
    assert (
        rewrite_in_place(module, RecomputeOptions(target="none"))
        .remarks[-1]
        .reason.endswith("the step is left as it is")
    )
    assert print_module(module, debuginfo=True) == print_module(plain, debuginfo=True)


@pytest.mark.slow("gpt_train", "gpt.large")
@pytest.mark.parametrize("name", PLAIN)
def test_r9_later_cleanups_find_nothing_before_lowering(name: str) -> None:
    module = with_tokens(name).clone()
    held = holding(module)
    clean_three_times(module)
    assert holding(module) == held
    verify(module)


@pytest.mark.slow("gpt_train")
@pytest.mark.parametrize("name", PLAIN)
def test_r9_later_cleanups_find_nothing_after_lowering(name: str) -> None:
    module = recomputed(name).clone()
    held = holding(module)
    clean_three_times(module)
    assert holding(module) == held
    verify(module)


@pytest.mark.slow("gpt_train")
@pytest.mark.parametrize("name", PLAIN)
def test_r12_a_second_run_changes_nothing(name: str) -> None:
    module = recomputed(name).clone()
    once = print_module(module, debuginfo=True)
    again = rewrite_in_place(module)
    assert again.copies == 0
    assert print_module(module, debuginfo=True) == once


@pytest.mark.slow("gpt_train", "unet", "branches")
@pytest.mark.parametrize("name", SMALL)
def test_restored_calls_keep_peaks(name: str) -> None:
    """The result with calls, read from its text, has the same peaks and copies."""
    module = with_calls(name)
    assert prove(original(name), module)
    text = print_module(module, debuginfo=True)
    again = parse_module(text, name)
    assert rewrite_in_place(again).copies == 0
    assert print_module(again, debuginfo=True) == text
    inline(again)
    peaks = peaks_of(again)
    assert (peaks.in_order, peaks.eager) == (peaks_after(name).in_order, peaks_after(name).eager)
    assert len(text) <= 1.05 * len(print_module(recomputed(name), debuginfo=True))
    called = [sum(isinstance(op, CallOp) for op in item.walk()) for item in (original(name), module, recomputed(name))]
    assert called[0] <= called[1] and called[2] == 0


def test_without_attributes_cse_merges_copies() -> None:
    """Without attributes and tokens, CSE merges copies with originals, so that the check of kept copies can fail."""
    module = with_tokens("chain.large.mlir").clone()
    lower(module, "none")
    for op in module.walk():
        for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
            del op.attributes[name]
    held = holding(module).peak_bytes
    clean_three_times(module)
    assert holding(module).peak_bytes > 1.5 * held


@pytest.mark.parametrize("name", PLAIN)
def test_phases_of_copies_follow_from_their_locations(name: str) -> None:
    result = phases_after(name)
    copies = [op for op in result.order.operations if Names.COPY in op.attributes]
    assert copies
    assert all(result.phase[op] == "gradient" for op in copies)


@pytest.mark.slow
def test_output_is_equal_in_two_runs_and_two_processes() -> None:
    script = (
        "import sys; from recompute.tools.recompute_opt import main; "
        "sys.exit(main([sys.argv[1], '-p', 'recompute', '--print-debuginfo']))"
    )
    path = str(FOLDER / "gpt_train.small.mlir")
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script, path],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    module = parse_module((FOLDER / "gpt_train.small.mlir").read_text(), path)
    rewrite_in_place(module)
    assert print_module(module, debuginfo=True).encode() == outputs[0]
