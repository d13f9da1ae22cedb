"""Programs of one operation each, as text: every elementwise function on every type, and operations that JAX never
lowers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recompute.rules.expansions import OF_CHLO

FLOATS = ("bf16", "f16", "f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
INTEGERS = ("i32", "ui32", "i64")
UNARY: Mapping[str, tuple[str, ...]] = {
    "cbrt ceil floor is_finite round_nearest_afz round_nearest_even": FLOATS,
    "cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh": FLOATS + COMPLEX,
    "abs negate sign": (*FLOATS, *COMPLEX, "i32"),
    "count_leading_zeros not popcnt": INTEGERS,
    "real imag": COMPLEX,
}
BINARY: Mapping[str, tuple[str, ...]] = {
    "add divide multiply subtract power": (*FLOATS, *COMPLEX, "i32"),
    "maximum minimum remainder": (*FLOATS, "i32"),
    "and or xor shift_left shift_right_arithmetic shift_right_logical": INTEGERS,
    "atan2": FLOATS + COMPLEX,
    "complex": ("f32", "f64"),
}
CHLO_BINARY = ("mulhi", "next_after", "polygamma", "zeta")
CHLO_COMPLEX = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cosh", "sinh", "square", "tan")
EXTENTS = "6x7x"


def program(arguments: str, operation: str, result: str) -> str:
    """Return a module whose `main` returns `%r`; `<4x8xf32>` after a space or a parenthesis abbreviates a tensor
    type."""
    body = f"func.func @main({arguments}) -> {result} {{\n  {operation}\n  return %r : {result}\n}}\n"
    return re.sub(r"(?<=[ (])<(?=[\dfibu])", "tensor<", body)


def elementwise() -> Iterator[tuple[str, str]]:
    for arity, table in ((1, UNARY), (2, BINARY)):
        for words, types in table.items():
            for word in words.split():
                yield from _on_each("stablehlo", word, types, arity)
    for word in OF_CHLO:
        types = INTEGERS if word == "mulhi" else FLOATS + (COMPLEX if word in CHLO_COMPLEX else ())
        yield from _on_each("chlo", word, types, 2 if word in CHLO_BINARY else 1)


def _on_each(dialect: str, word: str, types: tuple[str, ...], arity: int) -> Iterator[tuple[str, str]]:
    for element in types:
        given, value = f"<{EXTENTS}{element}>", f"<{EXTENTS}{_result(word, element)}>"
        names = ("%a", "%b")[:arity]
        arguments = ", ".join(f"{name}: {given}" for name in names)
        operation = f'%r = "{dialect}.{word}"({", ".join(names)}) : ({", ".join([given] * arity)}) -> {value}'
        yield f"{dialect}.{word} {element}", program(arguments, operation, value)


def _result(word: str, element: str) -> str:
    if word.startswith("is_"):
        return "i1"
    if word == "complex":
        return f"complex<{element}>"
    parts = word in ("real", "imag", "abs") and element in COMPLEX
    return element.removeprefix("complex<").removesuffix(">") if parts else element


_SUM = "({\n ^bb0(%x: <f32>, %y: <f32>):\n %s = stablehlo.add %x, %y : <f32>\n stablehlo.return %s : <f32>\n })"
_GROUP = "replica_groups = dense<[[0]]> : tensor<1x1xi64>"


def _collective(word: str, fields: str, body: str = "") -> str:
    operation = f'%r = "stablehlo.{word}"(%a) <{{{fields}{_GROUP}}}> {body} : (<4x8xf32>) -> <4x8xf32>'
    return program("%a: <4x8xf32>", operation, "<4x8xf32>")


def _window(given: str, padding: str, window: str) -> str:
    operation = (
        f'%r = "stablehlo.reduce_window"(%a, %z) <{{window_dimensions = array<i64: {window}>, '
        f"padding = dense<[{padding}]> : tensor<2x2xi64>}}> {_SUM} : ({given}, <f32>) -> {given}"
    )
    return program(f"%a: {given}, %z: <f32>", operation, given)


def _made_of(operand: str, operation: str, result: str, constants: str = "") -> str:
    """Return a program of one operation on `%a` and on constants named `%n`."""
    return program(f"%a: {operand}", f"{constants}%r = {operation}", result)


def _batch_norm(word: str, operands: str, types: str, results: str) -> str:
    image, row = "<6x7x5xf32>", "<5xf32>"
    operation = (
        f'"stablehlo.batch_norm_{word}"({operands}) <{{epsilon = 0.1 : f32, feature_index = 2 : i64}}> : ({types}) '
        f"-> {results}"
    )
    return program(f"%a: {image}, %s: {row}", f"%r{':3' if ',' in results else ''} = {operation}", image).replace(
        "return %r :", "return %r#0 :" if "," in results else "return %r :"
    )


def _solve(left: str, b: str) -> str:
    operation = (
        f'%r = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {left}, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : (<8x8xf32>, {b}) -> {b}"
    )
    return program(f"%a: <8x8xf32>, %b: {b}", operation, b)


_DIMENSIONS = "%n = stablehlo.constant dense<{}> : <{}xi64>\n "
_ROWS = "<6x7x5xf32>, <5xf32>, <5xf32>"
LEGACY: Mapping[str, str] = {
    "dot": program(
        "%a: <6x7xf32>, %b: <7x5xf32>", "%r = stablehlo.dot %a, %b : (<6x7xf32>, <7x5xf32>) -> <6x5xf32>", "<6x5xf32>"
    ),
    "dot of a vector": program(
        "%a: <7xf32>, %b: <7x5xf32>", "%r = stablehlo.dot %a, %b : (<7xf32>, <7x5xf32>) -> <5xf32>", "<5xf32>"
    ),
    "einsum": program(
        "%a: <2x6x7xf32>, %b: <2x7x5xf32>",
        '%r = stablehlo.einsum %a, %b, config = "bij,bjk->bik" : (<2x6x7xf32>, <2x7x5xf32>) -> <2x6x5xf32>',
        "<2x6x5xf32>",
    ),
    "broadcast": _made_of("<7xf32>", "stablehlo.broadcast %a, sizes = [6] : (<7xf32>) -> <6x7xf32>", "<6x7xf32>"),
    "torch_index_select": program(
        "%a: <6x7xf32>, %b: <3xi32>",
        '%r = "stablehlo.torch_index_select"(%a, %b) <{batch_dims = 0 : i64, dim = 1 : i64}> '
        ": (<6x7xf32>, <3xi32>) -> <6x3xf32>",
        "<6x3xf32>",
    ),
    "batch_norm_training": _batch_norm("training", "%a, %s, %s", _ROWS, "(<6x7x5xf32>, <5xf32>, <5xf32>)"),
    "batch_norm_inference": _batch_norm("inference", "%a, %s, %s, %s, %s", f"{_ROWS}, <5xf32>, <5xf32>", "<6x7x5xf32>"),
    "batch_norm_grad": _batch_norm(
        "grad", "%a, %s, %s, %s, %a", f"{_ROWS}, <5xf32>, <6x7x5xf32>", "(<6x7x5xf32>, <5xf32>, <5xf32>)"
    ),
    "triangular_solve from the left": _solve("true", "<8x3xf32>"),
    "triangular_solve from the right": _solve("false", "<3x8xf32>"),
    "map": _made_of(
        "<6x7xf32>",
        '"stablehlo.map"(%a) <{dimensions = array<i64: 0, 1>}> ({\n ^bb0(%x: <f32>):\n '
        "%y = stablehlo.sine %x : <f32>\n %z = stablehlo.multiply %x, %y : <f32>\n "
        "stablehlo.return %z : <f32> }) : (<6x7xf32>) -> <6x7xf32>",
        "<6x7xf32>",
    ),
    "tuple": program(
        "%a: <6x7xf32>",
        "%t = stablehlo.tuple %a, %a : tuple<tensor<6x7xf32>, tensor<6x7xf32>>\n "
        "%r = stablehlo.get_tuple_element %t[1] : (tuple<tensor<6x7xf32>, tensor<6x7xf32>>) -> <6x7xf32>",
        "<6x7xf32>",
    ),
    "dynamic_reshape": _made_of(
        "<6x7xf32>",
        "stablehlo.dynamic_reshape %a, %n : (<6x7xf32>, <1xi64>) -> <42xf32>",
        "<42xf32>",
        _DIMENSIONS.format("[42]", 1),
    ),
    "dynamic_broadcast_in_dim": _made_of(
        "<7xf32>",
        "stablehlo.dynamic_broadcast_in_dim %a, %n, dims = [1] : (<7xf32>, <2xi64>) -> <6x7xf32>",
        "<6x7xf32>",
        _DIMENSIONS.format("[6, 7]", 2),
    ),
    "dynamic_iota": _made_of(
        "<f32>", "stablehlo.dynamic_iota %n, dim = 0 : (<1xi64>) -> <42xf32>", "<42xf32>", _DIMENSIONS.format("[42]", 1)
    ),
    "dynamic_pad": program(
        "%a: <7xf32>, %b: <f32>",
        _DIMENSIONS.format("[1]", 1)
        + "%r = stablehlo.dynamic_pad %a, %b, %n, %n, %n : (<7xf32>, <f32>, <1xi64>, <1xi64>, <1xi64>) -> <15xf32>",
        "<15xf32>",
    ),
    "real_dynamic_slice": _made_of(
        "<7xf32>",
        "stablehlo.real_dynamic_slice %a, %n, %m, %n : (<7xf32>, <1xi64>, <1xi64>, <1xi64>) -> <3xf32>",
        "<3xf32>",
        _DIMENSIONS.format("[1]", 1) + _DIMENSIONS.format("[4]", 1).replace("%n", "%m"),
    ),
    "get_dimension_size": _made_of(
        "<6x7xf32>", "stablehlo.get_dimension_size %a, dim = 0 : (<6x7xf32>) -> <i32>", "<i32>"
    ),
    "set_dimension_size": program(
        "%a: <6x7xf32>, %b: <i32>",
        "%r = stablehlo.set_dimension_size %a, %b, dim = 0 : (<6x7xf32>, <i32>) -> <6x7xf32>",
        "<6x7xf32>",
    ),
}
_INTEGERS = frozenset("and or shift_left shift_right_arithmetic shift_right_logical xor".split())
_BROADCAST = """
add and atan2 complex divide maximum minimum multiply next_after or polygamma power remainder shift_left
shift_right_arithmetic shift_right_logical subtract xor zeta
"""


def broadcasting() -> Iterator[tuple[str, str]]:
    """Generate CHLO's operations on operands of different shapes."""
    for name in _BROADCAST.split():
        element = "i32" if name in _INTEGERS else "f32"
        result = "<2x3xcomplex<f32>>" if name == "complex" else f"<2x3x{element}>"
        types = f"(<2x1x{element}>, <3x{element}>) -> {result}"
        line = f"%r = chlo.broadcast_{name} %a, %b : {types}"
        yield f"broadcast_{name}", program(f"%a: <2x1x{element}>, %b: <3x{element}>", line, result)
    line = "%r = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : "
    types = "(<2x1xf32>, <3xf32>) -> <2x3xi1>"
    yield "broadcast_compare", program("%a: <2x1xf32>, %b: <3xf32>", line + types, "<2x3xi1>")
    line = "%r = chlo.broadcast_select %p, %a, %b : (<i1>, <2x1xf32>, <3xf32>) -> <2x3xf32>"
    yield "broadcast_select", program("%p: <i1>, %a: <2x1xf32>, %b: <3xf32>", line, "<2x3xf32>")
    line = '%r = "chlo.constant_like"(%a) <{value = 1.0 : f32}> : (<2x3xf32>) -> <2x3xf32>'
    yield "constant_like", program("%a: <2x3xf32>", line, "<2x3xf32>")


