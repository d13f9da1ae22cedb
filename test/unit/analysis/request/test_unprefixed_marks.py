"""Attributes that look like marks without their prefix are reported once per name, with a count."""

from __future__ import annotations

import pytest

from recompute.analysis.request.unprefixed_marks import unprefixed_marks
from recompute.mlir_io.parser import parse_module

T = "tensor<4xf32>"


def remarks(attributes: str) -> list[str]:
    body = "\n".join(f"  %{i + 1} = math.sin %{i} {{{attributes}}} : {T}" for i in range(3))
    module = parse_module(f"func.func @f(%0: {T}) -> {T} {{\n{body}\n  func.return %3 : {T}\n}}", "step.mlir")
    return list(map(str, unprefixed_marks(module)))


def test_each_name_is_reported_once_at_its_first_operation() -> None:
    begin = "step.mlir:2:8: remark: the attribute"
    assert remarks("recompute = true, duplicated, need_cse") == [
        f"{begin} 'recompute' of 3 operations has no effect; did you mean 'recompute.recompute'?",
        f"{begin} 'duplicated' of 3 operations has no effect; did you mean 'recompute.duplicated'?",
        f"{begin} 'need_cse' of 3 operations has no effect; did you mean 'recompute.need_cse'?",
    ]


def test_phase_is_a_mark_only_with_the_value_of_one() -> None:
    (remark,) = remarks('phase = "gradient"')
    assert remark.endswith("did you mean 'recompute.phase'?")


@pytest.mark.parametrize(
    "attributes", ["recompute.recompute = true", 'phase = "solid"', 'name = "a", id = 3, segment = "s"', "copy"]
)
def test_attributes_of_other_dialects_are_not_reported(attributes: str) -> None:
    assert remarks(attributes) == []
