"""Every known operation, attribute, type and location crosses the bridge in both directions as in text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from recompute.dialects.chlo import CHLO
from recompute.dialects.sdy import SDY
from recompute.dialects.stablehlo import STABLEHLO
from recompute.frontends.jax.bridge import read
from recompute.frontends.jax.bridge.bindings import DEFAULT_PROPERTIES
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.locations import RangeEnd
from recompute.test.unit.dialects.stablehlo.test_stablehlo_forms import LINES, PROGRAM
from recompute.test.unit.frontends.jax.bridge.crossings import (
    crosses,
    crosses_back,
    examples,
    kinds_in,
    lit_inputs,
    text_of,
    theirs,
)

NOT_MLIRS = re.compile(
    r"Dialect `recompute' not found|!\"recompute\"<|unregistered dialect|created with unregistered|recompute\."
    r"|invalid kind of attribute specified|length of shape operand differs"
)
"""Modules with our own dialect, or with operations that no dialect has, are none that JAX could hold."""

ATTRIBUTES = """
    i = 1 : i32, j = -5 : i64, k = 7 : index, b = true, c = false, small = -3 : i8, unsigned = 200 : ui8,
    si = -4 : si16,
    wide = 170141183460469231731687303715884105727 : i128, one = 1 : i1, max = 18446744073709551615 : ui64,
    f = 1.5 : f32, g = 2.5e-3 : f64, h = 0x7FC1 : bf16, nan = 0x7F800001 : f32, zero = -0.0 : f16, e = 1.0 : f8E4M3FN,
    s = "plain", quoted = "a \\22 b \\5C c\\0A", utf = "\\C3\\A9t\\C3\\A9", empty = "", unit,
    sym = @f, nested = @f::@g, odd = @"with space", list = [1, "two", [3.0 : f32, unit], {x = 4 : i32}], none = [],
    d = {a = 1, "b c" = @f}, nothing = {}, type = tensor<4x?xf32>, fun = (i32, tensor<f32>) -> (index), t = i7,
    a64 = array<i64: 1, -2>, a32 = array<i32: 1, 2>, a8 = array<i8: 1>, ab = array<i1: true, false>,
    af = array<f32: 1.0, 0x7FC00001>, ad = array<f64: 2.0>, ae = array<i64>, a16 = array<i16: 3>,
    map = affine_map<(d0, d1) -> (d1, d0)>, dense = dense<[1, 2]> : tensor<2xi32>, vec = dense<1.0> : vector<4xf32>,
    z = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>, in_list = [dense<(1.0, 2.0)> : tensor<complex<f32>>],
    in_dict = {a = dense<[(1.0, -0.0), (0x7FC00001, 0.0)]> : tensor<2xcomplex<f32>>}
