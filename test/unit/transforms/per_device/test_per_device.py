"""Gradients of a `shard_map`: per-device bodies are paired, rewritten as one function, and split again without
change."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, ModuleOp, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp

from recompute.dialects.sdy.computations import ManualComputationOp
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.test.examples import FOLDER
from recompute.transforms.outlining.nested_steps import outline_temporarily
from recompute.transforms.per_device.device_pairs import pairs_of
from recompute.transforms.per_device.outline import outline_device_steps
from recompute.transforms.per_device.split import split_device_steps
from recompute.transforms.verify import verify_input

TEXT = (FOLDER.parents[1] / "test" / "filecheck" / "transforms" / "recompute-per-device.mlir").read_text()
IN, ALL = '<@mesh, [{"a"}]>', '<@mesh, [{"a", "b"}]>'


def bodies(module: ModuleOp) -> list[ManualComputationOp]:
    return [op for op in module.walk() if isinstance(op, ManualComputationOp)]


def pairs(text: str) -> int:
    function = next(op for op in parse_module(text).ops if isinstance(op, FuncOp))
    return len(list(pairs_of(function)))


def test_outlined_and_split_step_is_equivalent() -> None:
    module = parse_module(TEXT)
    with outline_temporarily(module):
        assert [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)] == ["main", "main/devices0"]
        verify_input(module)
    module.verify()
    verify_input(module)
    assert prove(parse_module(TEXT), module)
    # What one reads of the other is the same: four values, and an argument that both take.
    forward, backward = bodies(module)
    assert len(forward.results) == 5 and len(backward.inputs) == 6
    again = print_module(module)
    with outline_temporarily(module):
        pass
    assert print_module(module) == again


def test_fewer_residuals_are_passed_between_bodies() -> None:
    before, after = parse_module(TEXT), parse_module(TEXT)
    result = rewrite_in_place(after)
    assert result.copies == 5
    forward, backward = bodies(after)
    assert len(forward.results) == 1 and len(backward.inputs) == 2
    assert prove(before, after)


READ = f"""    in_shardings=[{IN}, {", ".join([ALL] * 4)}, {IN}]"""
OTHER_PAIRS = {
    "two forward passes": ("transpose(jvp())/shard_map", "jvp()/shard_map"),
    "no source marks it as a gradient": ('loc("jit(f)/transpose(jvp())/shard_map")', ""),
    "a gradient of its own inside": ('"block0/sin"', '"jit(f)/transpose(jvp(block0))/sin"'),
    "other axes": ('manual_axes={"a", "b"} (%t', 'manual_axes={"b", "a"} (%t'),
    "other layouts": (READ, READ.replace('"a", "b"', '"b", "a"').replace('{"a"}', '{"b"}')),
    "no such mesh": ("sdy.mesh @mesh", "sdy.mesh @another"),
}


@pytest.mark.parametrize("name", OTHER_PAIRS)
def test_mismatched_bodies_are_not_paired(name: str) -> None:
    old, new = OTHER_PAIRS[name]
    assert old in TEXT and pairs(TEXT) == 1
    assert pairs(TEXT.replace(old, new)) == 0


def test_scalar_residual_is_passed_as_a_row() -> None:
    """A scalar is passed between the bodies as a row of one element, since an array over the devices cannot be a
    scalar."""
    text = TEXT.replace(
        "    %b = stablehlo.exponential %a :",
        "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %w = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : "
        '(tensor<1024xf32>, tensor<f32>) -> tensor<f32> loc("block0/sum")\n'
        '    %o = "stablehlo.all_reduce"(%w) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]>'
        " : tensor<1x8xi64>}> ({\n"
        "    ^bb0(%l: tensor<f32>, %r: tensor<f32>):\n"
        "      %q = stablehlo.add %l, %r : tensor<f32>\n"
        "      stablehlo.return %q : tensor<f32>\n"
        '    }) : (tensor<f32>) -> tensor<f32> loc("block0/psum")\n'
        "    %v = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> tensor<1024xf32>"
        ' loc("block0/broadcast")\n'
        '    %u = stablehlo.add %a, %v : tensor<1024xf32> loc("block0/add")\n'
        "    %b = stablehlo.exponential %u :",
    )
    after = parse_module(text)
    rewrite_in_place(after)
    forward, backward = bodies(after)
    assert any(str(type_) == "tensor<8xf32>" for type_ in forward.result_types[1:])
    assert "tensor<1xf32>" in [str(type_) for type_ in backward.body.block.arg_types]
    assert prove(parse_module(text), after)


def test_constants_are_repeated_in_both_bodies() -> None:
    text = TEXT.replace(
        "    %h = stablehlo.multiply %t, %e : tensor<1024xf32>",
        "    %o = stablehlo.constant dense<2.0> : tensor<1024xf32>\n"
        '    %n = stablehlo.multiply %t, %o : tensor<1024xf32> loc("block1/mul")\n'
        "    %h = stablehlo.multiply %n, %e : tensor<1024xf32>",
    ).replace(
        "    %b = stablehlo.exponential %a :",
        "    %o = stablehlo.constant dense<2.0> : tensor<1024xf32>\n"
        '    %u = stablehlo.add %a, %o : tensor<1024xf32> loc("block0/add")\n'
        "    %b = stablehlo.exponential %u :",
    )
    after = parse_module(text)
    rewrite_in_place(after)
    assert prove(parse_module(text), after)
    inside = [[op.name for op in body.walk()].count("stablehlo.constant") for body in bodies(after)]
    assert inside == [1, 2] and len(bodies(after)[0].results) == 1


def test_unsupported_residual_is_refused_with_location() -> None:
    steps = outline_device_steps(parse_module(TEXT))
    block = steps[0].function.body.block
    first, last = block.first_op, block.last_op
    assert first is not None and last is not None
    result = UnrealizedConversionCastOp(operands=[[]], result_types=[[IndexType()]])
    block.insert_op_before(result, first)
    block.insert_op_before(UnrealizedConversionCastOp(operands=[result.results], result_types=[[]]), last)
    with pytest.raises(Refusal, match="type index, but such a value cannot be passed as a sharded array"):
        split_device_steps(steps)


def test_gradient_reading_only_results_is_not_paired() -> None:
    """The forward pass is paired with its own gradient, although that of the loss comes first."""
    loss = f"""  %z = sdy.manual_computation(%y, %ct) in_shardings=[{IN}, {IN}] out_shardings=[{IN}]
    manual_axes={{"a", "b"}} (%u: tensor<1024xf32>, %v: tensor<1024xf32>) {{
    %w = stablehlo.multiply %u, %v : tensor<1024xf32>
    sdy.return %w : tensor<1024xf32>
  }} : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32> loc("jit(f)/transpose(jvp())/shard_map")
"""
    text = TEXT.replace("  %g = sdy.manual_computation(%ct, ", f"{loss}  %g = sdy.manual_computation(%z, ")
    function = next(op for op in parse_module(text).ops if isinstance(op, FuncOp))
    (pair,) = pairs_of(function)
    assert len(pair.backward.inputs) == 6
    after = parse_module(text)
    rewrite_in_place(after)
    assert prove(parse_module(text), after)
    assert [len(body.results) for body in bodies(after)] == [1, 1, 1]
