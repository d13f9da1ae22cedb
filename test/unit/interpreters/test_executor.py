"""The executor frees values after their last reader, shares storage only for views, and refuses unsupported input."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from recompute.analysis.memory.timeline import timeline
from recompute.dialects.recompute import RECOMPUTE
from recompute.dialects.stablehlo import STABLEHLO
from recompute.interpreters import register_kernel, registrations_undone
from recompute.interpreters.block_compiler import is_known
from recompute.interpreters.control_flow import CONTROL_FLOW
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.kernels.table import KERNELS, STRUCTURED, WITH_COMBINER, WITH_TWO_COMBINERS
from recompute.interpreters.meter import meter, owner_of
from recompute.mlir_io.parser import parse_module
from recompute.rules.effects import TERMINATORS
from recompute.support.diagnostics import Refusal

from .evaluate import array

T = "tensor<2x3xf32>"
X = np.arange(6, dtype=np.float32).reshape(2, 3)

# Read and written, but not executed yet.
NOT_EXECUTED = frozenset(
    """
    custom_call infeed outfeed recv send
    """.split()
)


def module(body: str, result: str = T, arguments: str = f"%x: {T}") -> ModuleOp:
    return parse_module(f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}", "f.mlir")


def run(body: str, *inputs: Array, result: str = T) -> Array:
    (actual,) = execute(function_named(module(body, result)), inputs or [X])
    return actual


def test_every_operation_has_a_kernel_or_is_listed() -> None:
    unknown = {kind.name for kind in (*STABLEHLO.operations, *RECOMPUTE.operations) if not is_known(kind)}
    assert unknown - TERMINATORS == {f"stablehlo.{name}" for name in NOT_EXECUTED}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("stablehlo.negate", f"%r = stablehlo.negate %x : {T}"),
        ("stablehlo.optimization_barrier", f"%r = stablehlo.optimization_barrier %x : {T}"),
        (
            "stablehlo.while",
            f"%no = stablehlo.constant dense<false> : tensor<i1>\n"
            f"%r = stablehlo.while(%v = %x) : {T}\n"
            f"cond {{ stablehlo.return %no : tensor<i1> }} do {{ stablehlo.return %v : {T} }}",
        ),
    ],
)
def test_kernel_of_a_user_precedes_the_built_in_one(name: str, body: str) -> None:
    with registrations_undone():
        register_kernel(name, lambda op: lambda *operands: (operands[0] + 10,))
        assert np.array_equal(run(body), X + 10)


CUSTOM_CALL = f"%r = stablehlo.custom_call @{{}}(%x) : ({T}) -> {T}"


def test_kernel_of_a_target_runs_its_custom_calls_only() -> None:
    with registrations_undone():
        register_kernel("stablehlo.custom_call", lambda op: lambda *operands: (operands[0] + 10,), target="mine")
        assert np.array_equal(run(CUSTOM_CALL.format("mine")), X + 10)
        with pytest.raises(Refusal, match="custom_call @lapack_spotrf_ffi cannot be executed"):
            run(CUSTOM_CALL.format("lapack_spotrf_ffi"))
        register_kernel("stablehlo.custom_call", lambda op: lambda *operands: (operands[0] + 20,))
        assert np.array_equal(run(CUSTOM_CALL.format("mine")), X + 10)
        assert np.array_equal(run(CUSTOM_CALL.format("other")), X + 20)


def test_unknown_custom_call_is_refused_with_its_target_position_and_remedy() -> None:
    with pytest.raises(Refusal) as refused:
        run(CUSTOM_CALL.format("lapack_spotrf_ffi") + ' loc("jit(f)/cholesky"("model.py":7:9))')
    assert str(refused.value) == (
        "model.py:7:9: error: stablehlo.custom_call @lapack_spotrf_ffi cannot be executed: the interpreter does not "
        "know this target; declare its numpy implementation: recompute.interpreters.register_kernel"
        '("stablehlo.custom_call", make, target="lapack_spotrf_ffi") (docs/foreign_dialects.md)'
    )


def test_only_custom_calls_have_targets() -> None:
    with registrations_undone(), pytest.raises(ValueError, match=r"only stablehlo\.custom_call has targets"):
        register_kernel("acme.swish", lambda op: lambda *operands: operands, target="mine")


def test_no_operation_has_two_built_in_kernels() -> None:
    """No operation is in two built-in tables, so that their order in `KERNEL_SOURCES` has no effect."""
    names = [name for table in (CONTROL_FLOW, STRUCTURED, WITH_COMBINER, WITH_TWO_COMBINERS, KERNELS) for name in table]
    assert len(names) == len(set(names))


class Watch:
    """An observer that records the arrays of each operation by its name."""

    def __init__(self) -> None:
        self.seen = list[tuple[str, bool, bool]]()

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        for actual in arrays:
            if actual is not None:
                self.seen.append((op.name, actual.flags.owndata, actual.flags.c_contiguous))

    def on_yield(self, op: Operation, arrays: Sequence[Array]) -> None: ...

    def on_carry(self, op: Operation, arrays: Sequence[Array]) -> None: ...


def test_only_views_share_buffers() -> None:
    watch = Watch()
    text = f"""
      %a = stablehlo.tanh %x : {T}
      %b = stablehlo.transpose %a, dims = [1, 0] : ({T}) -> tensor<3x2xf32>
      %c = stablehlo.slice %a [0:2, 0:3] : ({T}) -> {T}
      %d = stablehlo.convert %a : {T}
      %e = stablehlo.optimization_barrier %b : tensor<3x2xf32>
      %f = stablehlo.negate %e : tensor<3x2xf32>
      %g = stablehlo.reshape %a : ({T}) -> tensor<6xf32>
      %h = stablehlo.reshape %b : (tensor<3x2xf32>) -> tensor<6xf32>
      %r = stablehlo.add %c, %d : {T}"""
    execute(function_named(module(text)), [X], watch)
    own, view, strided = (True, True), (False, True), (False, False)
    expected = {
        "stablehlo.tanh": own,
        "stablehlo.transpose": strided,
        "stablehlo.slice": own,
        "stablehlo.convert": own,
        "stablehlo.optimization_barrier": strided,
        "stablehlo.negate": own,
        "stablehlo.reshape": view,
        "stablehlo.add": own,
    }
    assert {name: (owns, dense) for name, owns, dense in watch.seen} == expected


def test_reshape_of_one_row_transpose_copies() -> None:
    """The reshape copies although numpy would return a view: whether an operation copies must not depend on extents."""
    text = """
      %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<1x4xf32>) -> tensor<4x1xf32>
      %r = stablehlo.reshape %t : (tensor<4x1xf32>) -> tensor<4xf32>"""
    x = array([[1, 2, 3, 4]], "f32")
    (result,) = execute(function_named(module(text, "tensor<4xf32>", "%x: tensor<1x4xf32>")), [x])
    assert not np.shares_memory(result, x)


LOOP = """
  %n = stablehlo.constant dense<0> : tensor<i32>
  %k = stablehlo.sine %x : tensor<2x3xf32>
  %i, %a, %r = stablehlo.while(%p = %n, %q = %x, %s = %k) : tensor<i32>, tensor<2x3xf32>, tensor<2x3xf32>
  cond {
    %five = stablehlo.constant dense<5> : tensor<i32>
    %c = stablehlo.compare LT, %p, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %m = stablehlo.add %p, %one : tensor<i32>
    %u = stablehlo.add %s, %k : tensor<2x3xf32>
    stablehlo.return %m, %s, %u : tensor<i32>, tensor<2x3xf32>, tensor<2x3xf32>
  }"""


def test_loop_reads_a_captured_value() -> None:
    expected = np.sin(X)
    for _ in range(5):
        expected = expected + np.sin(X)
    np.testing.assert_array_equal(run(LOOP), expected)


def test_a_loop_that_does_not_run_copies_its_inputs() -> None:
    results = run(LOOP.replace("dense<5>", "dense<0>").replace("%r = stablehlo.while", "%z = stablehlo.while") + LAST)
    np.testing.assert_array_equal(results, X)
    assert not np.shares_memory(results, X)


LAST = "\n%r = stablehlo.optimization_barrier %a : tensor<2x3xf32>"


@pytest.mark.parametrize(
    "body",
    [
        LOOP,
        # It yields its argument twice, a constant, a view, and what it captures.
        f"""
  %n = stablehlo.constant dense<3.0> : {T}
  %z = stablehlo.constant dense<true> : tensor<i1>
  %k = stablehlo.sine %x : {T}
  %w:6 = stablehlo.while(%p = %x, %q = %x, %s = %n, %t = %k, %v = %k, %go = %z) : {T}, {T}, {T}, {T}, {T}, tensor<i1>
  cond {{
    stablehlo.return %go : tensor<i1>
  }} do {{
    %c = stablehlo.constant dense<1.0> : {T}
    %f = stablehlo.constant dense<false> : tensor<i1>
    %a = stablehlo.cosine %p : {T}
    %b = stablehlo.reshape %a : ({T}) -> {T}
    stablehlo.return %q, %q, %c, %b, %k, %f : {T}, {T}, {T}, {T}, {T}, tensor<i1>
  }}
  %e = stablehlo.add %w#0, %w#3 : {T}
  %g = stablehlo.add %e, %w#4 : {T}
  %r = stablehlo.add %g, %w#2 : {T}""",
        # The result of a loop is the result of the function.
        f"""
  %n = stablehlo.constant dense<true> : tensor<i1>
  %i, %r = stablehlo.while(%go = %n, %p = %x) : tensor<i1>, {T}
  cond {{
    stablehlo.return %go : tensor<i1>
  }} do {{
    %f = stablehlo.constant dense<false> : tensor<i1>
    %a = stablehlo.sine %p : {T}
    %b = stablehlo.cosine %a : {T}
    stablehlo.return %f, %b : tensor<i1>, {T}
  }}""",
    ],
)
def test_loop_memory_matches_timeline(body: str) -> None:
    function = function_named(module(body))
    _, metered = meter(function, [X])
    assert metered.live_bytes == timeline(function).live_bytes


