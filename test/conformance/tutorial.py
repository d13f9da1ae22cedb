"""Net of MindSpore's tutorial in MindSpore's own operations: ten blocks of attention, as in its compiled graph.

Softmax and dropout are single operations with gradients of their own, which `ms` declares. The mask of a dropout is
determined by a seed that is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.parser import parse_module
from recompute.proof import register_pure
from recompute.rules import pure, random, register

X, H, K, S = (f"tensor<8x{shape}xf32>" for shape in ("128x16x32", "16x128x32", "16x32x128", "16x128x128"))
Y, Y1, KEY = "tensor<8x128x128xf32>", "tensor<8x1x128x128xf32>", "tensor<2xui64>"
NAMES = ("ms.add", "ms.softmax", "ms.softmax_grad", "ms.dropout_grad")


def declare() -> None:
    """Register the facts about the operations of `ms`; call it inside `registrations_undone`."""
    for name in NAMES:
        register(name, pure())
        register_pure(name)
    register("ms.dropout", random(state=1))
    register_pure("ms.dropout")


def tutorial(blocks: int = 10) -> ModuleOp:
    """Return the gradient of the net's input without the net's result, as MindSpore's GradOperation does."""
    lines = [line for block in range(blocks) for line in _forward(block)]
    lines += [line for block in reversed(range(blocks)) for line in _backward(block, blocks)]
    arguments = ", ".join([f"%x0: {X}, %ct: {X}", *(f"%y{n}: {Y}, %key{n}: {KEY}" for n in range(blocks))])
    constants = [
        f'  %scale = stablehlo.constant dense<2.37891> : {H} loc("jit(f)")',
        f'  %turned = stablehlo.constant dense<2.37891> : {K} loc("jit(f)")',
        f'  %one = stablehlo.constant dense<1.0> : {Y1} loc("jit(f)")',
        f'  %small = stablehlo.constant dense<-0.0001> : {Y1} loc("jit(f)")',
    ]
    text = [f"func.func @f({arguments}) -> {X} {{", *constants, *lines, f"  func.return %g0 : {X}", "}"]
    return parse_module("\n".join(text), "tutorial.mlir")


def _forward(n: int) -> Iterator[str]:
    def line(text: str, types: str, name: str) -> str:
        return f'  {text} : {types} loc("jit(f)/jvp(block{n})/{name}")'

    def transposed(result: str, order: str, to: str) -> str:
        return line(f"%{result}{n} = stablehlo.transpose %x{n}, dims = [{order}]", f"({X}) -> {to}", result)

    yield transposed("t", "0, 2, 1, 3", H)
    yield line(f"%query{n} = stablehlo.divide %t{n}, %scale", H, "real_div1")
    yield transposed("u", "0, 2, 3, 1", K)
    yield line(f"%keys{n} = stablehlo.divide %u{n}, %turned", K, "real_div2")
    product = f"%scores{n} = stablehlo.dot_general %query{n}, %keys{n}"
    yield line(f"{product}, {_over('3', '2')}", f"({H}, {K}) -> {S}", "batch_matmul1")
    yield line(f"%e{n} = stablehlo.reshape %y{n}", f"({Y}) -> {Y1}", "expand_dims")
    yield line(f"%s{n} = stablehlo.subtract %one, %e{n}", Y1, "sub")
    yield line(f"%m{n} = stablehlo.multiply %s{n}, %small", Y1, "mul")
    yield line(f'%a{n} = "ms.add"(%m{n}, %scores{n})', f"({Y1}, {S}) -> {S}", "add")
    yield line(f'%soft{n} = "ms.softmax"(%a{n})', f"({S}) -> {S}", "softmax")
    yield line(f'%drop{n}, %mask{n} = "ms.dropout"(%soft{n}, %key{n})', f"({S}, {KEY}) -> ({S}, {S})", "dropout")
    yield transposed("value", "0, 2, 1, 3", H)
    yield line(
        f"%b{n} = stablehlo.dot_general %drop{n}, %value{n}, {_over('3', '2')}", f"({S}, {H}) -> {H}", "batch_matmul2"
    )
    yield line(f"%x{n + 1} = stablehlo.transpose %b{n}, dims = [0, 2, 1, 3]", f"({H}) -> {X}", "transpose4")


def _over(left: str, right: str) -> str:
    return f"batching_dims = [0, 1] x [0, 1], contracting_dims = [{left}] x [{right}]"


def _backward(n: int, blocks: int) -> Iterator[str]:
    def line(text: str, types: str, name: str) -> str:
        return f'  {text} : {types} loc("jit(f)/transpose(jvp(block{n}))/{name}")'

    def product(result: str, left: str, right: str, sides: tuple[str, str], types: str) -> str:
        return line(f"%{result}{n} = stablehlo.dot_general {left}{n}, {right}{n}, {_over(*sides)}", types, result)

    gradient = "%ct" if n == blocks - 1 else f"%g{n + 1}"
    yield line(f"%dt{n} = stablehlo.transpose {gradient}, dims = [0, 2, 1, 3]", f"({X}) -> {H}", "transpose")
    yield product("dd", "%dt", "%value", ("3", "3"), f"({H}, {H}) -> {S}")
    yield product("dv", "%drop", "%dt", ("2", "2"), f"({S}, {H}) -> {H}")
    yield line(f'%dm{n} = "ms.dropout_grad"(%dd{n}, %mask{n})', f"({S}, {S}) -> {S}", "dropout_grad")
    yield line(f'%ds{n} = "ms.softmax_grad"(%soft{n}, %dm{n})', f"({S}, {S}) -> {S}", "softmax_grad")
    yield product("dk", "%query", "%ds", ("2", "2"), f"({H}, {S}) -> {K}")
    yield product("dq", "%ds", "%keys", ("3", "3"), f"({S}, {K}) -> {H}")
    yield line(f"%rk{n} = stablehlo.divide %dk{n}, %turned", K, "div")
    yield line(f"%rq{n} = stablehlo.divide %dq{n}, %scale", H, "div")
    yield line(f"%tk{n} = stablehlo.transpose %rk{n}, dims = [0, 3, 1, 2]", f"({K}) -> {X}", "transpose")
    yield line(f"%tq{n} = stablehlo.transpose %rq{n}, dims = [0, 2, 1, 3]", f"({H}) -> {X}", "transpose")
    yield line(f"%tv{n} = stablehlo.transpose %dv{n}, dims = [0, 2, 1, 3]", f"({H}) -> {X}", "transpose")
    yield line(f"%sum{n} = stablehlo.add %tk{n}, %tq{n}", X, "add")
    yield line(f"%g{n} = stablehlo.add %sum{n}, %tv{n}", X, "add")
