"""Bugs planted into the passes, each of which the random programs must detect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from recompute.analysis.step.step import Steps
from recompute.dialects.names import Names
from recompute.dialects.recompute import DependOp, TokenOp
from recompute.dialects.stablehlo.control import OptimizationBarrierOp
from recompute.rewriting import carry_out, emit
from recompute.support.operations import name_of
from recompute.transforms import clone, cse, lower

from .checks import CHECKS, EXECUTION
from .run import run_one

pytestmark = pytest.mark.slow

SEEDS = range(12)
Plant = Callable[[pytest.MonkeyPatch], None]
_NOT_SWAPPED = ("stablehlo.subtract", "stablehlo.divide")


def after(function: Callable[..., object], damage: Callable[[ModuleOp], None]) -> Callable[..., object]:
    """Return a function that calls `function` and then damages its result."""

    def damaged(module: ModuleOp, *options: object) -> object:
        result = function(module, *options)
        damage(module)
        return result

    return damaged


def copies_with_swapped_operands(patch: pytest.MonkeyPatch) -> None:
    def damage(module: ModuleOp) -> None:
        for op in module.walk():
            if Names.COPY in op.attributes and name_of(op) in _NOT_SWAPPED:
                op.operands = list(reversed(op.operands))

    patch.setattr(carry_out, "clone_marked", after(clone.clone_marked, damage))


def copies_merged_with_originals(patch: pytest.MonkeyPatch) -> None:
    """Merge copies with their originals, so that gradient operations read originals again."""

    def damage(module: ModuleOp) -> None:
        originals = {op.attributes[Names.ID]: op for op in module.walk() if _is_original(op)}
        for op in [op for op in module.walk() if Names.COPY in op.attributes]:
            if (original := originals.get(op.attributes[Names.ID])) is not None:
                for copy, value in zip(op.results, original.results, strict=True):
                    copy.replace_all_uses_with(value)

    patch.setattr(emit, "cse", after(cse.cse, damage))


def _is_original(op: Operation) -> bool:
    return Names.ID in op.attributes and Names.COPY not in op.attributes


def copies_without_attributes(patch: pytest.MonkeyPatch) -> None:
    """Remove tokens and attributes, so that nothing distinguishes copies from originals."""

    def damage(module: ModuleOp, target: str) -> None:
        lower.lower(module, "none")
        for op in module.walk():
            for name in [name for name in op.attributes if name.startswith(Names.PREFIX)]:
                del op.attributes[name]

    patch.setattr(emit, "lower", damage)
    _without_verification(patch)


def barriers_without_gates(patch: pytest.MonkeyPatch) -> None:
    """Drop tokens during lowering, so that the copies could run in the forward pass."""

    def damage(module: ModuleOp, target: str) -> None:
        for token in [op for op in module.walk() if isinstance(op, TokenOp)]:
            for depend in [use.operation for use in token.token.uses]:
                assert isinstance(depend, DependOp)
                _replace(depend, OptimizationBarrierOp(depend.values), depend.delayed)
            token.detach()
            token.erase()

    patch.setattr(emit, "lower", damage)
    _without_verification(patch)


def _replace(old: Operation, new: Operation, results: Sequence[SSAValue]) -> None:
    block = old.parent
    assert block is not None
    new.location = old.location
    block.insert_op_before(new, old)
    for value, replacement in zip(results, new.results, strict=True):
        value.replace_all_uses_with(replacement)
    old.detach()
    old.erase()


def _without_verification(patch: pytest.MonkeyPatch) -> None:
    def nothing(module: ModuleOp, steps: Steps | None = None) -> None: ...

    patch.setattr(emit, "verify", nothing)


@pytest.mark.parametrize(
    ("plant", "found_by"),
    [
        (copies_with_swapped_operands, {"proved", "executed"}),
        (copies_merged_with_originals, {"refusal"}),
        (copies_without_attributes, {"later cleanups"}),
        (barriers_without_gates, {"gated", "verifies"}),
    ],
)
def test_planted_bugs_are_detected(plant: Plant, found_by: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    checks = {name: first for name, first in (CHECKS | EXECUTION).items() if name in found_by}
    actual = {problem.check for seed in SEEDS for problem in run_one(seed, checks)[2].problems}
    assert actual == found_by