TEXTS: Mapping[str, str] = {
    **LEGACY,
    **dict(broadcasting()),
    **dict(elementwise()),
    "cholesky": program("%a: <9x9xf32>", "%r = stablehlo.cholesky %a, lower = true : <9x9xf32>", "<9x9xf32>"),
    "cholesky in batches": program(
        "%a: <5x4x4xf64>", "%r = stablehlo.cholesky %a, lower = false : <5x4x4xf64>", "<5x4x4xf64>"
    ),
    "rng": program(
        "%a: <f32>, %s: <2xi64>",
        '%c = stablehlo.constant dense<[4, 8]> : <2xi64>\n %r = "stablehlo.rng"(%a, %a, %c) '
        "<{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (<f32>, <f32>, <2xi64>) -> <4x8xf32>",
        "<4x8xf32>",
    ),
    "random bits of Philox": program(
        "%s: <3xui64>",
        "%n, %r = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (<3xui64>) -> (<3xui64>, <4x8xui32>)",
        "<4x8xui32>",
    ),
    "all_reduce": _collective("all_reduce", "", _SUM),
    "reduce_scatter": _collective("reduce_scatter", "scatter_dimension = 0 : i64, ", _SUM),
    "all_gather": _collective("all_gather", "all_gather_dim = 0 : i64, "),
    "all_to_all": _collective(
        "all_to_all", "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, "
    ),
    "collective_broadcast": _collective("collective_broadcast", ""),
    "collective_permute": program(
        "%a: <4x8xf32>",
        '%r = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}> '
        ": (<4x8xf32>) -> <4x8xf32>",
        "<4x8xf32>",
    ),
    "if": program(
        "%p: <i1>, %a: <4x8xf32>",
        '%r = "stablehlo.if"(%p) ({ %u = stablehlo.sine %a : <4x8xf32>\n stablehlo.return %u : <4x8xf32> }, '
        "{ %v = stablehlo.add %a, %a : <4x8xf32>\n stablehlo.return %v : <4x8xf32> }) : (<i1>) -> <4x8xf32>",
        "<4x8xf32>",
    ),
    "partition_id": program("", '%r = "stablehlo.partition_id"() : () -> <ui32>', "<ui32>"),
    "replica_id": program("", '%r = "stablehlo.replica_id"() : () -> <ui32>', "<ui32>"),
    "constant_like": program(
        "%a: <4x8xf32>", '%r = "chlo.constant_like"(%a) {value = 1.0 : f32} : (<4x8xf32>) -> <4x8xf32>', "<4x8xf32>"
    ),
    "convert to the same type": program("%a: <4x8xf32>", "%r = stablehlo.convert %a : <4x8xf32>", "<4x8xf32>"),
    "custom_call": program(
        "%a: <4x8xf32>", "%r = stablehlo.custom_call @f(%a) : (<4x8xf32>) -> <4x8xf32>", "<4x8xf32>"
    ),
    "window over a whole dimension": _window("<6x9xf32>", "[0, 0], [8, 8]", "1, 17"),
    "window over nearly a whole dimension": _window("<6x9xf32>", "[0, 0], [7, 7]", "1, 15"),
}
DIFFERENT: Mapping[str, str] = {
    "batch_norm_training": "XLA does not count this operation; this project counts 8 FLOPs for each element, "
    "as in the formula",
    "batch_norm_inference": "XLA does not count this operation; this project counts 4 FLOPs for each element",
    "batch_norm_grad": "XLA does not count this operation; this project counts 12 FLOPs for each element",
    "top_k": "XLA does not count this operation; this project counts the FLOPs of a sort",
    "convert to the same type": "XLA drops the operation when it parses the module",
    "custom_call": "XLA returns -1 (unknown); this project counts one FLOP for each element of the results",
    "window over a whole dimension": "XLA counts a sum and a broadcast; this project counts a sum for the window "
    "of each position, as in the program",
}
"""Programs for which XLA's count before optimization differs by more than 5 %, with the reason."""