"""
ADD = "%1 = stablehlo.add %0, %0 {…} : tensor<4xf32>"
TOP_K = """func.func @f(%0: tensor<8x8xf32>) {
    %1:2 = "chlo.top_k"(%0) <{k = 2 : i64, is_stable = true}> : (tensor<8x8xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)
    return
}"""
HANDMADE = {
    "a default of a CHLO operation": TOP_K,
    "attributes": f"func.func @f(%0: tensor<4xf32>) {{ {ADD.replace('…', ATTRIBUTES)} return }}",
    "of a module": 'module @"a b" attributes {mhlo.num_partitions = 8 : i32, jax.uses_shape_polymorphism = false} {}',
    "of functions": """
        func.func public @main(%0: tensor<4xf32> {tf.aliasing_output = 0 : i32, mhlo.sharding = "{replicated}"})
            -> (tensor<4xf32> {jax.result_info = "x[\\22a\\22]"}) attributes {x = 1 : i32} { return %0 : tensor<4xf32> }
        func.func private @declared(tensor<f32> {jax.buffer_donor = true}, i32) -> ()
        func.func nested @nested() attributes {no_inline} { return }
        func.func @two() -> (i32 {}, i32 {}) { %0:2 = call @two() : () -> (i32, i32) return %0#0, %0#1 : i32, i32 }""",
    "types": """
        func.func private @f(tensor<?x4xf32>, tensor<*xf32>, tensor<?xf32, #stablehlo.bounds<4>>, !stablehlo.token,
            tuple<tensor<f32>, i32>, memref<4xf32>, vector<4xi1>, complex<f64>, index, none, si8, ui4, f8E8M0FNU, tf32,
            f80, f4E2M1FN, f6E2M3FN, f8E3M4, i1, i2, bf16, f16, f128, () -> (), tensor<0x3xi8>,
            tensor<4xcomplex<f32>>)""",
    "locations": """
        #a = loc("a.py":3:4)
        func.func @f(%0: tensor<4xf32> loc("x"), %1: tensor<4xf32> loc(unknown)) {
            %2 = stablehlo.sine %0 : tensor<4xf32> loc("name"("model.py":1:2 to 3:4))
            %3 = stablehlo.sine %0 : tensor<4xf32> loc("model.py":1:2 to :4)
            %4 = stablehlo.sine %0 : tensor<4xf32> loc(callsite("f"(#a) at callsite("g" at "h.py":0:0)))
            %5 = stablehlo.sine %0 : tensor<4xf32> loc(fused<"meta">["a", #a])
            %6 = stablehlo.sine %0 : tensor<4xf32> loc(fused[#a, "b"("c"(#a))])
            %7 = stablehlo.sine %0 : tensor<4xf32> loc(unknown)
            %8 = stablehlo.sine %0 : tensor<4xf32> loc("quo\\22te \\C3\\A9"(unknown))
            %9 = stablehlo.sine %0 : tensor<4xf32> loc(fused<{a = [1, 2]}>[#a])
            return loc("r"(callsite(#a at #a)))
        } loc(#a)""",
    "records": """
        func.func @f(%0: tensor<4xf32>, %1: tuple<tensor<4xf32>, tensor<4xf32>>) {
            %2 = stablehlo.exponential %0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, rtol = 0.0,
                ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>
            %3 = stablehlo.custom_call @f(%0) {output_operand_aliases = [#stablehlo.output_operand_alias<
                output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}
                : (tensor<4xf32>) -> tensor<4xf32>
            return
        }""",
    "shardy": """
        #rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=2, j=4} need_replication={j}>
        #edges = #sdy.propagation_edges<[{step-1 = [{"x" = operand-0 -> [result-0]}]}]>
        sdy.mesh @mesh = <["x"=2]>
        func.func @f(%0: tensor<2x4xf32>) {
            %1 = stablehlo.add %0, %0 {sdy.propagation_edges = #edges, sdy.sharding_rule = #rule,
                sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<2x4xf32>
            return
        }""",
    "defaults": """
        func.func @f(%0: tensor<4x4xf32>) {
            %2 = "stablehlo.custom_call"(%0) <{call_target_name = "f", has_side_effect = false, api_version = 1 : i32,
                backend_config = "", called_computations = []}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
            %3 = "stablehlo.custom_call"(%0) <{call_target_name = "f", has_side_effect = true, api_version = 2 : i32,
                called_computations = [@f]}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
            return
        }""",
    "names": """
        func.func @f(%0: tensor<3xf32>) -> tensor<i32> {
            %values, %indices = chlo.top_k(%0, k = 2) : tensor<3xf32> -> (tensor<2xf32>, tensor<2xi32>)
            %c = stablehlo.constant dense<1> : tensor<i32>
            %d = stablehlo.constant dense<2> : tensor<i32>
            return %d : tensor<i32>
        }""",
}
SEEN_ELSEWHERE = {
    "stablehlo.result_accuracy_mode": "a word inside a record, #stablehlo.result_accuracy",
    "stablehlo.type_extensions": "MLIR prints it as #stablehlo.bounds",
    "stablehlo.collective_reduce": "MLIR has it in no version that JAX brings",
    "stablehlo.uniform_quantize": "xDSL has no quantized type that the bridge could make",
    "stablehlo.uniform_dequantize": "xDSL has no quantized type that the bridge could make",
}


@pytest.mark.slow("large", "checkpoint")
@pytest.mark.parametrize("path", examples(), ids=lambda path: path.stem)
def test_examples_cross_in_both_directions(path: Path):
    crosses(theirs(path.read_text()))


@pytest.mark.slow
def test_lit_inputs_cross_in_both_directions():
    """All lit inputs cross that MLIR reads; the others use the recompute dialect or unknown operations."""
    refused = Counter[bool]()
    for name, text in lit_inputs():
        try:
            module = theirs(text)
        except Exception as error:
            assert NOT_MLIRS.search(str(error)), (name, str(error))
            refused[True] += 1
        else:
            if "stablehlo.composite" in text:  # MLIR's own assembly of it is not read.
                continue
            crosses(module)
            refused[False] += 1
    assert refused[False] >= 88, refused
    assert refused[True] <= 62, refused


