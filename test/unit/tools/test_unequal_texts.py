"""Pairs of files that differ in a detail: `recompute-check` refuses them, or reports a difference.

Each was once "proved equal": numbers and aliases that the reader changed, and parts that the proof did not look at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from recompute.tools.recompute_check import main

T = "tensor<4xf32>"


def constant(value: str, type_: str) -> str:
    return f"func.func @main() -> {type_} {{\n  %c = arith.constant {value} : {type_}\n  return %c : {type_}\n}}\n"


def returning_x(*lines: str, others: str = "") -> str:
    body = "\n  ".join([*lines, f"return %x : {T}"])
    return f"func.func @main(%x: {T}) -> {T} {{\n  {body}\n}}\n{others}"


def custom_call(attribute: str, *aliases: str) -> str:
    call = f"%a = stablehlo.custom_call @foo(%x) {{k = {attribute}}} : ({T}) -> {T}"
    return "\n".join([*aliases, returning_x(call)])


def normalized(epsilon: str) -> str:
    names = ("scale", "offset", "mean", "variance")
    arguments = ", ".join(f"%{name}: tensor<4xf32>" for name in names)
    operands = ", ".join(f"%{name}" for name in names)
    return f"""func.func @main(%x: tensor<2x4xf32>, {arguments}) -> tensor<2x4xf32> {{
  %a = "stablehlo.batch_norm_inference"(%x, {operands}) <{{epsilon = {epsilon} : f32, feature_index = 1 : i64}}>
    : (tensor<2x4xf32>, {", ".join(["tensor<4xf32>"] * 4)}) -> tensor<2x4xf32>
  return %a : tensor<2x4xf32>
}}
"""


def side_effect(attributes: str = "", of_function: str = "") -> str:
    log = f"stablehlo.custom_call @log(%p) {{has_side_effect = true}} : ({T}) -> ()"
    function = f"func.func private @g(%p: {T}){of_function} {{\n  {log}\n  return\n}}\n"
    return returning_x(f"call @g(%x) {attributes}: ({T}) -> ()", others=function)


def unknown(inside: str) -> str:
    return returning_x(f'"foo.bar"(%x) ({{\n  ^bb0(%v: {T}):\n  {inside}\n  }}) : ({T}) -> ()')


def device(around: str, inside: str) -> str:
    use = '"foo.use"(%d) : (tensor<ui32>) -> ()'
    return returning_x(around, f'"foo.bar"() ({{\n  {inside}{use}\n  }}) : () -> ()')


DEVICE = "%d = stablehlo.partition_id : tensor<ui32>\n"
LAID_OUT = '%a = sdy.sharding_constraint %x <@mesh, [{"a"}]> : tensor<4xf32>'
MESH = 'sdy.mesh @mesh = <["a"=2]>\n'
RETURN = f'func.func @main(%x: {T}) -> {T} {{\n  "func.return"(%x) {{mhlo.sharding = "a"}} : ({T}) -> ()\n}}\n'
TWICE = """#a = 5 : i32
func.func @main(%x: {0}) -> {0} {{
  %a = {1} %x : {0} loc(#a)
  return %a : {0}
}}
#a = loc("x")
"""
BETWEEN = '{1}#a = 5 : i32\n{2}#a = loc("x")\n'

PAIRS = {
    "a signalling NaN, f32": (constant("0x7F800001", "f32"), constant("0x7FC00001", "f32")),
    "a signalling NaN, f64": (constant("0x7FF0000000000001", "f64"), constant("0x7FF8000000000001", "f64")),
    "a signalling NaN, f16": (constant("0x7C01", "f16"), constant("0x7E01", "f16")),
    "a signalling NaN, bf16": (constant("0x7F81", "bf16"), constant("0x7FC1", "bf16")),
    "a NaN and the other, f8E4M3FN": (constant("0x7F", "f8E4M3FN"), constant("0xFF", "f8E4M3FN")),
    "two NaNs, f8E5M2": (constant("0x7D", "f8E5M2"), constant("0x7E", "f8E5M2")),
    "a NaN in an epsilon": (normalized("0x7F800001"), normalized("0x7FC00001")),
    "a NaN in an attribute of a custom call": (custom_call("0x7F800001 : f32"), custom_call("0x7FC00001 : f32")),
    "a NaN in a list": (custom_call("[0x7F800001 : f32]"), custom_call("[0x7FC00001 : f32]")),
    "a NaN in a dense array": (custom_call("array<f32: 0x7F800001>"), custom_call("array<f32: 0x7FC00001>")),
    "a numbered alias of a type": tuple(
        custom_call("#vhlo.type_v1<!0>", f"!0 = !vhlo.{name}") for name in ("i32_v1", "i64_v1")
    ),
    "a numbered alias of an attribute": tuple(
        custom_call("#vhlo.type_v1<#0>", f"#0 = #vhlo.{name}") for name in ("i32_v1", "i64_v1")
    ),
    "a named alias of an attribute": tuple(
        custom_call("#vhlo.type_v1<#map>", f"#map = #vhlo.{name}") for name in ("i32_v1", "i64_v1")
    ),
    "an alias defined twice, before a function": (TWICE.format(T, "stablehlo.tanh"), TWICE.format(T, "stablehlo.sine")),
    "an alias defined twice, between functions": tuple(
        BETWEEN.format(T, returning_x(), returning_x(line).replace("@main", "@other"))
        for line in (f"%a = stablehlo.tanh %x : {T}", f"%a = stablehlo.sine %x : {T}")
    ),
    "a region of an unknown operation that has no end": tuple(
        unknown(f"%a = stablehlo.{name} %v : {T}") for name in ("tanh", "sine")
    ),
    "an attribute of a call for its effects": (
        side_effect('{mhlo.frontend_attributes = {a = "b"}} '),
        side_effect('{mhlo.frontend_attributes = {a = "c"}} '),
    ),
    "an attribute of a function called for its effects": (
        side_effect(of_function=' attributes {execution_thread = "a"}'),
        side_effect(of_function=' attributes {execution_thread = "b"}'),
    ),
    "an attribute of the return": (RETURN, RETURN.replace('"a"', '"b"')),
    "a sharding constraint without uses": (MESH + returning_x(LAID_OUT), MESH + returning_x()),
    "a property and an attribute of one name": (
        returning_x('"foo.bar"() <{k = 1 : i32}> : () -> ()'),
        returning_x('"foo.bar"() {k = 1 : i32} : () -> ()'),
    ),
    "the device, inside and outside an unknown segment": (device(DEVICE, ""), device("", DEVICE)),
    "an attribute named as xDSL names what it does not know": (
        returning_x('"foo.bar"() {op_name__ = "a"} : () -> ()'),
        returning_x('"foo.bar"() {op_name__ = "b"} : () -> ()'),
    ),
}


@pytest.mark.parametrize("difference", PAIRS)
def test_unequal_texts_are_not_proved(difference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = PAIRS[difference]
    files = tmp_path / "before.mlir", tmp_path / "after.mlir"
    for file, text in zip(files, (before, after), strict=True):
        file.write_text(text)
    assert main([str(file) for file in files]) != 0
    output = capsys.readouterr()
    assert ("not proved: " in output.out) != ("error: " in output.err)
    assert "proved equal" not in output.out


def test_identical_files_of_any_content_are_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = "dense_resource<weights> : tensor<4xf32>"
    resource = '{-#\n  dialect_resources: {\n    builtin: {\n      weights: "0x04000000000000000000000000000000"\n'
    text = returning_x(f"%a = stablehlo.custom_call @foo(%x) {{k = {weights}}} : ({T}) -> {T}")
    file = tmp_path / "step.mlir"
    file.write_text(f"{text}{resource}    }}\n  }}\n#-}}\n")
    assert main([str(file), str(file)]) == 0
    assert capsys.readouterr().out == "proved equal: 1 result, 3 operations before, 3 after; the text is the same\n"