OTHER_BYTES: Mapping[str, str] = {
    "window, gradient of pooling": "XLA drops a pad by zero elements and a slice of the whole operand",
    "gather": "JAX broadcasts the indices, which is a view here",
    "scatter, add": "JAX broadcasts the indices, which is a view here",
    "scatter, multiply": "JAX broadcasts the indices, which is a view here",
    "scatter, replace": "JAX broadcasts the indices, which is a view here",
    "while loop with a data-dependent condition": "JAX broadcasts constants, which is a view here",
    "scan": "XLA counts reshapes and the tuples of the loop",
    "threefry": "XLA counts reshapes and broadcasts",
    "transpose, concatenate, pad and reverse": "XLA counts a transpose and a reshape",
    "broadcast and iota": "XLA counts broadcasts",
    "optimization barrier": "XLA counts a barrier as a copy of its operands",
}
"""Programs for which XLA's bytes differ by more than 5 %, with the reason: views move no bytes here."""

COMPILED: Mapping[str, str] = {
    "window, cumulative sum": "XLA:CPU sums in two levels",
    "window, reverse cumulative maximum": "XLA:CPU computes the maxima in two levels",
    "window, gradient of pooling": "XLA:CPU expands `select_and_scatter` into a search for the indices and a scatter",
    "reduce, rows": "XLA:CPU also adds the initial value, and sums in two steps",
    "reduce, all dimensions": "XLA:CPU reduces in two steps",
    "reduce, in bf16": "XLA:CPU reduces in two steps",
    "dot in bf16": "XLA:CPU has no products in bf16, so it converts to f32 and back",
    "outer product": "XLA:CPU replaces a product without contracted dimensions with an elementwise one",
    "dynamic slice": "XLA:CPU merges the clamps of two equal indices",
    "while loop with a data-dependent condition": "XLA:CPU reduces in two steps",
    "random bits": "XLA:CPU expands the generator to integer operations",
    "threefry": "XLA:CPU unrolls the loop over rounds",
    "top_k": "XLA:CPU calls a library function, for which XLA returns -1 (unknown)",
}
"""Where the number of the compiled program is: XLA:CPU has rewritten the operation before it counts."""
