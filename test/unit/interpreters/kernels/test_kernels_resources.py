"""Constants with dense resources have the elements of the resources, or are refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

KNOWN = "0x040000000000803F00000040"
"""The alignment 4, and the elements 1.0 and 2.0."""


def run(kind: str, content: str | None, dialect: str = "stablehlo") -> Array:
    name = "__elided__" if content is None else "weights"
    attribute = f"dense_resource<{name}> : {kind}"
    constant = f"{dialect}.constant {attribute}"
    section = f'\n{{-# dialect_resources: {{builtin: {{weights: "{content}"}}}} #-}}' if content is not None else ""
    text = f"func.func @f() -> {kind} {{\n  %r = {constant}\n  func.return %r : {kind}\n}}{section}\n"
    (result,) = execute(function_named(parse_module(text), "f"), [])
    return result


@pytest.mark.parametrize("dialect", ["stablehlo", "arith"])
@pytest.mark.parametrize(
    ("kind", "content", "elements"),
    [
        ("tensor<2xf32>", KNOWN, [1.0, 2.0]),
        ("tensor<2x2xf16>", "0x02000000003C00400044007e", [[1.0, 2.0], [4.0, float("nan")]]),
        ("tensor<3xi16>", "0x020000000100FFFF0080", [1, -1, -32768]),
        ("tensor<f32>", "0x040000000000803F", 1.0),
        ("tensor<2xf32>", "0x040000000000803F0000803F", [1.0, 1.0]),
    ],
)
def test_elements_are_read_in_row_major_order(kind: str, content: str, elements: object, dialect: str) -> None:
    np.testing.assert_array_equal(run(kind, content, dialect), np.array(elements))


def test_two_runs_share_no_memory() -> None:
    first = run("tensor<2xf32>", KNOWN)
    first[0] = 7.0
    assert run("tensor<2xf32>", KNOWN)[0] == 1.0


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        (
            "tensor<2xf32>",
            None,
            "the content of the resource '__elided__' is unknown; give the program with its section",
        ),
        ("tensor<3xf32>", KNOWN, r"the resource 'weights\w*' has 8 bytes, but the type tensor<3xf32> needs 12"),
        ("tensor<8xi1>", KNOWN, "has elements that are narrower than a byte; write a constant instead"),
    ],
)
def test_unreadable_resources_are_refused_with_the_reason(kind: str, content: str | None, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        run(kind, content)
