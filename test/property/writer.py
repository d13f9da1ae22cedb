"""Writer of StableHLO text as JAX prints it, one operation per line, with names, types, locations and syntax.

pen.op("tanh", x)      %v3 = stablehlo.tanh %v2 : tensor<16x8xf32> loc("jit(step)/jvp(block0)/tanh"("model.py":7:5))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Type:
    shape: tuple[int, ...]
    element: str = "f32"

    def __str__(self) -> str:
        return f"tensor<{'x'.join([*map(str, self.shape), self.element])}>"

    @property
    def is_float(self) -> bool:
        return self.element in ("f32", "bf16")


@dataclass(frozen=True)
class Value:
    name: str
    type: Type

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Place:
    """Place of an operation in the model: its scope and its line in the source."""

    scope: tuple[str, ...] = ()
    line: int = 1


# What wraps the outermost scope in a location.
WRAPPED = {"forward": "jvp({})", "backward": "transpose(jvp({}))", "neither": "{}"}

# JAX's names where they differ from StableHLO's.
_JAX_NAMES = {
    "sine": "sin",
    "cosine": "cos",
    "exponential": "exp",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
    "select": "select_n",
    "convert": "convert_element_type",
    "reduce": "reduce_sum",
    "negate": "neg",
}


def location(kind: str, place: Place, direction: str) -> str:
    """Return a location such as `jit(step)/transpose(jvp(model))/block0/mul`, with a line of the source."""
    name = _JAX_NAMES.get(kind, kind)
    outer, *inner = place.scope or ("",)
    wrapped = WRAPPED[direction].format(outer)
    path = "/".join(part for part in ("jit(step)", wrapped, *inner, name) if part)
    return f'loc("{path}"("model.py":{place.line}:5))'


CONSTANT_LOCATION = 'loc("jit(step)")'


def inner_location(kind: str, place: Place, direction: str) -> str:
    """Return a location in a private function, whose path starts with the operation, whatever the direction of the
    call."""
    return f'loc("{_JAX_NAMES.get(kind, kind)}"("model.py":{place.line}:5))'


@dataclass(frozen=True)
class Dot:
    """Dimension numbers of a `dot_general` whose result has batch, left free and right free dimensions."""

    contract: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def free(self, side: int, rank: int) -> tuple[int, ...]:
        return tuple(dim for dim in range(rank) if dim not in self.contract[side] + self.batch[side])

    def type_of(self, type_: Type, other: Type) -> Type:
        left = self.batch[0] + self.free(0, len(type_.shape))
        right = self.free(1, len(other.shape))
        return Type(tuple(type_.shape[dim] for dim in left) + tuple(other.shape[dim] for dim in right), type_.element)

    def __str__(self) -> str:
        batch, contract = (f"{list(left)} x {list(right)}" for left, right in (self.batch, self.contract))
        return (f"batching_dims = {batch}, " if self.batch[0] else "") + f"contracting_dims = {contract}"


NO_DOT = Dot(((), ()))


@dataclass(frozen=True)
class Parameters:
    """Parameters of an operation besides its operands, of which each kind uses some.

    Attributes:
        dims: Dimensions of a transpose, a broadcast or a reduction.
        starts: Start indices of a slice.
        dim: Dimension of an iota or a concatenation.
        backward: Backward function of a call.
    """

    dims: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    dim: int = 0
    direction: str = ""
    combine: str = "add"
    numbers: Dot = NO_DOT
    backward: str = ""


NONE = Parameters()


Format = Callable[[Sequence[Value], Type, Parameters], str]


def _operands(values: Sequence[Value]) -> str:
    return ", ".join(map(str, values))


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(value.type) for value in values)


def _function_type(values: Sequence[Value], type_: Type) -> str:
    return f"({_types(values)}) -> {type_}"


def _same_type(values: Sequence[Value], type_: Type, parameters: Parameters) -> str:
    return f"{_operands(values)} : {type_}"


def _with(words: Callable[[Parameters], str]) -> Format:
    """Return the format of operands, parameters and a function type."""

    def text(values: Sequence[Value], type_: Type, parameters: Parameters) -> str:
        return f"{_operands(values)}{words(parameters)} : {_function_type(values, type_)}"

    return text


def _compare(values: Sequence[Value], type_: Type, parameters: Parameters) -> str:
    order = {"f": "FLOAT", "b": "FLOAT", "i": "SIGNED", "u": "UNSIGNED"}[values[0].type.element[0]]
    return f"{parameters.direction}, {_operands(values)}, {order} : {_function_type(values, type_)}"


def _slice(values: Sequence[Value], type_: Type, parameters: Parameters) -> str:
    limits = zip(parameters.starts, type_.shape, strict=True)
    ranges = ", ".join(f"{start}:{start + size}" for start, size in limits)
    return f"{_operands(values)} [{ranges}] : {_function_type(values, type_)}"


def _reduce(values: Sequence[Value], type_: Type, parameters: Parameters) -> str:
    options = f"applies stablehlo.{parameters.combine} across dimensions = {list(parameters.dims)}"
    return f"({values[0]} init: {values[1]}) {options} : {_function_type(values, type_)}"


FORMATS: dict[str, Format] = {
    "compare": _compare,
    "select": lambda values, type_, _: f"{_operands(values)} : {values[0].type}, {type_}",
    "convert": _with(lambda _: ""),
    "reshape": _with(lambda _: ""),
    "transpose": _with(lambda parameters: f", dims = {list(parameters.dims)}"),
    "broadcast_in_dim": _with(lambda parameters: f", dims = {list(parameters.dims)}"),
    "slice": _slice,
    "concatenate": _with(lambda parameters: f", dim = {parameters.dim}"),
    "dot_general": _with(lambda parameters: f", {parameters.numbers}"),
    "reduce": _reduce,
    "iota": lambda _, type_, parameters: f"dim = {parameters.dim} : {type_}",
}


@dataclass
class Writer:
    """Lines of one function, and the numbering of its values."""

    locate: Callable[[str, Place, str], str] = location
    lines: list[str] = field(default_factory=list[str])
    values: int = 0

    def fresh(self, type_: Type) -> Value:
        self.values += 1
        return Value(f"v{self.values}", type_)

    def several(self, types: Sequence[Type]) -> tuple[Value, ...]:
        """Return the results of an operation; `head` writes their names."""
        if len(types) == 1:
            return (self.fresh(types[0]),)
        self.values += 1
        return tuple(Value(f"v{self.values}#{index}", type_) for index, type_ in enumerate(types))

    def write(self, line: str, indent: int = 2) -> None:
        self.lines.append("  " * indent + line)


def head(results: Sequence[Value]) -> str:
    name = results[0].name.partition("#")[0]
    return f"%{name}:{len(results)}" if len(results) > 1 else f"%{name}"


@dataclass(frozen=True)
class Pen:
    """Writes operations for one position in the model, in the forward or the backward direction."""

    writer: Writer
    place: Place
    direction: str
    indent: int = 2

    def at(self, place: Place) -> Pen:
        return replace(self, place=place)

    def op(self, kind: str, *operands: Value, type: Type | None = None, parameters: Parameters = NONE) -> Value:
        """Write an operation. Without a type, the result has the type of the last operand."""
        result = self.writer.fresh(type or operands[-1].type)
        text = FORMATS.get(kind, _same_type)(operands, result.type, parameters)
        gap = "" if kind == "reduce" else " "
        place = self.writer.locate(kind, self.place, self.direction)
        self.writer.write(f"{result} = stablehlo.{kind}{gap}{text} {place}", self.indent)
        return result

    def scalar(self, value: object, element: str = "f32") -> Value:
        """Write a scalar constant, whose location, as in JAX, names only the function."""
        result = self.writer.fresh(Type((), element))
        self.writer.write(
            f"{result} = stablehlo.constant dense<{value}> : {result.type} {CONSTANT_LOCATION}", self.indent
        )
        return result

    def full(self, value: object, type_: Type) -> Value:
        """Write a constant tensor as JAX does: a scalar and a broadcast."""
        return self.op("broadcast_in_dim", self.scalar(value, type_.element), type=type_)

    def sum(self, value: Value, dims: Sequence[int], combine: str = "add", init: object = "0.0") -> Value:
        shape = tuple(size for index, size in enumerate(value.type.shape) if index not in dims)
        start = self.scalar(init, value.type.element)
        type_ = Type(shape, value.type.element)
        return self.op("reduce", value, start, type=type_, parameters=Parameters(combine=combine, dims=tuple(dims)))

    def broadcast(self, value: Value, type_: Type, dims: Sequence[int]) -> Value:
        return self.op("broadcast_in_dim", value, type=type_, parameters=Parameters(dims=tuple(dims)))

    def transpose(self, value: Value, dims: Sequence[int]) -> Value:
        type_ = Type(tuple(value.type.shape[dim] for dim in dims), value.type.element)
        return self.op("transpose", value, type=type_, parameters=Parameters(dims=tuple(dims)))

    def compare(self, direction: str, value: Value, other: Value) -> Value:
        return self.op(
            "compare", value, other, type=Type(value.type.shape, "i1"), parameters=Parameters(direction=direction)
        )

    def dot(self, value: Value, other: Value, numbers: Dot) -> Value:
        type_ = numbers.type_of(value.type, other.type)
        return self.op("dot_general", value, other, type=type_, parameters=Parameters(numbers=numbers))

    def call(self, name: str, operands: Sequence[Value], types: Sequence[Type]) -> tuple[Value, ...]:
        results = self.writer.several(types)
        type_ = f"({_types(operands)}) -> ({', '.join(map(str, types))})"
        place = self.writer.locate(f"jit({name.removesuffix('_bwd')})", self.place, self.direction)
        self.writer.write(f"{head(results)} = call @{name}({_operands(operands)}) : {type_} {place}", self.indent)
        return results
