"""Attributes that no pass reads where they are cause one remark for each kind, with a count."""

from __future__ import annotations

import pytest

from recompute.analysis.request.misplaced_marks import misplaced_marks
from recompute.dialects.context import RecomputeContext, make_context
from recompute.mlir_io.parser import parse_module
from recompute.rewriting.recompute import RecomputePass

T = "tensor<4xf32>"
CALL = "stablehlo.custom_call @mine(%1) {{recompute.repeatable{}}} : ({}) -> {}"


def function(attributes: str = "", *, argument: str = "", of_function: str = "", operation: str = "") -> str:
    """Return a function with attributes on its three sines, on its argument and on itself, and with an operation."""
    body = "\n".join(f"  %{i + 1} = stablehlo.sine %{i} {{{attributes}}} : {T}" for i in range(3))
    stated = f" attributes {{{of_function}}}" if of_function else ""
    return f"func.func @f(%0: {T} {{{argument}}}) -> {T}{stated} {{\n{body}\n  {operation}\n  func.return %3 : {T}\n}}"


def remarks(text: str) -> list[str]:
    return list(map(str, misplaced_marks(parse_module(text, "step.mlir"))))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("preserve_rng_state", " = false", "only recompute.segment reads it"),
        ("mp_comm_recompute", " = true", "only recompute.segment reads it"),
        ("parallel_optimizer_comm_recompute", " = true", "only recompute.segment reads it"),
        ("repeatable", "", "it applies only to collectives, to custom calls without side effects, and to"),
    ],
)
def test_each_attribute_is_reported_once_at_its_first_operation(name: str, value: str, reason: str) -> None:
    (remark,) = remarks(function(f"recompute.{name}{value}"))
    begin = "step.mlir:2:8: remark: the attribute"
    assert remark.startswith(f"{begin} 'recompute.{name}' of 3 operations has no effect: {reason}")


@pytest.mark.parametrize("name", ["duplicated", "need_cse"])
def test_attributes_of_copies_are_reported_on_operations_that_are_none(name: str) -> None:
    (remark,) = remarks(function(f"recompute.{name}"))
    assert remark == (
        f"step.mlir:2:8: remark: the attribute 'recompute.{name}' of 3 operations has no effect: the passes write it "
        "on the copies that they make; to recompute an operation, use recompute.recompute = true"
    )
    assert not remarks(function(f"recompute.{name}, recompute.copy = 1 : i64, recompute.id = 1 : i64"))


@pytest.mark.parametrize(
    ("attribute", "remedy"),
    [
        ("recompute = true", "mark the operations to recompute"),
        ('segment = "block"', "give it to the operations of the segment"),
        ('phase = "gradient"', "give it to the operations of the phase"),
        ('name = "hidden"', "give it to the operations whose results it names"),
    ],
)
def test_attributes_of_operations_are_reported_on_functions_and_modules(attribute: str, remedy: str) -> None:
    name = attribute.split()[0]
    assert remarks(function(of_function=f"recompute.{attribute}")) == [
        f"step.mlir:1:1: remark: the attribute 'recompute.{name}' of 1 function has no effect: {remedy}"
    ]
    assert remarks(f"module attributes {{recompute.{attribute}}} {{\n{function()}\n}}") == [
        f"step.mlir:1:1: remark: the attribute 'recompute.{name}' of 1 module has no effect: {remedy}"
    ]


@pytest.mark.parametrize("name", ["recompute", "name"])
def test_attribute_of_an_argument_is_reported_at_the_function(name: str) -> None:
    assert remarks(function(argument=f'recompute.{name} = "a"')) == [
        f"step.mlir:1:1: remark: the attribute 'recompute.{name}' of 1 argument has no effect: only attributes of "
        "operations are read"
    ]


def test_repeatable_call_with_a_side_effect_is_reported() -> None:
    (remark,) = remarks(function(operation=f"%m = {CALL.format(', has_side_effect = true', T, T)}"))
    assert "'recompute.repeatable' of 1 operation has no effect" in remark


@pytest.mark.parametrize(
    "text",
    [
        function('recompute.recompute = true, recompute.name = "a", recompute.segment = "s"'),
        function(operation=f"%m = {CALL.format('', T, T)}"),
        function(argument="tf.aliasing_output = 0 : i32", of_function='recompute.checkpoints = "a"'),
        function(
            operation=f'%m = recompute.segment "a" attributes {{recompute.mp_comm_recompute = true, '
            f"recompute.preserve_rng_state = false}} {{\n  %b = stablehlo.tanh %1 : {T}\n"
            f"  recompute.yield %b : {T}\n}} : {T}"
        ),
    ],
)
def test_attributes_that_are_read_get_no_remark(text: str) -> None:
    assert remarks(text) == []


def test_recompute_reports_them() -> None:
    text = f"""func.func @step(%x: {T} {{recompute.recompute = true}}, %ct: {T}) -> {T} {{
  %a = stablehlo.sine %x {{recompute.phase = "primal"}} : {T}
  %g = stablehlo.multiply %ct, %a {{recompute.phase = "gradient"}} : {T}
  func.return %g : {T}
}}"""
    context = make_context()
    assert isinstance(context, RecomputeContext)
    RecomputePass().apply(context, parse_module(text))
    assert any("'recompute.recompute' of 1 argument has no effect" in remark.reason for remark in context.remarks)
