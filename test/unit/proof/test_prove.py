"""The equivalence proof: what it accepts and what it rejects, one case per rule of `proof/prove.py`."""

from __future__ import annotations

import pytest

from recompute.proof.prove import ProofOptions, prove
from recompute.proof.translation import call_inliner

from .programs import GROUP, SQUARE, T, compare, load, main, private, program_of_one

LOG = '{call_target_name = "log"}'

EQUAL = {
    "a collective cloned": (
        main("%a = all_reduce %x\n%b = subtract %a, %a\nreturn %b"),
        main("%a = all_reduce %x\n%c = all_reduce %x\n%b = subtract %a, %c\nreturn %b"),
    ),
    "the names of values do not count": (
        main("%a = tanh %x\nreturn %a"),
        main("%b = tanh %x\nreturn %b"),
    ),
    "locations do not count": (
        main("%a = tanh %x\nreturn %a"),
        main('%a = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("a.py":1:2)\nreturn %a'),
    ),
    "the name of the module does not count": (
        "module @before {\n" + main("return %x") + "\n}",
        "module @after {\n" + main("return %x") + "\n}",
    ),
    "pure operations may change places": (
        main("%a = tanh %x\n%b = sine %y\n%c = add %a, %b\nreturn %c"),
        main("%b = sine %y\n%a = tanh %x\n%c = add %a, %b\nreturn %c"),
    ),
    "a clone behind a barrier is the original": (
        main("%a = tanh %x\n%b = sine %a\n%c = multiply %b, %a\nreturn %c"),
        main(
            "%a = tanh %x\n%b = sine %a\n%z, %g = optimization_barrier %x, %b\n"
            "%copy = tanh %z\n%c = multiply %g, %copy\nreturn %c"
        ),
    ),
    "a clone behind a token is the original": (
        main("%a = tanh %x\n%b = sine %a\n%c = multiply %b, %a\nreturn %c"),
        main(
            "%a = tanh %x\n%b = sine %a\n%t = recompute.token %b : tensor<4xf32>\n"
            "%z, %w = recompute.depend %x, %y after %t : tensor<4xf32>, tensor<4xf32>\n"
            "%copy = tanh %z {recompute.duplicated, recompute.copy = 0 : i64}\n%c = multiply %b, %copy\nreturn %c"
        ),
    ),
    "operations grouped in a region are these operations": (
        main('%a = tanh %x\n%e = custom_call %a {call_target_name = "log"}\n%b = sine %a\nreturn %b'),
        main(
            '%b = "recompute.gradient"() ({\n%a = tanh %x\n%e = custom_call %a {call_target_name = "log"}\n'
            '%c = sine %a\n"recompute.yield"(%c) : (tensor<4xf32>) -> ()\n}) : () -> tensor<4xf32>\nreturn %b'
        ),
    ),
    "attributes of the passes do not count": (
        main('%a = tanh %x {recompute.recompute = true, recompute.segment = "a"}\nreturn %a'),
        main("%a = tanh %x\nreturn %a", attributes='attributes {recompute.phase = "primal"} '),
    ),
    "dead operations do not count": (
        main("%a = tanh %x\n%b = sine %y\nreturn %a"),
        main("%a = tanh %x\nreturn %a"),
    ),
    "a private call is its body": (
        main("%a = call @square %x\n%b = call @square %a\nreturn %b", SQUARE),
        main("%a = multiply %x, %x\n%b = multiply %a, %a\nreturn %b"),
    ),
    "private functions have no names": (
        main("%a = call @square %x\nreturn %a", SQUARE),
        main("%a = call @mul %x\nreturn %a", private("mul", "%r = multiply %p, %p\nreturn %r")),
    ),
    "private functions without calls do not count": (
        main("return %x", SQUARE),
        main("return %x"),
    ),
    "a call in a loop is its body": (
        main("%a = while %x (%i) {\n%j = call @square %i\n} yield %j\nreturn %a", SQUARE),
        main("%a = while %x (%i) {\n%j = multiply %i, %i\n} yield %j\nreturn %a"),
    ),
    "a loop in a call is the same loop": (
        main("%a = while %x (%i) {\n%j = add %i, %x\n} yield %j\nreturn %a"),
        main(
            "%a = call @loop %x\nreturn %a",
            private("loop", "%a = while %p (%i) {\n%j = add %i, %p\n} yield %j\nreturn %a"),
        ),
    ),
    "what does not depend on the loop may be computed in it": (
        main("%s = sine %y\n%a = while %x (%i) {\n%j = add %i, %s\n} yield %j\nreturn %a"),
        main("%a = while %x (%i) {\n%s = sine %y\n%j = add %i, %s\n} yield %j\nreturn %a"),
    ),
    "a constant is its bits, however it is spelt": (
        main("%a = constant 1.0\nreturn %a"),
        main("%a = constant [1.0,1.0,1.0,1.0]\nreturn %a"),
    ),
    "empty argument attributes are as good as none": (
        main("return %x"),
        "func.func @main(%x: tensor<4xf32> {}, %y: tensor<4xf32>) -> (tensor<4xf32> {}) {\nreturn %x\n}",
    ),
    "empty argument attributes of a private function, and those of the passes": (
        main(
            "%a = call @square %x\nreturn %a",
            SQUARE.replace("%p: T".replace("T", T), f'%p: {T} {{recompute.name = "p"}}').replace(
                f"-> {T}", f"-> ({T} {{}})"
            ),
        ),
        main("%a = multiply %x, %x\nreturn %a"),
    ),
    "pure operations move across effects": (
        main(f"%e = custom_call %x {LOG}\n%a = tanh %x\nreturn %a"),
        main(f"%a = tanh %x\n%e = custom_call %x {LOG}\nreturn %a"),
    ),
    "a function may return nothing": (
        "func.func @main(%x: tensor<4xf32>) {\n%a = tanh %x\nfunc.return\n}",
        "func.func @main(%x: tensor<4xf32>) {\nfunc.return\n}",
    ),
    "public is the default": (
        main("return %x"),
        main("return %x").replace("func.func @main", "func.func public @main"),
    ),
    "public functions may change places": (
        main("return %x", main("return %y").replace("@main", "@eval")),
        main("return %y").replace("@main", "@eval") + main("return %x"),
    ),
}


