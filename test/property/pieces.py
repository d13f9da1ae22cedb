"""Pieces of which blocks are built; each takes the block's value and returns one of the same type.

Values stay moderate: growing ones are squashed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from . import control
from .forward import KEY, Forward, make_function, make_plain_function
from .writer import CONSTANT_LOCATION, Dot, Parameters, Pen, Type, Value, head

Piece = Callable[[Forward, Value], Value]

ACTIVATIONS = ("sine", "cosine", "tanh", "logistic", "abs", "negate")
IN_FUNCTIONS = ("sine", "cosine", "tanh", "logistic", "multiply", "add", "maximum")


def activation(f: Forward, h: Value) -> Value:
    return f.apply(f.random.choice(ACTIVATIONS), h)


def chain(f: Forward, h: Value) -> Value:
    for _ in range(f.random.randint(2, 5)):
        h = activation(f, h)
    return h


def exponential(f: Forward, h: Value) -> Value:
    return f.apply("exponential", f.apply("tanh", h))


def logarithm(f: Forward, h: Value) -> Value:
    positive = f.apply("add", exponential(f, h), f.pen.full("1.0", h.type))
    return f.apply("log", positive)


def ratio(f: Forward, h: Value) -> Value:
    below = f.apply("add", f.apply("multiply", h, h), f.pen.full("1.0", h.type))
    return f.apply("divide", h, below)


def scaled(f: Forward, h: Value) -> Value:
    return f.scale(h, f.random.choice((0.5, -0.75, 1.25)))


def join(f: Forward, h: Value) -> Value:
    """Combine the value with an earlier one, within a block or across blocks."""
    other = f.random.choice(f.known or [h])
    kind = f.random.choice(("add", "subtract", "multiply", "maximum", "minimum"))
    if kind == "multiply":
        other = f.apply("tanh", other)
    return f.apply(kind, h, other) if f.random.random() < 0.7 else f.apply(kind, other, h)


def branches(f: Forward, h: Value) -> Value:
    """Combine two chains from one value."""
    left, right = chain(f, h), chain(f, h)
    return f.apply(f.random.choice(("add", "multiply")), left, f.apply("tanh", right))


def residual(f: Forward, h: Value) -> Value:
    inside = chain(f, h) if f.random.random() < 0.5 else mlp(f, h)
    return f.apply("add", h, inside)


def mlp(f: Forward, h: Value) -> Value:
    width = h.type.shape[-1]
    hidden = width * f.random.choice((1, 2))
    up = f.matmul(h, f.weight(f"up{f.pen.place.line}", width, hidden))
    if f.random.random() < 0.5:
        up = f.apply("add", up, f.broadcast(f.weight(f"bias{f.pen.place.line}", hidden), up.type, [1]))
    middle = f.apply(f.random.choice(("tanh", "logistic", "sine")), up)
    return f.matmul(middle, f.weight(f"down{f.pen.place.line}", hidden, width))


def norm(f: Forward, h: Value) -> Value:
    rows, width = h.type.shape
    mean = f.broadcast(f.scale(f.sum(h, [1]), 1 / width), h.type, [0])
    centred = f.apply("subtract", h, mean)
    variance = f.scale(f.sum(f.apply("multiply", centred, centred), [1]), 1 / width)
    stable = f.apply("add", variance, f.pen.full("0.01", Type((rows,))))
    return f.apply("multiply", centred, f.broadcast(f.apply("rsqrt", stable), h.type, [0]))


def views(f: Forward, h: Value) -> Value:
    """Apply a reshape and a transpose with operations in between, and undo them."""
    rows, width = h.type.shape
    split = f.apply("reshape", h, type=Type((rows, 2, width // 2)))
    order = f.random.choice(((1, 0, 2), (2, 1, 0), (1, 2, 0)))
    turned = f.transpose(split, order)
    worked = activation(f, turned)
    back = f.transpose(worked, [order.index(at) for at in range(3)])
    return f.apply("reshape", back, type=h.type)


def gate(f: Forward, h: Value) -> Value:
    """Gate one half of each row by the other half."""
    rows, width = h.type.shape
    halves = [f.slice(h, (0, start), (rows, width // 2)) for start in (0, width // 2)]
    gated = f.apply("multiply", halves[0], f.apply("logistic", halves[1]))
    return f.apply("concatenate", gated, halves[f.random.randint(0, 1)], type=h.type, parameters=Parameters(dim=1))


def attention(f: Forward, h: Value) -> Value:
    """Apply attention with two heads: batched products, and a softmax whose maximum has no gradient."""
    rows, width = h.type.shape
    query, key, value = (_head(f, h, name) for name in ("query", "key", "value"))
    scores = f.scale(f.dot(query, key, Dot(((2,), (2,)), ((0,), (0,)))), 0.5)
    highest = f.here().sum(scores, [2], "maximum", "0xFF800000")
    shifted = f.apply("subtract", scores, f.pen.broadcast(highest, scores.type, [0, 1]))
    weights = f.apply("exponential", shifted)
    total = f.broadcast(f.sum(weights, [2]), scores.type, [0, 1])
    mixed = f.dot(f.apply("divide", weights, total), value, Dot(((2,), (1,)), ((0,), (0,))))
    return f.apply("reshape", f.transpose(mixed, [1, 0, 2]), type=Type((rows, width)))


def _head(f: Forward, h: Value, name: str) -> Value:
    rows, width = h.type.shape
    product = f.matmul(h, f.weight(f"{name}{f.pen.place.line}", width, width))
    return f.transpose(f.apply("reshape", product, type=Type((rows, 2, width // 2))), [1, 0, 2])


def mask(f: Forward, h: Value) -> Value:
    """Select the elements for which a comparison holds."""
    pen = f.here()
    where = pen.compare(f.random.choice(("GT", "LT")), h, pen.full("0.1", h.type))
    other = f.scale(h, 0.25) if f.random.random() < 0.5 else f.pen.full("0.0", h.type)
    return f.apply("select", where, h, other)


def dropout(f: Forward, h: Value) -> Value:
    draw = f.random.choice((_unrolled_bits, _looped_bits, _generated_bits))
    bits = draw(f, f.here(), _counters(f, f.pen, h.type), f.random.randint(0, 99))
    where = f.pen.compare("LT", bits, f.pen.full("3435973836", bits.type))
    return f.apply("select", where, f.scale(h, 1.25), f.pen.full("0.0", h.type))


def _counters(f: Forward, pen: Pen, type_: Type) -> Value:
    flat = pen.op("iota", type=Type((type_.shape[0] * type_.shape[1],), "ui32"), parameters=Parameters(dim=0))
    return pen.op("reshape", flat, type=Type(type_.shape, "ui32"))


def _word(f: Forward, pen: Pen, index: int) -> Value:
    f.reads_key = True
    part = pen.op("slice", KEY, type=Type((1,), "ui32"), parameters=Parameters(starts=(index,)))
    return pen.op("reshape", part, type=Type((), "ui32"))


def _round(pen: Pen, bits: Value, word: Value, turn: int) -> Value:
    """Add, rotate and xor, as threefry does."""
    left = pen.op("shift_left", bits, pen.full(turn, bits.type))
    right = pen.op("shift_right_logical", bits, pen.full(32 - turn, bits.type))
    mixed = pen.op("add", bits, pen.broadcast(word, bits.type, []))
    return pen.op("xor", pen.op("or", left, right), mixed)


def _unrolled_bits(f: Forward, pen: Pen, counters: Value, site: int) -> Value:
    words = _word(f, pen, 0), pen.op("add", _word(f, pen, 1), pen.scalar(site, "ui32"))
    return _round(pen, _round(pen, counters, words[0], 13), words[1], 17)


def _looped_bits(f: Forward, pen: Pen, counters: Value, site: int) -> Value:
    """Write the rounds in a loop that carries the bits and the key; its bound is defined inside or captured."""
    word = pen.op("add", _word(f, pen, 0), pen.scalar(site, "ui32"))
    carried = {"i": pen.scalar(0, "i32"), "bits": counters, "word": word}
    bound = pen.scalar(3, "i32") if f.random.random() < 0.5 else None

    def body(inner: Pen, names: Mapping[str, Value]) -> Sequence[Value]:
        counted = inner.op("add", names["i"], inner.scalar(1, "i32"))
        mixed = _round(inner, names["bits"], names["word"], 15)
        return counted, mixed, inner.op("add", names["word"], inner.scalar(0x9E3779B9, "ui32"))

    return _loop(pen, carried, bound, body)[1]


def _generated_bits(f: Forward, pen: Pen, counters: Value, site: int) -> Value:
    """Draw from a generator that passes its state on: each draw reads the state that the previous layer's draw left."""
    f.reads_key = True
    state = f.state or pen.op("convert", KEY, type=Type((2,), "ui64"))
    drawn = pen.writer.several([state.type, counters.type])
    place = pen.writer.locate("rng_bit_generator", pen.place, pen.direction)
    types = f"({state.type}) -> ({state.type}, {counters.type})"
    options = f"algorithm = {f.random.choice(('THREE_FRY', 'PHILOX'))}"
    pen.writer.write(f"{head(drawn)} = stablehlo.rng_bit_generator {state}, {options} : {types} {place}", pen.indent)
    # Now and then a layer starts from the key again.
    f.state = drawn[0] if f.random.random() < 0.8 else None
    return drawn[1]


