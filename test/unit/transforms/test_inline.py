"""Properties of inlining that a small MLIR file cannot express."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.transforms.inline import inline


def doubling(levels: int) -> str:
    """Return functions that each call the next one twice."""
    step = "func.func private @f{0}(%x: f32) -> f32 {{\n  %a = {1} %x : f32\n  return %a : f32\n}}\n"
    call = "func.call @f{0}(%x) : (f32) -> f32\n  %a = func.call @f{0}(%b) : (f32) -> f32\n  return %a : f32\n}}\n"
    functions = [f"func.func private @f{n}(%x: f32) -> f32 {{\n  %b = " + call.format(n + 1) for n in range(levels)]
    main = functions[0].replace("private @f0", "@main")
    return main + "".join(functions[1:]) + step.format(levels, "math.tanh")


def test_doubling_calls_within_the_limit_are_inlined() -> None:
    module = parse_module(doubling(5))
    assert inline(module) == 2 * 5
    assert sum(1 for _ in module.walk()) == 2 + 2**5 + 1


def test_too_many_calls_are_refused_before_inlining() -> None:
    text = doubling(40)
    module = parse_module(text)
    with pytest.raises(Refusal, match="would have more than 1000000 operations after inlining"):
        inline(module)
    assert str(module) == str(parse_module(text))


def test_deep_chain_of_calls_is_inlined() -> None:
    """A chain of 3000 functions, each of which calls the next, is inlined without recursion."""
    count, type_ = 3000, "tensor<4xf32>"
    ends = [f"%0 = call @f{n + 1}(%x) : ({type_}) -> {type_}" for n in range(count - 1)]
    bodies = [*ends, f"%0 = stablehlo.sine %x : {type_}"]
    functions = "\n".join(
        f"func.func private @f{n}(%x: {type_}) -> {type_} {{\n{body}\nreturn %0 : {type_}\n}}"
        for n, body in enumerate(bodies)
    )
    call = f"%0 = call @f0(%x) : ({type_}) -> {type_}"
    module = parse_module(f"func.func @main(%x: {type_}) -> {type_} {{\n{call}\nreturn %0 : {type_}\n}}\n{functions}")
    inline(module)
    names = [op.name for op in module.walk()]
    assert names == ["builtin.module", "func.func", "stablehlo.sine", "func.return"]