@pytest.mark.parametrize("rule", EQUAL)
def test_equal_programs_are_proved(rule: str) -> None:
    before, after = EQUAL[rule]
    for proof in (compare(before, after), compare(after, before)):
        assert proof.proved, proof.reason


ONE_WAY = {
    "a loop whose results are not read goes, even if it may not end": (
        main("%a = while %x (%i) {\n%j = tanh %i\n} yield %j\nreturn %y"),
        main("return %y"),
    ),
    "a loop that may not end moves into another one": (
        main(
            "%s = while %y (%k) {\n%l = add %k, %x\n} yield %l\n"
            "%a = while %x (%i) {\n%j = add %i, %s\n} yield %j\nreturn %a"
        ),
        main(
            "%a = while %x (%i) {\n%s = while %y (%k) {\n%l = add %k, %x\n} yield %l\n"
            "%j = add %i, %s\n} yield %j\nreturn %a"
        ),
    ),
}
"""The program after may run less than the program before, and not more."""


@pytest.mark.parametrize("rule", ONE_WAY)
def test_removing_a_loop_that_may_not_end_is_proved_one_way(rule: str) -> None:
    before, after = ONE_WAY[rule]
    proof = compare(before, after)
    assert proof.proved, proof.reason
    assert "may not terminate and runs only in the rewritten program" in compare(after, before).reason


