"""Steps in structured form: forward, gradient, forward, gradient, as segments and gradient regions."""

from __future__ import annotations

T = "tensor<256xf32>"
FORWARD = ("sine", "exponential", "cosine", "tanh")


def steps(count: int, blocks: int) -> str:
    """Return `count` consecutive steps, each with `blocks` segments and a gradient, the next one on updated weights.

    Each gradient is added to that of the step before, as in gradient accumulation.
    """
    lines, weights, before = list[str](), "%x", "%x"
    for step in range(count):
        names = [[f"%s{step}b{block}v{i}" for i in range(4)] for block in range(blocks)]
        value = weights
        for block, values in enumerate(names):
            lines += _segment(f"layer{block}", value, values)
            value = values[-1]
        lines += [f"%loss{step} = stablehlo.negate {value} : {T}", *_gradient(step, names, before)]
        lines.append(f"%w{step} = stablehlo.subtract {weights}, %g{step} : {T}")
        weights, before = f"%w{step}", f"%g{step}"
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {T}) -> {T} {{\n  {body}\n  func.return {weights} : {T}\n}}\n"


def _segment(name: str, value: str, results: list[str]) -> list[str]:
    operands = [value, *results]
    body = [f"  {r} = stablehlo.{f} {o} : {T}" for r, f, o in zip(results, FORWARD, operands, strict=False)]
    types = ", ".join([T] * len(results))
    listed = ", ".join(results)
    return [
        f'{listed} = recompute.segment "{name}" {{',
        *body,
        f"  recompute.yield {listed} : {types}",
        f"}} : {types}",
    ]


def _gradient(step: int, names: list[list[str]], before: str) -> list[str]:
    body, value = [f"%c{step} = stablehlo.multiply %loss{step}, %loss{step} : {T}"], f"%c{step}"
    for index, read in enumerate(value for values in reversed(names) for value in reversed(values[:-1])):
        body.append(f"%c{step}n{index} = stablehlo.multiply {value}, {read} : {T}")
        value = f"%c{step}n{index}"
        if index == 0:
            body.append(f"%c{step}sum = stablehlo.add {value}, {before} : {T}")
            value = f"%c{step}sum"
    return [
        f"%g{step} = recompute.gradient {{",
        *(f"  {line}" for line in body),
        f"  recompute.yield {value} : {T}",
        f"}} : {T}",
    ]
