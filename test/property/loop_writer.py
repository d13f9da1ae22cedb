"""Small language of `rewritten_loops.py`, and its translation to StableHLO, except for the composition of loops
(`loop_pieces.py`).

An expression is a tuple that begins with its name. Numbers: `("i",)` is the counter, `("c", 3)` a constant, and `add
sub mul min max rem wrapped narrow` are operations. Vectors of three: `("h",)` and `("k",)` are the carries, `("x",)` is
an argument, `("number", n)` a number as floats, `("row", n)` a row of an argument, `("slot", ("c", k), n)` the entry of
stack k at n; and there are the operations of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from operator import ge, gt, le, lt, ne
from typing import Any, cast

Expression = tuple[Any, ...]
INTEGERS = ("i8", "i32", "i64", "ui8", "ui32")
WIDTHS = {"i8": 8, "i32": 32, "i64": 64, "ui8": 8, "ui32": 32}
NUMBERS = {"add": "add", "sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum", "rem": "remainder"}
V, MOST = "tensor<3xf32>", 40
COMPARED = {"LT": lt, "LE": le, "GT": gt, "GE": ge, "NE": ne}
Body = Callable[[str, list[str]], list[str]]


@dataclass(frozen=True)
class Write:
    """A write of `value` into a stack at the index `place` in every iteration."""

    stack: int
    place: Expression
    value: Expression


@dataclass(frozen=True)
class Loop:
    """Loop of the language.

    Attributes:
        kind: Type of the counter.
        carry, other: New values of the two carries, in this order or `turned`.
        direction: Direction of the comparison; by default `LT` for a loop that counts up.
        pieces: How the loop is composed, with a `size`.
        slip: The error at the boundary between two pieces.
    """

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
    direction: str = ""
    slip: str = ""

    @property
    def compares(self) -> str:
        return self.direction or ("LT" if self.step > 0 else "GT")

    def ends(self) -> bool:
        return self.trips() <= MOST

    def trips(self) -> int:
        """Trip count of the loop with a counter that wraps; at most `MOST + 1`."""
        i, end = wrapped(self.start, self.kind), wrapped(self.end, self.kind)
        for trip in range(MOST + 1):
            if not COMPARED[self.compares](i, end):
                return trip
            i = wrapped(i + self.step, self.kind)
        return MOST + 1


@dataclass(frozen=True)
class Program:
    """Program of the language: rows of the second argument, heights and initial values of the stacks, and whether they
    are results."""

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
    return tuple(replaced(cast(Expression, part), by) if isinstance(part, tuple) else part for part in expression)


def turned(state: list[str]) -> list[str]:
    """Swap the carries."""
    return [state[1], state[0], *state[2:]]


@dataclass
class Writer:
    """Writer of lines, in which every value has a name of its own."""

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
        """Write a number with the counter's type."""
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

    def compared(self, direction: str, left: str, right: str, kind: str) -> str:
        sign = "UNSIGNED" if kind.startswith("u") else "SIGNED"
        return self.line(
            f"compare {direction}, {left}, {right}, {sign}", f"(tensor<{kind}>, tensor<{kind}>) -> tensor<i1>"
        )

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
                return self.line(f"{name} {', '.join(self.vector(operand, scope, kind) for operand in operands)}", V)
            case _:
                raise AssertionError(expression)

    def slot(self, stack: str, height: int, at: str, kind: str) -> str:
        types = f"(tensor<{height}x3xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<1x3xf32>"
        item = self.line(f"dynamic_slice {stack}, {at}, {self.constant(0, kind)}, sizes = [1, 3]", types)
        return self.line(f"reshape {item}", f"(tensor<1x3xf32>) -> {V}")

    def iteration(self, loop: Loop, i: str, state: list[str], captured: list[str]) -> list[str]:
        """Return the carries and the stacks after an iteration."""
        scope = {"i": i, "h": state[0], "k": state[1], "x": "%x", "stacks": state[2:] or captured}
        after = [self.vector(entry, scope, loop.kind) for entry in (loop.carry, loop.other)]
        whole = list(state[2:])
        for write in loop.writes:
            high, n = f"tensor<{self.program.heights[write.stack]}x3xf32>", f"tensor<{loop.kind}>"
            flat = self.vector(write.value, scope, loop.kind)
            item = self.line(f"broadcast_in_dim {flat}, dims = [1]", f"({V}) -> tensor<1x3xf32>")
            at, zero = self.number(write.place, i, loop.kind), self.constant(0, loop.kind)
            types = f"({high}, tensor<1x3xf32>, {n}, {n}) -> {high}"
            update = f"dynamic_update_slice {whole[write.stack]}, {item}, {at}, {zero}"
            whole[write.stack] = self.line(update, types)
        return after + whole

    def counted(
        self,
        kind: str,
        bounds: tuple[int, int, int],
        state: list[str],
        body: Body,
        is_turned: bool = False,
        direction: str = "LT",
    ) -> list[str]:
        """Write a counting loop. `body(i, state)` writes an iteration and returns the state after it."""
        if is_turned:
            result = self.counted(
                kind, bounds, turned(state), lambda i, s: turned(body(i, turned(s))), direction=direction
            )
            return turned(result)
        start, end, step = bounds
        highs = [f"tensor<{height}x3xf32>" for height in self.program.heights]
        types = ", ".join([f"tensor<{kind}>", V, V, *highs][: 1 + len(state)])
        begin, name = self.constant(start, kind), f"%v{next(self.names)}"
        inner = [f"%v{next(self.names)}" for _ in range(len(state) + 1)]
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(inner, [begin, *state], strict=True))
        self.lines.append(f"{name}:{len(inner)} = stablehlo.while({pairs}) : {types} cond {{")
        going = self.compared(direction, inner[0], self.constant(end, kind), kind)
        self.lines.append(f"stablehlo.return {going} : tensor<i1> }} do {{")
        after = body(inner[0], inner[1:])
        further = self.line(f"add {inner[0]}, {self.constant(step, kind)}", f"tensor<{kind}>")
        self.lines.append(f"stablehlo.return {', '.join([further, *after])} : {types} }}")
        return [f"{name}#{place}" for place in range(1, len(inner))]