NESTED = """
%a = while %x (%i) {
%b = while %y (%k) {
%l = add %?, %?
} yield %l
%j = add %b, %i
} yield %j
return %a
"""
TWO_LOOPS = """
%a = while %x (%i) {
%j = add %i, %?
} yield %j
%b = while %x (%k) {
%l = add %k, %?
} yield %l
%c = subtract %a, %b
return %c
"""
TWO_CARRIES = """
%a, %b = while %x, %y (%i, %k) {
%l = tanh %i
} yield %?, %?
return %a
"""
EFFECT_IN_LOOP = """
%a = while %x (%i) {
%j = custom_call %i {call_target_name = "log"}
%k = abs %i
} yield %k
return %x
"""
KNOWN = f"""
%a = "stablehlo.map"(%x) ({{
^a(%k: f32):
"stablehlo.return"(%y) : ({T}) -> ()
}}) : ({T}) -> {T}
return %a
"""
CONVERTED = f"""
%a = "stablehlo.convert"(%x) : ({T}) -> tensor<4xf64>
%b = "stablehlo.convert"(%a) : (tensor<4xf64>) -> {T}
return %b
"""
PUBLIC = main("return %x", private("eval", "%a = tanh %p\nreturn %a").replace("private ", ""))
BARRIER = "%a = tanh %x\n%b, %c = optimization_barrier %a, %y\n"
DEPEND = (
    "%a = tanh %x\n%t = recompute.token %a : tensor<4xf32>\n"
    "%b, %c = recompute.depend %a, %y after %t : tensor<4xf32>, tensor<4xf32>\n"
)
REDUCE = """
%a = "stablehlo.reduce"(%x, %y) <{dimensions = array<i64: 0>}> ({
^bb0(%i: tensor<4xf32>, %k: tensor<4xf32>):
%l = NAME
"stablehlo.return"(%l) : (tensor<4xf32>) -> ()
}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
return %a
"""


def fill(program: str, *names: str) -> str:
    for name in names:
        program = program.replace("%?", f"%{name}", 1)
    return program


def program_returning_x(*lines: str) -> str:
    return main("\n".join([*lines, "return %x"]))


LOG_X, LOG_Y = f"%a = custom_call %x {LOG}", f"%b = custom_call %y {LOG}"