class Alive(Watch):
    """An observer that counts the live arrays after each operation."""

    def __init__(self) -> None:
        super().__init__()
        self.references = list[weakref.ref[Array]]()
        self.counts = list[int]()

    def on_results(self, op: Operation, arrays: Sequence[Any]) -> None:
        self.references.extend(weakref.ref(actual) for actual in arrays)
        self.counts.append(sum(reference() is not None for reference in self.references))


def test_every_value_is_freed_after_its_last_reader() -> None:
    """The operands of the running operation are live; an unread result is freed once it is made."""
    alive = Alive()
    text = f"""
      %a = stablehlo.negate %x : {T}
      %b = stablehlo.negate %a : {T}
      %unread = stablehlo.negate %b : {T}
      %c = stablehlo.negate %b : {T}
      %r = stablehlo.negate %c : {T}"""
    (result,) = execute(function_named(module(text)), [X], alive)
    assert alive.counts == [1, 2, 2, 2, 2, 1]
    assert owner_of(result) is result


CALL = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %t = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %k = recompute.token %t : tensor<2xf32>
  %d = recompute.depend %x after %k : tensor<2xf32>
  %r = stablehlo.add %t, %d : tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.negate %x : tensor<2xf32>
  return %y : tensor<2xf32>
}"""


def test_calls_pass_tokens() -> None:
    (result,) = execute(function_named(parse_module(CALL)), [array([1, 2], "f32")])
    assert result.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CALL.replace("%y = stablehlo.negate %x : t", '%y = "a.b"(%x) : (tensor<2xf32>) -> t'),
            "f.mlir:10:8: error: a.b",
        ),
        (
            CALL.replace("stablehlo.negate %x :", "func.call @f(%x) : (tensor<2xf32>) ->"),
            "cannot be executed: it calls itself",
        ),
        (CALL.replace("call @f", "call @g"), "cannot be executed: it has no body"),
        (CALL.replace("negate", "popcnt"), "stablehlo.popcnt cannot be executed: stablehlo.popcnt is not defined"),
    ],
)
def test_unsupported_operation_is_refused_with_location(text: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        execute(function_named(parse_module(text, "f.mlir")), [array([1, 2], "f32")])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "function 'main' takes 1 input, not 0"),
        ([array([1], "f32")], r"input #0 is float32\[1\], expected float32\[2\]"),
        ([array([1, 2], "i32")], r"input #0 is int32\[2\], expected float32\[2\]"),
    ],
)
def test_inputs_must_fit(inputs: list[Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        execute(function_named(parse_module(CALL)), inputs)


def test_function_is_selected_by_name() -> None:
    assert function_named(parse_module(CALL), "f").sym_name.data == "f"
    with pytest.raises(Refusal, match="there is no function 'h'; the module contains main, f"):
        function_named(parse_module(CALL), "h")
    with pytest.raises(Refusal, match="the module has 2 public functions; name the one to run"):
        function_named(parse_module(CALL.replace("@main", "@g").replace("private ", "")))
