"""Generated pieces with control flow, computed indices, and reductions with more than one result.

Only `lookup` has a derivative. The results of the others scale the block's value, as a mask or a learning rate would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .forward import KEY, Forward
from .indexing import gather_rows
from .writer import CONSTANT_LOCATION, Parameters, Pen, Type, Value, head

I32 = Type((), "i32")


def conditional(f: Forward, h: Value) -> Value:
    """Scale by one of two or three branches, each of which computes with values that it captures."""
    pen = f.here()
    bits = _bits(f, pen, f.random.choice((1, 3)))
    kinds = f.random.sample(("sine", "cosine", "tanh", "logistic"), f.random.choice((2, 3)))
    if len(kinds) == 2:
        which = pen.compare("GT", bits, pen.scalar(0, "i32"))
        return f.apply("multiply", h, _branches(pen, "if", which, kinds, h))
    return f.apply("multiply", h, _branches(pen, "case", bits, kinds, h))


def _bits(f: Forward, pen: Pen, mask: int) -> Value:
    """Return a small number derived from the key."""
    f.reads_key = True
    part = pen.op("slice", KEY, type=Type((1,), "ui32"), parameters=Parameters(starts=(f.random.randint(0, 1),)))
    word = pen.op("reshape", part, type=Type((), "ui32"))
    return pen.op("convert", pen.op("and", word, pen.scalar(mask, "ui32")), type=I32)


def _branches(pen: Pen, kind: str, which: Value, kinds: Sequence[str], captured: Value) -> Value:
    writer, inner = pen.writer, Pen(pen.writer, pen.place, pen.direction, pen.indent + 1)
    result = writer.fresh(captured.type)
    writer.write(f'{result} = "stablehlo.{kind}"({which}) ({{', pen.indent)
    for index, first in enumerate(kinds):
        if index:
            writer.write("}, {", pen.indent)
        value = inner.op(first, inner.op("multiply", captured, captured))
        writer.write(f"stablehlo.return {value} : {value.type} {CONSTANT_LOCATION}", inner.indent)
    place = writer.locate(kind, pen.place, pen.direction)
    writer.write(f"}}) : ({which.type}) -> {result.type} {place}", pen.indent)
    return result


def indexed(f: Forward, h: Value) -> Value:
    """Use a row at a computed index: read it, change it and write it back, or gather it for every row."""
    pen = f.here()
    row, zero = _bits(f, pen, 7), pen.scalar(0, "i32")
    rows, width = h.type.shape
    if f.random.random() < 0.4:
        indices = pen.op("broadcast_in_dim", row, type=Type((rows, 1), "i32"))
        return f.apply("multiply", h, gather_rows(pen, h, indices))
    item = _line(pen, "dynamic_slice", [h, row, zero], Type((1, width)), f", sizes = [1, {width}]")
    worked = pen.op("sine", item)
    return f.apply("multiply", h, _line(pen, "dynamic_update_slice", [h, worked, zero, zero], h.type, ""))


def _line(pen: Pen, kind: str, operands: Sequence[Value], type_: Type, words: str) -> Value:
    result = pen.writer.fresh(type_)
    values, types = ", ".join(map(str, operands)), ", ".join(str(operand.type) for operand in operands)
    place = pen.writer.locate(kind, pen.place, pen.direction)
    pen.writer.write(f"{result} = stablehlo.{kind} {values}{words} : ({types}) -> {type_} {place}", pen.indent)
    return result


def lookup(f: Forward, h: Value) -> Value:
    """Add rows of a learned table, as an embedding does. A row may be read more than once."""
    rows, width = h.type.shape
    table = f.weight(f"table{f.pen.place.line}", 4, width)
    pen = f.here()
    counted = pen.op("iota", type=Type((rows, 1), "i32"), parameters=Parameters(dim=0))
    moved = pen.op("add", counted, pen.broadcast(_bits(f, pen, 3), counted.type, []))
    return f.apply("add", h, f.gather(table, pen.op("and", moved, pen.full(3, moved.type))))


def largest(f: Forward, h: Value) -> Value:
    """Use the largest element of each row and its index: a reduction with two results, of which one or both are
    read."""
    pen = f.here()
    rows, width = h.type.shape
    counted = pen.op("iota", type=Type((rows, width), "i32"), parameters=Parameters(dim=1))
    value, index = _reduce_both(pen, h, counted)
    place = pen.broadcast(pen.op("convert", index, type=Type((rows,))), h.type, [0])
    scaled = f.apply("multiply", h, pen.op("tanh", place))
    if f.random.random() < 0.5:
        scaled = f.apply("add", scaled, pen.broadcast(value, h.type, [0]))
    if f.random.random() < 0.2:
        f.returned.append(value)
    return scaled


def _reduce_both(pen: Pen, values: Value, places: Value) -> tuple[Value, Value]:
    writer, inner = pen.writer, Pen(pen.writer, pen.place, pen.direction, pen.indent + 1)
    starts = pen.scalar("0xFF800000"), pen.scalar(0, "i32")
    types = Type((values.type.shape[0],)), Type((places.type.shape[0],), "i32")
    results = writer.several(types)
    name = results[0].name.partition("#")[0]
    pairs = f"({values} init: {starts[0]}), ({places} init: {starts[1]})"
    read = ", ".join(str(item.type) for item in (values, places, *starts))
    writer.write(
        f"{head(results)} = stablehlo.reduce{pairs} across dimensions = [1] : ({read}) -> ({types[0]}, {types[1]})",
        pen.indent,
    )
    a, b = Value(f"{name}_a", Type(())), Value(f"{name}_b", Type(()))
    i, j = Value(f"{name}_i", I32), Value(f"{name}_j", I32)
    writer.write(f" reducer({a}: {a.type}, {b}: {b.type}) ({i}: {i.type}, {j}: {j.type})  {{", pen.indent)
    first = inner.compare("GE", a, b)
    value, place = inner.op("select", first, a, b), inner.op("select", first, i, j)
    writer.write(f"stablehlo.return {value}, {place} : {value.type}, {place.type} {CONSTANT_LOCATION}", inner.indent)
    writer.write(f"}} {writer.locate('reduce', pen.place, pen.direction)}", pen.indent)
    return results[0], results[1]


PIECES: dict[Callable[[Forward, Value], Value], int] = {conditional: 3, indexed: 4, lookup: 3, largest: 3}