# rule -> before, after, what the reason says
UNEQUAL = {
    "operands have an order, in a commutative operation too": (
        program_of_one("add %x, %y"),
        program_of_one("add %y, %x"),
        "result #0 of @main differs: stablehlo.add operand 0: before argument 0 of @main, after argument 1 of @main",
    ),
    "another operation": (
        main("%a = sine %x\n%b = subtract %y, %a\nreturn %b"),
        main("%a = cosine %x\n%b = subtract %y, %a\nreturn %b"),
        "stablehlo.subtract operand 1: before stablehlo.sine, after stablehlo.cosine",
    ),
    "another attribute": (
        program_of_one("iota {iota_dimension = 0 : i64}"),
        program_of_one("iota {iota_dimension = 1 : i64}"),
        "before stablehlo.iota with iota_dimension = 0 : i64, after stablehlo.iota with iota_dimension = 1 : i64",
    ),
    "an attribute lost": (
        program_of_one('tanh %x {mhlo.sharding = "{replicated}"}'),
        program_of_one("tanh %x"),
        'before stablehlo.tanh with mhlo.sharding = "{replicated}", after stablehlo.tanh with no mhlo.sharding',
    ),
    "an attribute of a barrier lost": (
        program_of_one('optimization_barrier %x {mhlo.sharding = "{replicated}"}'),
        program_of_one("optimization_barrier %x"),
        "before attributes of a barrier, after argument 0 of @main",
    ),
    "an attribute of a call lost by inlining": (
        main('%a = call @square %x {mhlo.frontend_attributes = {a = "b"}}\nreturn %a', SQUARE),
        main("%a = multiply %x, %x\nreturn %a"),
        "before attributes of a call, after stablehlo.multiply",
    ),
    "an attribute of an argument lost by inlining": (
        main("%a = call @square %x\nreturn %a", SQUARE.replace("4xf32>)", '4xf32> {mhlo.sharding = "{replicated}"})')),
        main("%a = multiply %x, %x\nreturn %a"),
        "stablehlo.multiply operand 0: before attributes of a parameter, after argument 0",
    ),
    "an attribute of a result lost by inlining": (
        main("%a = call @square %x\nreturn %a", SQUARE.replace(f"-> {T}", f'-> ({T} {{mhlo.sharding = "all"}})')),
        main("%a = multiply %x, %x\nreturn %a"),
        "before attributes of a result, after stablehlo.multiply",
    ),
    "an attribute of a function lost by inlining": (
        main("%a = call @noted %x\nreturn %a", private("noted", "return %p", 'attributes {execution_thread = "a"} ')),
        main("return %x"),
        "before attributes of a function, after argument 0 of @main",
    ),
    "an attribute of a group lost": (
        main(GROUP.replace("segment", "gradient").replace("}) :", "}) {other = 1 : i32} :")),
        main(GROUP),
        "before attributes of a group, after stablehlo.tanh",
    ),
    "another type in between": (
        main(CONVERTED),
        main(CONVERTED.replace("f64", "bf16")),
        "before stablehlo.convert of type tensor<4xf64>, after stablehlo.convert of type tensor<4xbf16>",
    ),
    "another type of an argument that a region does not read": (
        main(KNOWN),
        main(KNOWN.replace("f32", "f64", 1)),
        "result #0 of @main differs",
    ),
    "another terminator": (
        main(KNOWN),
        main(KNOWN.replace("stablehlo.return", "scf.yield", 1)),
        "result #0 of @main differs",
    ),
    "another attribute of a terminator": (
        main(KNOWN),
        main(KNOWN.replace('return"(%y)', 'return"(%y) {other = 1 : i32}')),
        "result #0 of @main differs",
    ),
    "the lowest bit of a constant": (
        program_of_one("constant 1.0"),
        program_of_one("constant [1.0,1.0,1.0,1.00000012]"),
        "with value = dense<",
    ),
    "the sign of zero": (program_of_one("constant 0.0"), program_of_one("constant -0.0"), "value"),
    "the bits of a NaN": (
        program_of_one('constant "0x0000C07F0000C07F0000C07F0000C07F"'),
        program_of_one('constant "0x0100C07F0100C07F0100C07F0100C07F"'),
        "value",
    ),
    "a NaN in a scalar attribute": (
        program_of_one("batch_norm_inference %x {epsilon = 0x7FC00000 : f32}"),
        program_of_one("batch_norm_inference %x {epsilon = 0x7FC00001 : f32}"),
        "epsilon",
    ),
    "a zero in a scalar attribute": (
        program_of_one("batch_norm_inference %x {epsilon = 0.0 : f32}"),
        program_of_one("batch_norm_inference %x {epsilon = -0.0 : f32}"),
        "epsilon",
    ),
    "another result of the same operation": (
        main("%a, %b = rng_bit_generator %x\nreturn %a"),
        main("%a, %b = rng_bit_generator %x\nreturn %b"),
        "before result 0 of stablehlo.rng_bit_generator, after result 1 of stablehlo.rng_bit_generator",
    ),
    "results have an order": (
        "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\nreturn %x, %y\n}",
        "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\nreturn %y, %x\n}",
        "result #0 of @main differs: before argument 0 of @main, after argument 1 of @main",
    ),
    "a barrier keeps positions": (
        main(BARRIER + "%d = subtract %b, %c\nreturn %d"),
        main(BARRIER.replace("%a, %y", "%y, %a") + "%d = subtract %b, %c\nreturn %d"),
        "stablehlo.subtract operand 0",
    ),
    "a depend keeps positions": (
        main(DEPEND + "%d = subtract %b, %c\nreturn %d"),
        main(DEPEND.replace("depend %a, %y", "depend %y, %a") + "%d = subtract %b, %c\nreturn %d"),
        "stablehlo.subtract operand 0",
    ),
    "another function called": (
        main("%a = call @square %x\nreturn %a", SQUARE),
        main("%a = call @square %x\nreturn %a", SQUARE.replace("multiply", "add")),
        "before stablehlo.multiply, after stablehlo.add",
    ),
    "a loop from elsewhere": (
        main("%a = while %x (%i) {\n%j = tanh %i\n} yield %j\nreturn %a"),
        main("%a = while %y (%i) {\n%j = tanh %i\n} yield %j\nreturn %a"),
        "stablehlo.while operand 0",
    ),
    "another body": (
        main("%a = while %x (%i) {\n%j = tanh %i\n} yield %j\nreturn %a"),
        main("%a = while %x (%i) {\n%j = sine %i\n} yield %j\nreturn %a"),
        "result 0 of region 1 of stablehlo.while: before stablehlo.tanh, after stablehlo.sine",
    ),
    "a loop that reads another value from around it": (
        main("%a = while %x (%i) {\n%j = add %i, %x\n} yield %j\nreturn %a"),
        main("%a = while %x (%i) {\n%j = add %i, %y\n} yield %j\nreturn %a"),
        "stablehlo.add operand 1: before argument 0 of @main, after argument 1 of @main",
    ),
    "two loops that swap what they read from around them": (
        main(fill(TWO_LOOPS, "x", "y")),
        main(fill(TWO_LOOPS, "y", "x")),
        "stablehlo.add operand 1: before argument 0 of @main, after argument 1 of @main",
    ),
    "one value read twice from around, or two values": (
        main(fill(TWO_LOOPS, "x", "x")),
        main(fill(TWO_LOOPS, "x", "y")),
        "stablehlo.add operand 1",
    ),
    "the carries of a loop have an order": (
        main(fill(TWO_CARRIES, "l", "k")),
        main(fill(TWO_CARRIES, "k", "l")),
        "result 0 of region 1 of stablehlo.while: before stablehlo.tanh, after argument 1 of the region",
    ),
    "a carry or the value that it starts from": (
        main("%a = while %x (%i) {\n%j = tanh %i\n} yield %j\nreturn %a"),
        main("%a = while %x (%i) {\n%j = tanh %x\n} yield %j\nreturn %a"),
        "stablehlo.tanh operand 0: before argument 0 of the region, after argument 0 of @main",
    ),
    "the body of a reduction": (
        main(REDUCE.replace("NAME", "add %i, %k")),
        main(REDUCE.replace("NAME", "multiply %i, %k")),
        "result 0 of region 0 of stablehlo.reduce: before stablehlo.add, after stablehlo.multiply",
    ),
    "the arguments of a reduction's body have an order": (
        main(REDUCE.replace("NAME", "subtract %i, %k")),
        main(REDUCE.replace("NAME", "subtract %k, %i")),
        "stablehlo.subtract operand 0",
    ),
    "an effect dropped": (
        program_returning_x(LOG_X, LOG_Y),
        program_returning_x(LOG_Y),
        "the effects of @main differs",
    ),
    "an effect cloned": (
        program_returning_x(LOG_X),
        program_returning_x(LOG_X, LOG_Y.replace("%y", "%x")),
        "the effects of @main differs",
    ),
    "effects reordered": (
        program_returning_x(LOG_X, LOG_Y),
        program_returning_x(LOG_Y, LOG_X),
        "stablehlo.custom_call operand 0",
    ),
    "an effect on another value": (
        program_returning_x(LOG_X),
        program_returning_x(LOG_X.replace("%x", "%y")),
        "the effects of @main differs",
    ),
    "another effect": (
        program_returning_x(LOG_X),
        program_returning_x(LOG_X.replace("log", "send")),
        "call_target_name",
    ),
    "an effect in a loop dropped": (main(EFFECT_IN_LOOP), main("return %x"), "the effects of @main differs"),
    "an effect in a loop changed": (
        main(EFFECT_IN_LOOP),
        main(EFFECT_IN_LOOP.replace("custom_call %i", "custom_call %x")),
        "the effects of @main differs",
    ),
    "an effect moved out of a loop": (
        main(EFFECT_IN_LOOP),
        main(LOG_X + "\nreturn %x"),
        "before stablehlo.while, after stablehlo.custom_call",
    ),
    "an effect in a called function cloned": (
        main("%a = call @log %x\nreturn %x", private("log", "%e = custom_call %p\nreturn %p")),
        main("%a = call @log %x\n%b = call @log %x\nreturn %x", private("log", "%e = custom_call %p\nreturn %p")),
        "the effects of @main differs",
    ),
    "random numbers without a seed cloned": (
        main("%a = rng %x\n%b = subtract %a, %a\nreturn %b"),
        main("%a = rng %x\n%c = rng %x\n%b = subtract %a, %c\nreturn %b"),
        "the effects before stablehlo.rng: before no effect, after stablehlo.rng",
    ),
    "an effect that reads what an earlier one returned": (
        program_returning_x("%a = custom_call %x", "%b = custom_call %y", "%c = custom_call %a"),
        program_returning_x("%a = custom_call %x", "%b = custom_call %y", "%c = custom_call %b"),
        "the effects before stablehlo.custom_call: before no effect, after stablehlo.custom_call",
    ),
    "an operation that is not known to be pure": (
        main('%a = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n%b = subtract %a, %a\nreturn %b'),
        main(
            '%a = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n'
            '%c = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n%b = subtract %a, %c\nreturn %b'
        ),
        "the effects before other.op: before no effect, after other.op",
    ),
    "a collective of something else": (
        main("%a = all_reduce %x\n%b = subtract %a, %a\nreturn %b"),
        main("%a = all_reduce %x\n%c = all_reduce %y\n%b = subtract %a, %c\nreturn %b"),
        "result #0 of @main differs",
    ),
    "a donation lost": (
        main("return %x").replace("%x: tensor<4xf32>", "%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}"),
        main("return %x"),
        "argument #0 of @main differs: before tf.aliasing_output = 0 : i32, after no tf.aliasing_output",
    ),
    "a donation of another argument": (
        main("return %x").replace("%x: tensor<4xf32>", "%x: tensor<4xf32> {jax.buffer_donor = true}"),
        main("return %x").replace("%y: tensor<4xf32>", "%y: tensor<4xf32> {jax.buffer_donor = true}"),
        "argument #0 of @main differs",
    ),
    "a result attribute changed": (
        main("return %x").replace("-> tensor<4xf32>", '-> (tensor<4xf32> {jax.result_info = "a"})'),
        main("return %x").replace("-> tensor<4xf32>", '-> (tensor<4xf32> {jax.result_info = "b"})'),
        "result #0 of @main differs",
    ),
    "an attribute of a public function": (
        main("return %x", attributes='attributes {execution_thread = "main"} '),
        main("return %x"),
        "@main differs: before execution_thread",
    ),
    "an unused argument": (
        main("return %x"),
        main("return %x").replace(", %y: tensor<4xf32>", ""),
        "@main differs: before function_type",
    ),
    "another public function": (PUBLIC, PUBLIC.replace("tanh", "sine"), "result #0 of @eval differs"),
    "a public function missing": (PUBLIC, main("return %x"), "@eval exists only in the original program"),
    "a public function added": (main("return %x"), PUBLIC, "@eval exists only in the rewritten program"),
    "a public function made private": (
        PUBLIC,
        PUBLIC.replace("func.func @eval", "func.func private @eval"),
        "@eval exists only in the original program",
    ),
    "a public function made nested": (
        PUBLIC,
        PUBLIC.replace("func.func @eval", "func.func nested @eval"),
        "@eval differs: before no sym_visibility, after sym_visibility",
    ),
    "an attribute of the module": (
        "module attributes {mhlo.num_partitions = 1 : i32} {\n" + main("return %x") + "\n}",
        "module attributes {mhlo.num_partitions = 2 : i32} {\n" + main("return %x") + "\n}",
        "the module differs: before mhlo.num_partitions = 1 : i32, after mhlo.num_partitions = 2 : i32",
    ),
    "a region of an unknown operation": (
        main('"other.op"() ({}) : () -> ()\nreturn %x'),
        main('"other.op"() ({\n^a:\n}) : () -> ()\nreturn %x'),
        "the effects of @main differs",
    ),
    "something else at the top level": (
        main("return %x", '"sdy.mesh"() <{sym_name = "mesh", mesh = "a=2"}> : () -> ()'),
        main("return %x", '"sdy.mesh"() <{sym_name = "mesh", mesh = "a=4"}> : () -> ()'),
        "the top level of the module differs: before sdy.mesh with mesh",
    ),
}