@pytest.mark.parametrize("text", HANDMADE.values(), ids=HANDMADE)
def test_hand_written_modules_cross_in_both_directions(text: str):
    crosses(theirs(text))


@pytest.mark.parametrize("name", sorted(DEFAULT_PROPERTIES.keys() - {"chlo.top_k", "stablehlo.custom_call"}))
def test_default_properties_are_dropped(name: str):
    """Default properties, which the text omits, are dropped."""
    ((default, value),) = DEFAULT_PROPERTIES[name].items()
    given = f'%1 = "{name}"(%0) <{{{default} = {value}}}> : (tensor<4xf32>) -> tensor<4xf32>'
    module = crosses(theirs(f"func.func @f(%0: tensor<4xf32>) {{ {given} return }}"))
    assert default not in print_module(module, generic=True)


def test_tests_cover_every_operation_attribute_and_type():
    seen = set[str]()
    forms = (PROGRAM.format(line=line) for line in LINES.values())
    for text in (*HANDMADE.values(), *forms, *(text for _, text in lit_inputs())):
        try:
            module = theirs(text)
        except Exception:
            continue
        if "dense_resource" not in text:  # `test_bridge_refused.py` tests that these are refused.
            seen |= kinds_in(read(module))
    registered = {
        item.name for dialect in (STABLEHLO, CHLO, SDY) for item in (*dialect.operations, *dialect.attributes)
    }
    assert registered - seen == set(SEEN_ELSEWHERE)
    assert RangeEnd.name in seen


KEPT = {
    "unregistered operations, with properties": """
        func.func @f(%0: vector<4xf32>) {
            %1 = vector.extract %0[1] {note = "a (b) <{c}>"} : f32 from vector<4xf32>
            %2 = vector.shuffle %0, %0 [0, 1] : vector<4xf32>, vector<4xf32>
            return
        }""",
    "blocks that go to blocks": """
        func.func @f(%0: i1, %1: i32) -> i32 {
            cf.cond_br %0, ^a(%1 : i32), ^b
        ^a(%2: i32 loc("arg")):
            cf.br ^c(%2 : i32)
        ^b:
            cf.br ^c(%1 : i32)
        ^c(%3: i32):
            return %3 : i32
        }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_generic_form_only_text_round_trips(text: str):
    crosses(theirs(text), in_generic_form=True)


def test_locations_missing_from_the_short_form_cross():
    """The locations in the body of a reduction, which the short form cannot express, are kept."""
    module = theirs(
        """func.func @f(%0: tensor<4x5xf32>, %1: tensor<f32>) -> tensor<4xf32> {
            %3 = stablehlo.reduce(%0 init: %1) across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
                reducer(%a: tensor<f32> loc("a"), %b: tensor<f32> loc("b")) {
                    %4 = stablehlo.add %a, %b : tensor<f32> loc("inner")
                    stablehlo.return %4 : tensor<f32>
                }
            return %3 : tensor<4xf32>
        }"""
    )
    assert "applies stablehlo.add" in text_of(module)
    ours = read(module)
    assert ours.is_structurally_equivalent(parse_module(text_of(module)))
    assert 'loc("inner")' in crosses_back(ours, module)


def test_read_module_can_be_modified():
    """The lists of uses and operations are complete, so that every operation can be removed."""
    text = "%1 = stablehlo.add %0, %0 : tensor<f32> %2 = stablehlo.add %0, %1 : tensor<f32>"
    module = read(theirs(f"func.func @f(%0: tensor<f32>) {{ {text} return }}"))
    (function,) = module.body.block.ops
    block = function.regions[0].block
    (value,), (first, second, last) = block.args, block.ops
    uses = {(use.operation, use.index) for use in value.uses}
    assert uses == {(first, 0), (first, 1), (second, 0)}
    first.operands[1] = second.results[0]
    assert {(use.operation, use.index) for use in value.uses} == {(first, 0), (second, 0)}
    first.operands[1] = value
    second.operands[0] = first.results[0]
    assert {(use.operation, use.index) for use in value.uses} == {(first, 0), (first, 1)}
    assert (first.prev_op, second.prev_op, last.prev_op) == (None, first, second)
    assert (first.parent, block.first_op, block.last_op, last.next_op) == (block, first, last, None)
    second.detach()
    assert list(block.ops) == [first, last]
    module.verify()
