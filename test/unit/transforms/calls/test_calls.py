"""Calls restored after recomputation: code that no longer matches its function stays inlined; results are unchanged.

Each step has two blocks, of which the first one is recomputed; what it calls, and how, differs from case to case.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from recompute.dialects.names import Names
from recompute.driver.api import explain, memory
from recompute.driver.verification.verified import verify_module
from recompute.interpreters.execute_check import PreparedPair
from recompute.interpreters.executor import function_named
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import Recomputation, rewrite_in_place

SINE = """
func.func private @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<1024xf32>
  %0 = stablehlo.multiply %x, %two : tensor<1024xf32> loc("mul")
  %1 = stablehlo.sine %0 : tensor<1024xf32> loc("sin")
  func.return %1 : tensor<1024xf32>
}
"""
CALLED = '%a = func.call @f(%x) : (tensor<1024xf32>) -> tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")\n'


def step(block: str = CALLED, functions: str = SINE, arguments: str = "%x: tensor<1024xf32>", more: str = "") -> str:
    """Return a step whose block makes %a from %x, and whose gradient reads %a and the value after it."""
    return f"""
func.func @step({arguments}) -> (tensor<1024xf32>, tensor<1024xf32>) {{
  {block}
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(s)/jvp(block0)/exp")
  %o = stablehlo.cosine %b : tensor<1024xf32> loc("jit(s)/jvp(block0)/cos")
  %c = stablehlo.tanh %o : tensor<1024xf32> loc("jit(s)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(s)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(s)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(s)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %l = stablehlo.multiply %g, %o : tensor<1024xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %h = stablehlo.multiply %l, %b : tensor<1024xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  {more}
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}}
{functions}"""


@dataclass(frozen=True)
class Restored:
    before: ModuleOp
    after: ModuleOp
    recomputation: Recomputation

    @property
    def calls(self) -> list[CallOp]:
        return [op for op in self.after.walk() if isinstance(op, CallOp)]

    @property
    def called(self) -> list[tuple[str, bool]]:
        """The functions called in the step, and whether each call is a copy."""
        step = function(self.after, "step")
        calls = [op for op in step.walk() if isinstance(op, CallOp)]
        return [(call.callee.string_value(), Names.COPY in call.attributes) for call in calls]

    @property
    def functions(self) -> list[str]:
        return [op.sym_name.data for op in self.after.ops if isinstance(op, FuncOp)]


def function(module: ModuleOp, name: str) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)


def with_calls(text: str, selection: Selection | None = None) -> Restored:
    """Recompute the step with calls restored, and check the result.

    The result is proved and executed, needs the bytes of the result without calls, is read back from its text, and does
    not change when recomputed again.
    """
    before = parse_module(text, "step.mlir")
    verify_module(before)
    flat, after = before.clone(), before.clone()
    request = selection or Selection(segments="block0")
    rewrite_in_place(flat, RecomputeOptions(request, calls=False))
    result = rewrite_in_place(after, RecomputeOptions(request))
    assert result.copies > 0
    verify_module(after)
    assert prove(before, after)
    assert (
        PreparedPair.of(before, after, "step").compare(random_inputs(function_named(before, "step"))).difference is None
    )
    again = parse_module(print_module(after, debuginfo=True), "after.mlir")
    for item in (after, again):
        assert [t.peak_bytes for t in memory(item).values()] == [t.peak_bytes for t in memory(flat).values()]
        assert len(explain(item)) == len(explain(flat))
        assert_no_marks_inside(before, item)
    second = rewrite_in_place(again)
    assert second.copies == 0 and "already has copies" in second.remarks[-1].reason
    return Restored(before, after, result)


def assert_no_marks_inside(before: ModuleOp, after: ModuleOp) -> None:
    """Assert that no called function has attributes beyond those that it had before."""
    came = {op.sym_name.data: op for op in before.ops if isinstance(op, FuncOp)}
    for op in after.ops:
        if isinstance(op, FuncOp) and op.sym_visibility == StringAttr("private"):
            if op.sym_name.data in came:
                assert str(op) == str(came[op.sym_name.data])
            else:
                assert not any(name.startswith(Names.PREFIX) for inner in op.walk() for name in inner.attributes)


def test_call_and_copy_call_original_function() -> None:
    result = with_calls(step())
    assert result.called == [("f", False), ("f", True)]
    assert (
        result.recomputation.restored_calls.calls,
        result.recomputation.restored_calls.whole,
        result.recomputation.restored_calls.left,
    ) == (2, 2, {})
    original, copy = result.calls
    assert original.attributes[Names.ID] == copy.attributes[Names.ID]
    assert copy.attributes[Names.SEGMENT] == StringAttr("block0")
    assert "jit(s)/transpose(jvp(block0))/recompute/jit(f)" in str(copy.location)


def test_without_the_option_everything_is_inlined() -> None:
    module = parse_module(step())
    result = rewrite_in_place(module, RecomputeOptions(Selection(segments="block0"), calls=False))
    assert not any(isinstance(op, CallOp) for op in module.walk())
    assert result.restored_calls.calls == 0


def test_step_without_copies_is_unchanged() -> None:
    module = parse_module(step().replace("jvp(block0)", "jvp(other)"))
    text = str(module)
    assert rewrite_in_place(module, RecomputeOptions(Selection(segments="block1"))).copies == 0
    assert str(module) == text


TWO_CONSTANTS = """
%one = stablehlo.constant dense<1.0> : tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")
%three = stablehlo.constant dense<3.0> : tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")
%p = func.call @f(%x, %one) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")
%a = func.call @f(%p, %three)
    : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")
"""
SCALED = """
func.func private @f(%x: tensor<1024xf32>, %k: tensor<1024xf32>) -> tensor<1024xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
  %0 = stablehlo.multiply %x, %k : tensor<1024xf32> loc("mul")
  %1 = stablehlo.add %0, %one : tensor<1024xf32> loc("add")
  func.return %1 : tensor<1024xf32>
}
"""


def test_constant_arguments_stay_arguments() -> None:
    """An argument stays an argument if in one call it equals a constant of the body."""
    result = with_calls(step(TWO_CONSTANTS, SCALED))
    assert result.called == [("f", False), ("f", False), ("f", True), ("f", True)]
    assert result.functions == ["step", "f"]


NESTED = """
func.func private @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = func.call @g(%x) : (tensor<1024xf32>) -> tensor<1024xf32> loc("jit(g)")
  %1 = func.call @g(%0) : (tensor<1024xf32>) -> tensor<1024xf32> loc("jit(g)")
  func.return %1 : tensor<1024xf32>
}
func.func private @g(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<1024xf32>
  %0 = stablehlo.multiply %x, %two : tensor<1024xf32> loc("mul")
  func.return %0 : tensor<1024xf32>
}
"""


def test_nested_calls_are_restored() -> None:
    result = with_calls(step(functions=NESTED))
    assert result.called == [("f", False), ("f", True)]
    assert result.functions == ["step", "f", "g"]


LOOP = """
%zero = stablehlo.constant dense<0> : tensor<i32> loc("jit(s)/jvp(block0)/while")
%n, %a = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<1024xf32>
cond {
  %five = stablehlo.constant dense<5> : tensor<i32>
  %t = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %t : tensor<i1>
} do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %i, %one : tensor<i32>
  %r = func.call @f(%v) : (tensor<1024xf32>) -> tensor<1024xf32>
  stablehlo.return %next, %r : tensor<i32>, tensor<1024xf32>
} loc("jit(s)/jvp(block0)/while")
"""


def test_calls_in_loops_are_restored() -> None:
    """The calls in a loop and in its copy are restored; the copied loop is one copy, so its call has no mark of its
    own."""
    result = with_calls(step(LOOP, SINE))
    assert result.called == [("f", False), ("f", False)]
    assert result.functions == ["step", "f"]


SCF_LOOP = """
%lo = arith.constant 0 : index
%hi = arith.constant 3 : index
%by = arith.constant 1 : index
%a = scf.for %i = %lo to %hi step %by iter_args(%v = %x) -> (tensor<1024xf32>) {
  %r = func.call @f(%v) : (tensor<1024xf32>) -> tensor<1024xf32>
  scf.yield %r : tensor<1024xf32>
} loc("jit(s)/jvp(block0)/while")
"""


def test_calls_in_scf_loops_are_restored() -> None:
    assert with_calls(step(SCF_LOOP, SINE)).functions == ["step", "f"]


LOOP_IN_FUNCTION = f"""
func.func private @loop(%x: tensor<1024xf32>) -> tensor<1024xf32> {{
  {LOOP.replace("jit(s)/jvp(block0)/", "")}
  func.return %a : tensor<1024xf32>
}}
{SINE}"""


def test_function_with_a_call_in_a_loop_is_restored() -> None:
    result = with_calls(step(CALLED.replace("@f", "@loop"), LOOP_IN_FUNCTION))
    assert result.called == [("loop", False), ("loop", True)]
    assert result.functions == ["step", "loop", "f"]


SEVERAL = """
func.func private @f(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %0 = stablehlo.sine %x : tensor<1024xf32> loc("sin")
  %1 = stablehlo.cosine %x : tensor<1024xf32> loc("cos")
  func.return %0, %x, %1 : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
"""
CALLED_FOR_SEVERAL = """
%a, %same, %local = func.call @f(%x)
    : (tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) loc("jit(s)/jvp(block0)/jit(f)")
"""


def test_unread_results_reduce_the_called_function() -> None:
    """If one result is unread, original and copy call a reduced function, without the operations that were dead."""
    result = with_calls(step(CALLED_FOR_SEVERAL, SEVERAL))
    assert result.called == [("f_1", False), ("f_1", True)]
    assert result.functions == ["step", "f_1"]


def test_call_of_reduced_function_makes_only_needed_results() -> None:
    """The original calls a reduced function, since it needs the sine alone; its copy also makes the local
    derivative."""
    more = 'stablehlo.multiply %h, %local : tensor<1024xf32> loc("jit(s)/transpose(jvp(block0))/mul")'
    text = step(CALLED_FOR_SEVERAL, SEVERAL, more=f"%k = {more}").replace(
        "%i = stablehlo.multiply %h", "%i = stablehlo.multiply %k"
    )
    result = with_calls(text)
    assert result.called == [("f_1", False), ("f", True)]
    assert result.functions == ["step", "f", "f_1"]


def test_returned_argument_is_read_from_call() -> None:
    whole = SEVERAL.replace("%0, %x, %1", "%1, %x, %0").replace("cosine %x", "cosine %0")
    text = step(CALLED_FOR_SEVERAL, whole).replace("exponential %a", "add %a, %same")
    result = with_calls(text)
    assert result.called == [("f", False), ("f", True)]
    call = result.calls[0]
    assert call.results[1].first_use is not None


def test_taken_function_name_is_avoided() -> None:
    taken = SINE.replace("@f", "@f_1").replace("private ", "")
    result = with_calls(step(CALLED_FOR_SEVERAL, SEVERAL + taken))
    assert result.called == [("f_2", False), ("f_2", True)]
    assert result.functions == ["step", "f_2", "f_1"]


def test_partly_copied_function_stays_inlined() -> None:
    """The called function returns the saved product, and the copy of the remaining operations stays inlined."""
    matrices = """
func.func private @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = stablehlo.sine %x : tensor<32x32xf32> loc("sin")
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0]
      : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("dot_general")
  %2 = stablehlo.cosine %1 : tensor<32x32xf32> loc("cos")
  func.return %2 : tensor<32x32xf32>
}
"""
    text = step(functions=matrices).replace("1024x", "32x32x")
    result = with_calls(text, Selection(segments="block0", policy="dots_saveable"))
    assert result.called == [("f_1", False)]
    copied = [op.name for op in function(result.after, "step").walk() if Names.COPY in op.attributes]
    assert "stablehlo.cosine" in copied and "stablehlo.dot_general" not in copied
    assert sum(result.recomputation.restored_calls.left.values()) == 1


def test_equal_operations_inside_and_outside_a_call_stay_distinct() -> None:
    outside = (
        CALLED
        + """