@pytest.mark.parametrize("rule", UNEQUAL)
def test_unequal_programs_are_not_proved(rule: str) -> None:
    before, after, reason = UNEQUAL[rule]
    proof = compare(before, after)
    assert not proof.proved
    assert reason in proof.reason
    assert not compare(after, before).proved


@pytest.mark.parametrize("rule", UNEQUAL)
def test_each_of_two_different_programs_equals_itself(rule: str) -> None:
    """Each program of an unequal pair is proved equal to itself, so that only the difference can reject the pair."""
    for text in UNEQUAL[rule][:2]:
        proof = compare(text, text)
        assert proof.proved, proof.reason


def test_arguments_of_nested_loops_are_distinct() -> None:
    choices = [(a, b) for a in ("i", "k") for b in ("i", "k")]
    for before in choices:
        for after in choices:
            assert compare(main(fill(NESTED, *before)), main(fill(NESTED, *after))).proved == (before == after)


def test_difference_names_both_places() -> None:
    after = main(f'%a = "stablehlo.sine"(%x) : ({T}) -> {T} loc("a.py":3:4)\nreturn %a')
    proof = compare(main("%a = tanh %x\nreturn %a"), after)
    assert proof.reason == "result #0 of @main differs: before stablehlo.tanh, after stablehlo.sine at a.py:3:4"


