"""Builder of forward passes, which writes operations and records on a tape what the backward pass must
differentiate."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from .derivatives import RULES, Applied, backward
from .indexing import gather_rows
from .writer import NONE, Dot, Parameters, Pen, Place, Type, Value, Writer, inner_location

KEY = Value("key", Type((2,), "ui32"))


@dataclass
class Weights:
    """Differentiated arguments by name. Equal names are the same argument, which ties weights."""

    values: dict[str, Value] = field(default_factory=dict[str, Value])

    def get(self, name: str, type_: Type) -> Value:
        return self.values.setdefault(f"{name}_{'x'.join(map(str, type_.shape))}", Value(f"w{len(self.values)}", type_))


@dataclass(frozen=True)
class Function:
    """Private forward function and its backward function, as JAX splits a nested jit."""

    name: str
    results: tuple[Type, ...]
    reads_argument: bool
    text: str


@dataclass
class Forward:
    """Forward pass under construction. `random` belongs to the body being built, so that building it again repeats it.

    `early`: share of local derivatives that are computed in forward time, as in JAX, instead of with the gradient.
    `state`: state of a random generator after its last draw.
    """

    pen: Pen
    random: Random
    early: float
    weights: Weights = field(default_factory=Weights)
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    tape: list[Applied] = field(default_factory=list[Applied])
    known: list[Value] = field(default_factory=list[Value])
    returned: list[Value] = field(default_factory=list[Value])
    weight_prefix: str = ""
    reads_key: bool = False
    state: Value | None = None

    def here(self) -> Pen:
        """Return a pen at the next line of the source."""
        place = self.pen.place
        self.pen = self.pen.at(replace(place, line=place.line + 1))
        return self.pen

    @contextmanager
    def scoped(self, name: str) -> Generator[None]:
        outer = self.pen.place.scope
        self.pen = self.pen.at(replace(self.pen.place, scope=(*outer, name)))
        yield
        self.pen = self.pen.at(replace(self.pen.place, scope=outer))

    def apply(self, kind: str, *operands: Value, type: Type | None = None, parameters: Parameters = NONE) -> Value:
        """Write an operation that the backward pass differentiates."""
        pen = self.here()
        result = pen.op(kind, *operands, type=type, parameters=parameters)
        applied = Applied(kind, operands, result, parameters, pen.place, None)
        if self.random.random() < self.early:
            applied = replace(applied, residuals=RULES[kind].linear(pen, applied))
        self.tape.append(applied)
        return result

    def dot(self, value: Value, other: Value, numbers: Dot) -> Value:
        type_ = numbers.type_of(value.type, other.type)
        return self.apply("dot_general", value, other, type=type_, parameters=Parameters(numbers=numbers))

    def matmul(self, value: Value, other: Value) -> Value:
        return self.dot(value, other, Dot(((len(value.type.shape) - 1,), (0,))))

    def broadcast(self, value: Value, type_: Type, dims: Sequence[int]) -> Value:
        return self.apply("broadcast_in_dim", value, type=type_, parameters=Parameters(dims=tuple(dims)))

    def transpose(self, value: Value, dims: Sequence[int]) -> Value:
        type_ = Type(tuple(value.type.shape[dim] for dim in dims), value.type.element)
        return self.apply("transpose", value, type=type_, parameters=Parameters(dims=tuple(dims)))

    def slice(self, value: Value, starts: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        return self.apply("slice", value, type=Type(shape, value.type.element), parameters=Parameters(starts=starts))

    def sum(self, value: Value, dims: Sequence[int]) -> Value:
        shape = tuple(size for index, size in enumerate(value.type.shape) if index not in dims)
        start = self.pen.scalar("0.0", value.type.element)
        return self.apply(
            "reduce", value, start, type=Type(shape, value.type.element), parameters=Parameters(dims=tuple(dims))
        )

    def scale(self, value: Value, factor: float) -> Value:
        return self.apply("multiply", value, self.pen.full(repr(factor), value.type))

    def gather(self, table: Value, indices: Value) -> Value:
        pen = self.here()
        result = gather_rows(pen, table, indices)
        self.tape.append(Applied("gather", (table, indices), result, NONE, pen.place, None))
        return result

    def weight(self, name: str, *shape: int) -> Value:
        return self.weights.get(self.weight_prefix + name, Type(shape))

    def call(self, function: Function, operand: Value) -> Value:
        result, *residuals = self.here().call(function.name, [operand], function.results)
        held = (*residuals, *([operand] if function.reads_argument else []))
        parameters = Parameters(backward=f"{function.name}_bwd")
        self.tape.append(Applied("call", (operand,), result, parameters, self.pen.place, held))
        return result


def make_function(name: str, type_: Type, kinds: Sequence[str]) -> Function:
    """Return a private function that applies a sequence of operations, and its backward function.

    The forward function returns the residuals, which the caller passes to the backward function.
    """
    argument = Value("arg0", type_)
    inside = Forward(Pen(Writer(inner_location), Place(line=900), "forward"), Random(0), early=1.0)
    value = argument
    for kind in kinds:
        value = inside.apply(kind, value, *([argument] if kind in ("multiply", "add", "maximum") else []))
    held = dict.fromkeys(value for op in inside.tape for value in op.residuals or ())
    residuals = [item for item in held if item != argument]
    types = (value.type, *(residual.type for residual in residuals))
    forward_text = function_text(f"private @{name}", [argument], inside.pen.writer.lines, [value, *residuals])
    reads_argument = argument in held
    passed = [*residuals, *([argument] if reads_argument else [])]
    return Function(name, types, reads_argument, forward_text + _backward_text(name, inside, argument, value, passed))


def make_plain_function(name: str, type_: Type, kinds: Sequence[str]) -> Function:
    """Return a private function without a derivative."""
    argument = Value("arg0", type_)
    pen = Pen(Writer(inner_location), Place(line=950), "neither")
    value = argument
    for kind in kinds:
        value = pen.op(kind, value)
    return Function(name, (type_,), False, function_text(f"private @{name}", [argument], pen.writer.lines, [value]))


def _backward_text(name: str, inside: Forward, argument: Value, result: Value, passed: Sequence[Value]) -> str:
    inner = {value: Value(f"res{index}", value.type) for index, value in enumerate(passed)}
    tape = [replace(op, residuals=tuple(inner[item] for item in op.residuals or ())) for op in inside.tape]
    pen = Pen(Writer(inner_location), Place(line=900), "backward")
    ct = Value("ct", result.type)
    actual = backward(pen, tape, (result, ct), frozenset([argument])).arrived[argument]
    return function_text(f"private @{name}_bwd", [*inner.values(), ct], pen.writer.lines, [actual])


def function_text(name: str, arguments: Sequence[Value | str], lines: Sequence[str], returned: Sequence[Value]) -> str:
    """Return the text of a function. An argument is a value, or text with further attributes."""
    declared = ", ".join(
        argument if isinstance(argument, str) else f"{argument}: {argument.type}" for argument in arguments
    )
    types = ", ".join(str(value.type) for value in returned)
    values = ", ".join(map(str, returned))
    body = "".join(f"{line}\n" for line in lines)
    return f"  func.func {name}({declared}) -> ({types}) {{\n{body}    return {values} : {types}\n  }}\n"
