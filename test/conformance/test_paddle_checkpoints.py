"""Checkpoints on Paddle's own fixture: the backward operations that its tests expect."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.selection import Selection
from recompute.dialects.printer import print_module
from recompute.interpreters.prove import prove
from recompute.test.conformance.fixture import backward_operations, fixture
from recompute.test.conformance.programs import chain
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.mark import mark
from recompute.transforms.verify import verify

# Checkpoints, and the backward operations in Paddle's test of them.
EXPECTED: dict[tuple[str, ...], str] = {
    ("b1_out",): "mean_grad add_grad mul* add_grad mul_grad",
    ("mul_out", "b2_out"): "mean_grad add* add_grad add_grad mul_grad",
    ("mul_out", "b1_out"): "mean_grad add_grad add_grad mul_grad",
}


def with_checkpoints(module: ModuleOp, *checkpoints: str) -> ModuleOp:
    after = module.clone()
    mark(after, Selection(checkpoints=checkpoints))
    clone(after)
    cse(after)
    verify(after)
    assert prove(module, after).proved
    return after


@pytest.mark.parametrize("checkpoints", EXPECTED)
def test_paddle_01_segments_between_checkpoints(checkpoints: tuple[str, ...]) -> None:
    after = with_checkpoints(fixture("a", "b", "c"), *checkpoints)
    assert backward_operations(after) == EXPECTED[checkpoints].split()


LAYERS = ["exponential", "sqrt", "exponential", "tanh"]


def test_paddle_04_order_and_duplicates_do_not_matter() -> None:
    module = chain(LAYERS, 4, forward_too=True)
    lists = (("v0x3", "v2x3"), ("v2x3", "v0x3"), ("v0x3", "v2x3", "v0x3"))
    texts = {print_module(with_checkpoints(module, *names), debuginfo=True) for names in lists}
    assert len(texts) == 1