def _loop(
    pen: Pen,
    carried: Mapping[str, Value],
    bound: Value | None,
    body: Callable[[Pen, Mapping[str, Value]], Sequence[Value]],
) -> tuple[Value, ...]:
    """Write a `while` that counts `i` to `bound`, or to a constant in its condition."""
    writer, inner = pen.writer, Pen(pen.writer, pen.place, pen.direction, pen.indent + 1)
    results = writer.several([value.type for value in carried.values()])
    prefix = results[0].name.partition("#")[0]
    names = {name: Value(f"{prefix}_{name}", value.type) for name, value in carried.items()}
    types = ", ".join(str(value.type) for value in carried.values())
    initial = ", ".join(f"{names[name]} = {value}" for name, value in carried.items())
    place = writer.locate("while", pen.place, pen.direction)
    writer.write(f"%{prefix}:{len(results)} = stablehlo.while({initial}) : {types}", pen.indent)
    writer.write("cond {", pen.indent)
    going = inner.compare("LT", names["i"], bound or inner.scalar(3, "i32"))
    writer.write(f"stablehlo.return {going} : {going.type} {CONSTANT_LOCATION}", inner.indent)
    writer.write("} do {", pen.indent)
    values = ", ".join(map(str, body(inner, names)))
    writer.write(f"stablehlo.return {values} : {types} {CONSTANT_LOCATION}", inner.indent)
    writer.write(f"}} {place}", pen.indent)
    return results


