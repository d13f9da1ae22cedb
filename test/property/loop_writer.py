"""The small language of `rewritten_loops.py`, and its text in StableHLO.

An expression is a tuple, its name first. Of numbers: `("i",)` the counter, `("c", 3)`, and `add sub mul min max rem
wrapped narrow`. Of vectors of three: `("h",)` and `("k",)` the carries, `("x",)` an argument, `("number", n)` a number as floats,
`("row", n)` a row of an argument, `("slot", ("c", k), n)` what is in stack k at n, and the operations of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Expression = tuple[Any, ...]
INTEGERS = ("i8", "i32", "i64", "ui8", "ui32")
WIDTHS = {"i8": 8, "i32": 32, "i64": 64, "ui8": 8, "ui32": 32}
NUMBERS = {"add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum", "rem": "remainder"}
V, MOST = "tensor<3xf32>", 40
Body = Callable[[str, list[str]], list[str]]


@dataclass(frozen=True)
class Write:
    """`value` goes into the stack at `place`, in every iteration."""

    stack: int
    place: Expression
    value: Expression


@dataclass(frozen=True)
class Loop:
    """`kind`: the type of its counter. `carry`, `other`: what becomes of its two carries, written in this order or
    `turned`. `pieces`, with a `size`: how it is put together."""

    kind: str
    start: int
    end: int
    step: int
    carry: Expression
    other: Expression
    writes: tuple[Write, ...]
    turned: bool = False
    pieces: str = "whole"
    size: int = 1

    def ends(self) -> bool:
        return self.trips() <= MOST

    def trips(self) -> int:
        """Of the loop as it runs, with a counter that wraps; at most `MOST + 1`."""
        i, end = wrapped(self.start, self.kind), wrapped(self.end, self.kind)
        for trip in range(MOST + 1):
            if not (i < end if self.step > 0 else i > end):
                return trip
            i = wrapped(i + self.step, self.kind)
        return MOST + 1


@dataclass(frozen=True)
class Program:
    """Rows of the second argument, heights of the stacks, what these begin with, and whether they are results."""

    rows: int
    heights: tuple[int, ...]
    begins: float
    loops: tuple[Loop, Loop]
    returned: bool


def wrapped(number: int, kind: str) -> int:
    bits = WIDTHS[kind]
    number %= 1 << bits
    return number - (1 << bits) if kind.startswith("i") and number >= 1 << (bits - 1) else number


def replaced(expression: Expression, by: Mapping[Expression, Expression]) -> Expression:
    if expression in by:
        return by[expression]
    return tuple(replaced(part, by) if isinstance(part, tuple) else part for part in expression)


def _turned(state: list[str]) -> list[str]:
    return [state[1], state[0], *state[2:]]


@dataclass
class Writer:
    """Lines of text; every value has a name of its own."""

    program: Program
    lines: list[str] = field(default_factory=list[str])
    names: count[int] = field(default_factory=count)

    def line(self, text: str, type_: str) -> str:
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = stablehlo.{text} : {type_}")
        return name

    def constant(self, number: float, kind: str) -> str:
        text = f"{number:.1f}" if kind == "f32" else str(wrapped(int(number), kind))
        return self.line(f"constant dense<{text}>", f"tensor<{kind}>")

    def number(self, expression: Expression, i: str, kind: str) -> str:
        """The number, of the counter's type."""
        t = f"tensor<{kind}>"
        match expression:
            case ("i",):
                return i
            case ("c", int(value)):
                return self.constant(value, kind)
            case ("narrow", inner):
                small = self.line(f"convert {self.number(inner, i, kind)}", f"({t}) -> tensor<i8>")
                return self.line(f"convert {small}", f"(tensor<i8>) -> {t}")
            case ("wrapped", inner, height):
                at, high = self.number(inner, i, kind), self.number(height, i, kind)
                zero = self.constant(0, kind)
                less = self.compared("LT", at, zero, kind)
                more = self.line(f"add {at}, {high}", t)
                return self.line(f"select {less}, {more}, {at}", f"tensor<i1>, {t}")
            case (name, left, right):
                operands = self.number(left, i, kind), self.number(right, i, kind)
                return self.line(f"{NUMBERS[name]} {', '.join(operands)}", t)
            case _:
                raise AssertionError(expression)

    def compared(self, how: str, left: str, right: str, kind: str) -> str:
        sign = "UNSIGNED" if kind.startswith("u") else "SIGNED"
        return self.line(f"compare {how}, {left}, {right}, {sign}", f"(tensor<{kind}>, tensor<{kind}>) -> tensor<i1>")

    def vector(self, expression: Expression, scope: Mapping[str, Any], kind: str) -> str:
        i = scope["i"]
        match expression:
            case ("h",) | ("k",) | ("x",):
                return scope[expression[0]]
            case ("number", inner):
                float_ = self.line(f"convert {self.number(inner, i, kind)}", f"(tensor<{kind}>) -> tensor<f32>")
                return self.line(f"broadcast_in_dim {float_}, dims = []", f"(tensor<f32>) -> {V}")
            case ("row", inner):
                return self.slot("%w", self.program.rows, self.number(inner, i, kind), kind)
            case ("slot", ("c", int(k)), inner):
                return self.slot(scope["stacks"][k], self.program.heights[k], self.number(inner, i, kind), kind)
            case (name, *operands):
                return self.line(f"{name} {', '.join(self.vector(one, scope, kind) for one in operands)}", V)
            case _:
                raise AssertionError(expression)

    def slot(self, stack: str, height: int, at: str, kind: str) -> str:
        types = f"(tensor<{height}x3xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<1x3xf32>"
        one = self.line(f"dynamic_slice {stack}, {at}, {self.constant(0, kind)}, sizes = [1, 3]", types)
        return self.line(f"reshape {one}", f"(tensor<1x3xf32>) -> {V}")

    def iteration(self, loop: Loop, i: str, state: list[str], captured: list[str]) -> list[str]:
        """The carries and the stacks after it."""
        scope = {"i": i, "h": state[0], "k": state[1], "x": "%x", "stacks": state[2:] or captured}
        after = [self.vector(one, scope, loop.kind) for one in (loop.carry, loop.other)]
        whole = list(state[2:])
        for write in loop.writes:
            high, n = f"tensor<{self.program.heights[write.stack]}x3xf32>", f"tensor<{loop.kind}>"
            flat = self.vector(write.value, scope, loop.kind)
            one = self.line(f"broadcast_in_dim {flat}, dims = [1]", f"({V}) -> tensor<1x3xf32>")
            at, zero = self.number(write.place, i, loop.kind), self.constant(0, loop.kind)
            types = f"({high}, tensor<1x3xf32>, {n}, {n}) -> {high}"
            update = f"dynamic_update_slice {whole[write.stack]}, {one}, {at}, {zero}"
            whole[write.stack] = self.line(update, types)
        return after + whole

    def counted(
        self, kind: str, bounds: tuple[int, int, int], state: list[str], body: Body, turned: bool = False
    ) -> list[str]:
        """A loop; `body(i, state)` writes an iteration and gives back the state after it."""
        if turned:
            found = self.counted(kind, bounds, _turned(state), lambda i, inner: _turned(body(i, _turned(inner))))
            return _turned(found)
        start, end, step = bounds
        highs = [f"tensor<{height}x3xf32>" for height in self.program.heights]
        types = ", ".join([f"tensor<{kind}>", V, V, *highs][: 1 + len(state)])
        begin, name = self.constant(start, kind), f"%v{next(self.names)}"
        inner = [f"%v{next(self.names)}" for _ in range(len(state) + 1)]
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(inner, [begin, *state], strict=True))
        self.lines.append(f"{name}:{len(inner)} = stablehlo.while({pairs}) : {types} cond {{")
        going = self.compared("LT" if step > 0 else "GT", inner[0], self.constant(end, kind), kind)
        self.lines.append(f"stablehlo.return {going} : tensor<i1> }} do {{")
        after = body(inner[0], inner[1:])
        further = self.line(f"add {inner[0]}, {self.constant(step, kind)}", f"tensor<{kind}>")
        self.lines.append(f"stablehlo.return {', '.join([further, *after])} : {types} }}")
        return [f"{name}#{place}" for place in range(1, len(inner))]

    def loop(self, loop: Loop, state: list[str], captured: list[str]) -> list[str]:
        kind, size = loop.kind, loop.size

        def run(start: int, end: int, state: list[str]) -> list[str]:
            bounds = start, end, loop.step
            return self.counted(kind, bounds, state, lambda i, s: self.iteration(loop, i, s, captured), loop.turned)

        middle = loop.start + loop.step * size
        if loop.pieces == "split":
            return run(middle, loop.end, run(loop.start, middle, state))
        if loop.pieces == "peeled":
            first = self.iteration(loop, self.constant(loop.start, kind), state, captured)
            return run(loop.start + loop.step, loop.end, first)
        if loop.pieces == "whole":
            return run(loop.start, loop.end, state)
        return self.in_other_counts(loop, state, captured)

    def in_other_counts(self, loop: Loop, state: list[str], captured: list[str]) -> list[str]:
        kind, t = loop.kind, f"tensor<{loop.kind}>"

        def place(number: str) -> str:
            by = self.line(f"multiply {number}, {self.constant(loop.step, kind)}", t)
            return self.line(f"add {by}, {self.constant(loop.start, kind)}", t)

        def one(i: str, inner: list[str]) -> list[str]:
            return self.iteration(loop, place(i), inner, captured)

        if loop.pieces == "counted":
            return self.counted(kind, (0, loop.trips(), 1), state, one, loop.turned)
        size = 2 if loop.pieces == "parity" else loop.size

        def chunk(q: str, outer: list[str]) -> list[str]:
            base = self.line(f"multiply {q}, {self.constant(size, kind)}", t)

            def within(r: str, inner: list[str]) -> list[str]:
                return one(self.line(f"add {base}, {r}", t), inner)

            if loop.pieces == "parity":
                for r in range(size):
                    outer = within(self.constant(r, kind), outer)
                return outer
            return self.counted(kind, (0, size, 1), outer, within, loop.turned)

        return self.counted(kind, (0, -(-loop.trips() // size), 1), state, chunk)


def written(program: Program) -> str:
    """The text of a module with one function, of a vector, rows, and what the second loop begins with."""
    writer = Writer(program)
    zero = writer.constant(program.begins, "f32")
    highs = [f"tensor<{height}x3xf32>" for height in program.heights]
    stacks = [writer.line(f"broadcast_in_dim {zero}, dims = []", f"(tensor<f32>) -> {high}") for high in highs]
    first, other, *stacks = writer.loop(program.loops[0], ["%x", "%ct", *stacks], [])
    last, *_ = writer.loop(program.loops[1], ["%ct", other], stacks)
    returned, types = [first, last], [V, V]
    if program.returned:
        returned, types = returned + stacks, types + highs
    lines = "\n".join([*writer.lines, f"func.return {', '.join(returned)} : {', '.join(types)}"])
    arguments = f"%x: {V}, %w: tensor<{program.rows}x3xf32>, %ct: {V}"
    return f"func.func public @main({arguments}) -> ({', '.join(types)}) {{\n{lines}\n}}\n"
