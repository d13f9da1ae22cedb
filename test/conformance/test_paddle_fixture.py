"""Backward operations that Paddle's own tests expect of Paddle's fixture, with scopes as segments."""

from __future__ import annotations

import pytest

from recompute.proof.prove import prove
from recompute.test.conformance.fixture import backward_operations, fixture
from recompute.test.conformance.programs import cloned, tokens_in

# Checkpoints of Paddle's test, the scopes that are the same segments, and what it expects.
EXPECTED = {
    "b1_out": (("segment", "segment", "tail"), "mean_grad add_grad mul* add_grad mul_grad"),
    "mul_out and b2_out": (("prefix", "segment", "segment"), "mean_grad add* add_grad add_grad mul_grad"),
    "input and b2_out": (("segment", "segment", "segment"), "mean_grad mul* add* add_grad add_grad mul_grad"),
    "mul_out and b1_out": (("prefix", "segment", "tail"), "mean_grad add_grad add_grad mul_grad"),
}


@pytest.mark.parametrize(("scopes", "expected"), EXPECTED.values(), ids=EXPECTED)
def test_backward_operations_equal_those_paddle_expects(scopes: tuple[str, str, str], expected: str) -> None:
    module = fixture(*scopes)
    after = cloned(module, "[ps]*")
    assert backward_operations(module) == "mean_grad add_grad add_grad mul_grad".split()
    assert backward_operations(after) == expected.split()
    assert len(tokens_in(after)) == ("*" in expected)
    assert prove(module, after).proved
