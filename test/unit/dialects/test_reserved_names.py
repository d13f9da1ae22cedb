"""Functions that a consumer of the program finds by name keep their names and calls."""

from __future__ import annotations

import pytest

from recompute.dialects.context import make_context
from recompute.dialects.reserved_names import RESERVED_NAMES, is_reserved, reserved_name
from recompute.mlir_io.parser import parse_module
from recompute.transforms.inline import InlinePass, inline

BODY = "xla.sdy.manual_computation_body"
INLINABLE = "xla.sdy.inlinable_manual_computation_body"


@pytest.mark.parametrize("name", [BODY, INLINABLE, f"{BODY}_0", f"{BODY}.3", f"{INLINABLE}_17", f"outer_{BODY}"])
def test_names_of_the_round_trip_are_reserved(name: str) -> None:
    assert is_reserved(name)


@pytest.mark.parametrize("name", ["main", "relu", "shmap_body", "shmap_body_0", "manual_computation_body", "xla.sdy"])
def test_other_names_are_not_reserved(name: str) -> None:
    assert not is_reserved(name)


def test_entries_are_found_by_name_and_cite_source() -> None:
    for entry in RESERVED_NAMES:
        assert reserved_name(entry.part) is entry
        assert "openxla/xla: k" in entry.source


PROGRAM = f"""
func.func @main(%x: f32) -> f32 {{
  %0 = func.call @{BODY}(%x) : (f32) -> f32 loc("a.py":3:4)
  %1 = func.call @{BODY}(%0) : (f32) -> f32 loc("a.py":5:4)
  func.return %1 : f32
}}
func.func private @{BODY}(%x: f32) -> f32 {{
  %0 = math.tanh %x : f32
  func.return %0 : f32
}}
func.func private @{INLINABLE}(%x: f32) -> f32 {{
  func.return %x : f32
}}
"""


def test_inliner_skips_reserved_functions_with_one_remark() -> None:
    module, context = parse_module(PROGRAM), make_context()
    InlinePass().apply(context, module)
    assert str(module) == str(parse_module(PROGRAM))
    (remark,) = context.remarks
    assert str(remark) == (
        f"a.py:3:4: remark: the call to '{BODY}' is neither inlined nor recomputed: XLA's Shardy round trip turns the "
        "call into a manual computation, by its name"
    )


def test_the_same_functions_under_other_names_are_inlined() -> None:
    module = parse_module(PROGRAM.replace("xla.sdy.", "xla_sdy_"))
    assert inline(module) == 2
    assert "call" not in str(module)
