"""Example steps for tests, in each form, parsed and recomputed once for all tests.

They are shared: clone them before changing them. With pytest-xdist one process runs all tests of an example
(test/scheduling.py).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import Phases, phases
from recompute.analysis.step.step import Step
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import Recomputation, rewrite_in_place
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline import inline
from recompute.transforms.verify import verify

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "stablehlo"
SMALL = sorted(path.name for path in FOLDER.glob("*.small.mlir"))
# Large shapes and what `jax.checkpoint` adds are as in the small plain steps, so a few examples stand for all.
REPRESENTATIVE = ("chain", "gpt", "gpt_train", "mlp")
LARGE = [f"{name}.large.mlir" for name in REPRESENTATIVE]
CHECKPOINT = [f"{name}.small.checkpoint.mlir" for name in REPRESENTATIVE]
# Other examples contain these: cases of theirs are slow tests.
CONTAINED = tuple(f"{name}.small" for name in ("gpt", "gpt_bf16", "paddle_fleet", "mindspore_attention"))
# Their peak in program order is in the update, and stays; only XLA, which updates in place, needs less.
PEAK_IN_UPDATE = "paddle_fc.small.mlir"
PLAIN = sorted({*SMALL, *LARGE})


@cache
def original(name: str) -> ModuleOp:
    return parse_module((FOLDER / name).read_text(), name)


@cache
def inlined(name: str) -> ModuleOp:
    module = original(name).clone()
    inline(module)
    return module


@cache
def with_tokens(name: str) -> ModuleOp:
    """Return the example recomputed by the policy, whether or not it saves memory, before tokens become barriers."""
    module = inlined(name).clone()
    mark(module)
    clone(module)
    cse(module)
    verify(module)
    return module


def recomputed(name: str) -> ModuleOp:
    """Return the example recomputed by the whole pipeline, inlined. A step with `jax.checkpoint` may have enough
    copies."""
    return _recomputed(name)[0]


def outcome_of(name: str) -> Recomputation:
    """Return the outcome of the recomputation, with its remarks."""
    return _recomputed(name)[1]


@cache
def _recomputed(name: str) -> tuple[ModuleOp, Recomputation]:
    module = original(name).clone()
    result = rewrite_in_place(module, RecomputeOptions(calls=False))
    assert result.copies > 0 or ".checkpoint" in name
    return module, result


@cache
def with_calls(name: str) -> ModuleOp:
    """Return the example recomputed with default options, with its calls restored."""
    module = original(name).clone()
    rewrite_in_place(module)
    return module


@cache
def phases_after(name: str) -> Phases:
    return classified(recomputed(name))


@cache
def peaks_before(name: str) -> Peaks:
    return peaks_of(inlined(name))


@cache
def peaks_after(name: str) -> Peaks:
    return peaks_of(recomputed(name))


def peaks_of(module: ModuleOp) -> Peaks:
    """Return the peaks of the first function with a gradient, without recomputation. The module must be inlined."""
    step = Step.of(classified(module))
    return Peaks.of(step.graph, lambda: xla_timeline(functions_of(module)[0]).peak_bytes)


def classified(module: ModuleOp) -> Phases:
    actual = phases(functions_of(module)[0])
    assert actual is not None
    return actual