%two = stablehlo.constant dense<2.0> : tensor<1024xf32> loc("jit(s)/jvp(block0)/mul")
%twin = stablehlo.multiply %x, %two : tensor<1024xf32> loc("jit(s)/jvp(block0)/mul")
%more = stablehlo.add %twin, %a : tensor<1024xf32> loc("jit(s)/jvp(block0)/add")
"""
    )
    text = step(outside).replace("exponential %a", "exponential %more")
    result = with_calls(text)
    assert result.called == [("f", False), ("f", True)]
    multiplied = [op for op in function(result.after, "step").walk() if op.name == "stablehlo.multiply"]
    assert sum(Names.COPY in op.attributes for op in multiplied) == 1


def test_calls_in_several_public_functions_are_restored() -> None:
    other = """
func.func @other(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = func.call @f(%x) : (tensor<1024xf32>) -> tensor<1024xf32> loc("jit(f)")
  func.return %a : tensor<1024xf32>
}
"""
    result = with_calls(step(functions=other + SINE))
    assert result.functions == ["step", "other", "f"]
    assert str(function(result.after, "other")) == str(function(result.before, "other"))


def test_attributes_of_functions_arguments_and_calls_are_kept() -> None:
    message = SINE.replace("@f(%x: tensor<1024xf32>)", '@f(%x: tensor<1024xf32> {mhlo.note = "in"})')
    message = message.replace(
        "-> tensor<1024xf32> {", '-> (tensor<1024xf32> {mhlo.note = "out"}) attributes {mhlo.kept} {'
    )
    called = CALLED.replace("@f(%x) :", '@f(%x) {mhlo.frontend_attributes = {a = "b"}} :')
    result = with_calls(step(called, message, "%x: tensor<1024xf32> {tf.aliasing_output = 1 : i32}"))
    assert result.called == [("f", False), ("f", True)]
    assert all("mhlo.frontend_attributes" in call.attributes for call in result.calls)
    assert str(function(result.after, "f")) == str(function(result.before, "f"))


@pytest.mark.parametrize(
    "effect",
    [
        'stablehlo.custom_call @debug(%x) {has_side_effect = true} : (tensor<1024xf32>) -> tensor<1024xf32> loc("x")',
        '"somebody.effect"(%x) : (tensor<1024xf32>) -> tensor<1024xf32> loc("call")',
    ],
)
def test_effects_keep_their_place(effect: str) -> None:
    """The results of effects are returned from the functions, and the pure call between them is copied whole."""
    functions = (
        SINE
        + f"""
