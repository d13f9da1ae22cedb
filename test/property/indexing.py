"""Gather and scatter in MLIR's generic form, as JAX prints them."""

from __future__ import annotations

from .writer import CONSTANT_LOCATION, Pen, Type, Value


def gather_rows(pen: Pen, table: Value, indices: Value) -> Value:
    """Gather row `indices[i, 0]` of the table for each i."""
    width = table.type.shape[1]
    result = pen.writer.fresh(Type((indices.type.shape[0], width), table.type.element))
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    properties = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: 1, {width}>"
    types = f"({table.type}, {indices.type}) -> {result.type}"
    place = pen.writer.locate("gather", pen.place, pen.direction)
    pen.writer.write(
        f'{result} = "stablehlo.gather"({table}, {indices}) <{{{properties}, indices_are_sorted = false}}> : '
        f"{types} {place}",
        pen.indent,
    )
    return result


def scatter_add_rows(pen: Pen, into: Value, indices: Value, rows: Value) -> Value:
    """Add row i of `rows` to row `indices[i, 0]` of `into`: the pullback of `gather_rows`."""
    writer, inner = pen.writer, Pen(pen.writer, pen.place, pen.direction, pen.indent + 1)
    result = writer.fresh(into.type)
    old, new = (Value(f"{result.name}_{side}", Type((), into.type.element)) for side in ("old", "new"))
    numbers = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
    properties = f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}, index_vector_dim = 1>"
    writer.write(
        f'{result} = "stablehlo.scatter"({into}, {indices}, {rows}) <{{indices_are_sorted = false, {properties}, '
        "unique_indices = false}> ({",
        pen.indent,
    )
    writer.write(f"^bb0({old}: {old.type}, {new}: {new.type}):", pen.indent)
    total = inner.op("add", old, new)
    writer.write(f"stablehlo.return {total} : {total.type} {CONSTANT_LOCATION}", inner.indent)
    types = ", ".join(str(item.type) for item in (into, indices, rows))
    place = writer.locate("scatter-add", pen.place, pen.direction)
    writer.write(f"}}) : ({types}) -> {result.type} {place}", pen.indent)
    return result
