"""No function recurses over the length of a program."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.memory.xla.memory import xla_timeline
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.planning.liveness import peak_bytes
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place

T = "tensor<1024xf32>"


def line(result: str, text: str, path: str) -> str:
    return f'  %{result} = stablehlo.{text} : {T} loc("jit(f)/{path}/{text.split()[0]}")'


def chain(blocks: int) -> str:
    """Return `x = tanh(sin(x) * w)` in each block, with its gradient, as JAX lowers it."""
    lines = [f"  %one = stablehlo.constant dense<1.0> : {T}"]
    for block in range(blocks):
        forward, before = f"jvp(block{block})", f"y{block - 1}" if block else "x"
        lines.append(line(f"s{block}", f"sine %{before}", forward))
        lines.append(line(f"c{block}", f"cosine %{before}", forward))
        lines.append(line(f"m{block}", f"multiply %s{block}, %w", forward))
        lines.append(line(f"y{block}", f"tanh %m{block}", forward))
        lines.append(line(f"d{block}", f"subtract %one, %y{block}", forward))
    last = f"y{blocks - 1}"
    for block in reversed(range(blocks)):
        backward, cotangent = f"transpose(jvp(block{block}))", f"g{block + 1}" if block + 1 < blocks else last
        lines.append(line(f"t{block}", f"multiply %{cotangent}, %d{block}", backward))
        lines.append(line(f"u{block}", f"multiply %t{block}, %w", backward))
        lines.append(line(f"g{block}", f"multiply %u{block}, %c{block}", backward))
    head = f"func.func @main(%x: {T}, %w: {T}) -> {T} {{"
    return "\n".join([head, *lines, f"  return %g0 : {T}", "}"])


def peak_of(module: ModuleOp) -> int:
    """Return the peak of temporaries in program order, in bytes."""
    return peak_bytes(numbered_steps(module, bare=True)[0][1].graph)


@pytest.mark.slow("1000")
@pytest.mark.parametrize("blocks", [170, 1000])
def test_deep_chain_of_elementwise_blocks_is_recomputed(blocks: int) -> None:
    text = chain(blocks)
    module = parse_module(text)
    before = peak_of(module)
    assert rewrite_in_place(module).copies >= blocks
    assert peak_of(module) < 0.15 * before
    # Of the plain step it is asked meanwhile.
    assert xla_timeline(functions_of(module)[0]).peak_bytes < 0.15 * before
    assert prove(parse_module(text), module)
