"""Modules of operations in reports: paths of scopes, without the scopes that JAX adds."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult

from recompute.analysis.step.descriptions import (
    module_of,
    module_of_stack,
    modules_of_copies,
    segment_names,
    without_loop_scopes,
)
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import every_operation

T, STACK = "tensor<4xf32>", "tensor<2x4xf32>"
LOOP = """func.func @step(%x: {T}, %stack: {S}) -> ({T}, {S}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %c = stablehlo.sine %x : {T} loc("{constant}/sin")
  %w:3 = stablehlo.while(%i = %zero, %h = %c, %s = %stack) : tensor<i32>, {T}, {S}
  cond {{
    %more = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("{loop}/while/cond/lt")
    stablehlo.return %more : tensor<i1>
  }} do {{
    %t = stablehlo.tanh %h : {T} loc("{loop}/while/body/Block_1/tanh")
    %u = stablehlo.cosine %t {{recompute.recomputed}} : {T} loc("{copy}/cos")
    %r = stablehlo.reshape %u : ({T}) -> tensor<1x4xf32> loc("{loop}/while/body/reshape")
    %n = stablehlo.dynamic_update_slice %s, %r, %i, %zero : ({S}, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> {S}
    %next = stablehlo.add %i, %one : tensor<i32> loc("{loop}/while/body/Block_1/add")
    stablehlo.return %next, %t, %n : tensor<i32>, {T}, {S}
  }} loc("{loop}/while")
  func.return %w#1, %w#2 : {T}, {S} loc("")
}}
"""


def loop_with(copy: str = "jit(step)/jvp(LM)/Block_1", constant: str = "jit(step)/jvp(LM)/Other") -> ModuleOp:
    """Return a step with the loop `LM/Block_1` and a copy and a constant with the given scopes."""
    return parse_module(LOOP.format(T=T, S=STACK, loop="jit(step)/jvp(LM)", copy=copy, constant=constant))


def named(module: ModuleOp, name: str) -> Operation:
    return next(op for op in every_operation(module) if op.name == f"stablehlo.{name}")


def stack_of(module: ModuleOp) -> OpResult:
    stack = named(module, "while").results[2]
    assert isinstance(stack, OpResult)
    return stack


def test_copies_and_stacks_of_a_loop_are_in_the_modules_of_its_body() -> None:
    module = loop_with("jit(step)/jvp(LM)/Block_1/Dense")
    copy = named(module, "cosine")
    assert modules_of_copies([copy]) == {copy: "LM/Block_1/Dense"}
    assert module_of_stack(stack_of(module)) == "LM/Block_1/Dense"


def test_scopes_are_compared_by_components() -> None:
    module = loop_with("jit(step)/jvp(LM_10)/Dense")
    copy = named(module, "cosine")
    assert modules_of_copies([copy]) == {copy: "LM"}
    assert module_of_stack(stack_of(module)) == ""


def test_constants_that_flax_moves_out_of_a_loop_belong_to_their_module() -> None:
    assert module_of(named(loop_with(constant="jit(step)/Block_1/Dense"), "sine")) == "LM/Block_1/Dense"
    assert module_of(named(loop_with(constant="jit(step)/Block_10/Dense"), "sine")) == "Block_10/Dense"
    assert module_of(named(loop_with(constant="jit(step)/Embed"), "sine")) == "Embed"
    assert module_of(named(loop_with(constant="jit(step)/jvp(LM)"), "sine")) == "LM/Block_1"


def test_equations_of_einsum_are_no_modules() -> None:
    text = f"""func.func @step(%x: {T}) -> {T} {{
      %y = stablehlo.sine %x : {T} loc("jit(step)/jvp(LM)/attn/bhqk,bkhd->bqhd/sin")
      func.return %y : {T}
    }}
    """
    sine = named(parse_module(text), "sine")
    assert module_of(sine) == "LM/attn"
    assert segment_names([("LM/attn/...ij,jk->...ik", [sine])]) == ["LM/attn"]
    assert without_loop_scopes("LM/encoder->decoder_0") == "LM/encoder->decoder_0"