def estimate(f: Forward, h: Value) -> Value:
    """Scale by the result of a loop over the block's value, which has no gradient; its body may call a function."""
    pen = f.here()
    function = f"squash_{'x'.join(map(str, h.type.shape))}" if f.random.random() < 0.5 else ""
    if function:
        f.functions.setdefault(function, make_plain_function(function, h.type, ["sine", "tanh"]))
    carried = {"i": pen.scalar(0, "i32"), "x": h, "sum": pen.full("0.0", Type(h.type.shape))}

    def body(inner: Pen, names: Mapping[str, Value]) -> Sequence[Value]:
        counted = inner.op("add", names["i"], inner.scalar(1, "i32"))
        squashed = inner.call(function, [names["x"]], [h.type])[0] if function else inner.op("tanh", names["x"])
        return counted, squashed, inner.op("add", names["sum"], squashed)

    result = _loop(pen, carried, None, body)
    return f.apply("multiply", h, result[f.random.choice((1, 2))])


def bfloat(f: Forward, h: Value) -> Value:
    narrow = f.apply("convert", h, type=Type(h.type.shape, "bf16"))
    worked = f.apply(f.random.choice(("tanh", "sine")), narrow)
    if f.random.random() < 0.5:
        worked = f.apply("multiply", worked, narrow)
    return f.apply("convert", worked, type=h.type)


def called(f: Forward, h: Value) -> Value:
    """Apply a private function. There are few of them, so that calls share functions."""
    name = f"act{f.random.randint(0, 1)}_{'x'.join(map(str, h.type.shape))}"
    kinds = [f.random.choice(IN_FUNCTIONS) for _ in range(f.random.randint(2, 4))]
    if name not in f.functions:
        f.functions[name] = make_function(name, h.type, ["tanh", *kinds])
    return f.call(f.functions[name], h)


def positions(f: Forward, h: Value) -> Value:
    """Add values that are computed only from constants."""
    pen = f.here()
    counted = pen.op(
        "convert", pen.op("iota", type=Type(h.type.shape, "i32"), parameters=Parameters(dim=1)), type=h.type
    )
    return f.apply("add", h, pen.op("sine", counted))


def twins(f: Forward, h: Value) -> Value:
    """Apply the same operation to the same value twice, which a CSE would merge."""
    kind = f.random.choice(("sine", "tanh"))
    item = f.apply(kind, h)
    between = activation(f, item)
    return f.apply("multiply", between, f.apply(kind, h))


def dead(f: Forward, h: Value) -> Value:
    pen = f.here()
    for _ in range(f.random.randint(1, 2)):
        pen.op("tanh", pen.op("multiply", h, h))
    return h


def reported(f: Forward, h: Value) -> Value:
    """Return an inner value from the step as an additional result."""
    value = activation(f, h)
    f.returned.append(value)
    return f.apply("tanh", value)


def unknown(f: Forward, h: Value) -> Value:
    """Apply an operation without facts, which no pass may run twice or drop."""
    pen = f.here()
    result = pen.writer.fresh(h.type)
    place = pen.writer.locate("mystery", pen.place, pen.direction)
    pen.writer.write(f'{result} = "other.mystery"({h}) : ({h.type}) -> {h.type} {place}')
    return f.apply("multiply", h, f.apply("tanh", result))


WEIGHTS: dict[Piece, int] = {
    activation: 4,
    chain: 10,
    exponential: 4,
    logarithm: 3,
    ratio: 3,
    scaled: 2,
    join: 6,
    branches: 5,
    residual: 8,
    mlp: 8,
    norm: 4,
    views: 4,
    gate: 4,
    attention: 2,
    mask: 4,
    dropout: 5,
    estimate: 2,
    bfloat: 3,
    called: 5,
    positions: 2,
    twins: 3,
    dead: 2,
    reported: 1,
    **control.PIECES,
}


def some_piece(f: Forward, h: Value) -> Value:
    pieces, weights = list(WEIGHTS), list(WEIGHTS.values())
    return f.random.choices(pieces, weights)[0](f, h)
