"""The example steps for tests, parsed, inlined and recomputed once for all. They are shared: clone before changing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.functions import functions_of
from recompute.analysis.phases import Phases, phases
from recompute.dialects.parser import parse_module
from recompute.transforms.inline import inline
from recompute.transforms.recompute import recompute

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "stablehlo"
SMALL = sorted(path.name for path in FOLDER.glob("*.small.mlir"))
# Large shapes and what `jax.checkpoint` adds are as in the small plain steps, so a few examples stand for all.
REPRESENTATIVE = ("chain", "gpt", "gpt_train", "mlp")
LARGE = [f"{name}.large.mlir" for name in REPRESENTATIVE]
CHECKPOINT = [f"{name}.small.checkpoint.mlir" for name in REPRESENTATIVE]
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
def recomputed(name: str) -> ModuleOp:
    """By the whole pipeline with its defaults, barriers included."""
    module = original(name).clone()
    assert recompute(module).copies > 0
    return module


def classified(module: ModuleOp) -> Phases:
    found = phases(functions_of(module)[0])
    assert found is not None
    return found