def test_path_leads_from_result_to_difference() -> None:
    text = main("%a = tanh %x\n%b = sine %a\n%c = add %y, %b\nreturn %c")
    difference = compare(text, text.replace("tanh %x", "tanh %y")).difference
    assert difference is not None
    assert difference.path == ("stablehlo.add operand 1", "stablehlo.sine operand 0", "stablehlo.tanh operand 0")
    assert (difference.before, difference.after) == ("argument 0 of @main", "argument 1 of @main")


def test_proof_reports_operation_counts() -> None:
    proof = compare(main("%a = tanh %x\nreturn %a"), main("%b = sine %x\n%a = tanh %x\nreturn %a"))
    assert (proof.results, proof.operations_before, proof.operations_after) == (1, 3, 4)
    nothing = compare(main("%a = tanh %x\nreturn %a"), main("return %x"))
    assert (nothing.results, nothing.operations_before, nothing.operations_after) == (0, 0, 0)


def test_caller_can_declare_an_operation_pure() -> None:
    once = '%a = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n'
    before, after = load(main(once + "return %a")), load(main(once + once.replace("%a", "%b") + "return %b"))
    assert not prove(before, after).proved
    assert prove(before, after, ProofOptions(pure={"other.op"})).assumed_pure == ()
    also = prove(before, after, ProofOptions(also_pure={"other.op", "other.absent", "stablehlo.tanh"}))
    assert also.proved and also.assumed_pure == ("other.op",)