func.func private @noted(%x: tensor<1024xf32>) -> tensor<1024xf32> {{
  %0 = {effect}
  %1 = stablehlo.sine %0 : tensor<1024xf32> loc("sin")
  func.return %1 : tensor<1024xf32>
}}
"""
    )
    noted = CALLED.replace("%a", "%p").replace("@f", "@noted") + CALLED.replace("(%x)", "(%p)")
    noted += CALLED.replace("%a", "%q").replace("@f(%x)", "@noted(%a)")
    text = step(noted, functions).replace("exponential %a", "exponential %q")
    before = parse_module(text)
    after = before.clone()
    result = rewrite_in_place(after, RecomputeOptions(Selection(segments="block0")))
    assert result.copies > 0
    verify_module(after)
    assert prove(before, after)
    actual = Restored(before, after, result)
    assert actual.called == [("noted_1", False), ("f", False), ("noted_1", False), ("f", True)]


BITS = """
func.func private @f(%key: tensor<2xui64>) -> tensor<1024xf32> {
  %state, %bits = stablehlo.rng_bit_generator %key, algorithm = THREE_FRY
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1024xui32>) loc("bits")
  %0 = stablehlo.convert %bits : (tensor<1024xui32>) -> tensor<1024xf32> loc("convert")
  func.return %0 : tensor<1024xf32>
}
"""


def test_function_that_draws_random_bits_is_restored() -> None:
    """A call is restored although an operation in it has an unread second result."""
    called = """