def test_proof_leaves_the_programs_unchanged() -> None:
    before, after = (load(text) for text in EQUAL["a clone behind a token is the original"])
    texts = str(before), str(after)
    prove(before, after)
    assert (str(before), str(after)) == texts


def test_exponential_call_inlining_is_refused() -> None:
    levels = [private(f"f{n}", f"%a = call @f{n + 1} %p\n%b = call @f{n + 1} %a\nreturn %b") for n in range(40)]
    text = main("%a = call @f0 %x\nreturn %a", "\n".join([*levels, private("f40", "return %p")]))
    assert "the program has more than 5000000 operations" in compare(text, text.replace("f0", "g0")).reason


def test_number_of_inlined_operations_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    text = main("%a = tanh %x\n%b = call @square %a\nreturn %b", SQUARE)
    for limit, proved in ((5, True), (4, False)):
        monkeypatch.setattr(call_inliner, "MAX_OPERATIONS", limit)
        assert compare(text, text.replace("square", "other")).proved == proved


@pytest.mark.slow
def test_deeply_nested_calls_are_supported() -> None:
    levels = "\n".join(private(f"f{n}", f"%a = call @f{n + 1} %p\nreturn %a") for n in range(1500))
    text, other = (
        main("%a = call @f0 %x\nreturn %a", f"{levels}\n{private('f1500', last)}")
        for last in ("return %p", "%a = tanh %p\nreturn %a")
    )
    assert compare(text, text).proved
    assert not compare(text, other).proved


def test_long_operation_chain_is_supported() -> None:
    chain = "\n".join(f"%v{n + 1} = tanh %v{n}" for n in range(1500))
    text = main(f"%v0 = tanh %x\n{chain}\nreturn %v1500")
    assert compare(text, text).proved
    proof = compare(text, text.replace("%v0 = tanh", "%v0 = sine"))
    assert proof.reason == (
        "result #0 of @main differs: stablehlo.tanh operand 0: before stablehlo.tanh, after stablehlo.sine"
    )