%r = func.call @f(%key) : (tensor<2xui64>) -> tensor<1024xf32> loc("jit(s)/jvp(block0)/jit(f)")
%a = stablehlo.multiply %x, %r : tensor<1024xf32> loc("jit(s)/jvp(block0)/mul")
"""
    result = with_calls(step(called, BITS, "%x: tensor<1024xf32>, %key: tensor<2xui64>"))
    assert result.called == [("f", False), ("f", True)]


def test_copy_made_in_two_stages_stays_inlined() -> None:
    """A copy that a barrier divides stays inlined: first the random bits, then a sine that could run beside them."""
    taking = BITS.replace("(%key:", "(%x: tensor<1024xf32>, %key:").replace("return %0", "return %2")
    beside = '  %1 = stablehlo.sine %x : tensor<1024xf32> loc("sin")\n'
    behind = '  %2 = stablehlo.multiply %1, %0 : tensor<1024xf32> loc("mul")\n'
    taking = taking.replace("  func.return", f"{beside}{behind}  func.return")
    called = CALLED.replace("(%x)", "(%x, %key)").replace("(tensor<1024xf32>)", "(tensor<1024xf32>, tensor<2xui64>)")
    result = with_calls(step(called, taking, "%x: tensor<1024xf32>, %key: tensor<2xui64>"))
    assert result.called == [("f", False)]
    assert sum(result.recomputation.restored_calls.left.values()) == 1


def test_marks_inside_a_function_are_kept_on_originals_only() -> None:
    """The user's marks inside a function are kept on originals, since a copy must not have them."""
    marked = SINE.replace('tensor<1024xf32> loc("sin")', 'tensor<1024xf32> loc("sin")').replace(
        "stablehlo.sine %0 :", "stablehlo.sine %0 {recompute.recompute = true} :"
    )
    result = with_calls(step(functions=marked))
    assert ("f", True) not in result.called


def test_restored_calls_lose_their_mark() -> None:
    """The mark of a call is dropped: it was for everything in it, and parts that depend only on constants may be
    kept."""
    result = with_calls(step(CALLED.replace("@f(%x) :", "@f(%x) {recompute.recompute = true} :")))
    original, copy = result.calls
    assert Names.COPY in copy.attributes
    assert Names.RECOMPUTE not in original.attributes and Names.RECOMPUTE not in copy.attributes
