"""A stack of reshaped slices equals the array from which the slices come, and no similar array."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import Proof, prove

ARRAY, MATRIX, ROW, VECTOR, STACK = (f"tensor<{shape}xf32>" for shape in ("8x3", "3x3", "1x3", "3", "8x1x3"))
SAVED = f"%gi = stablehlo.reshape %gs : ({ROW}) -> {VECTOR}\n%row = " + (
    f"stablehlo.broadcast_in_dim %gi, dims = [1] : ({VECTOR}) -> {ROW}\n"
)
FULL = f"%all = stablehlo.broadcast_in_dim %row, dims = [0, 1] : ({ROW}) -> {MATRIX}\n"
RECOMPUTED = f"%all = stablehlo.broadcast_in_dim %gs, dims = [0, 1] : ({ROW}) -> {MATRIX}\n"
COLUMN = f"%gi = stablehlo.reshape %gs : ({ROW}) -> {VECTOR}\n%all = " + (
    f"stablehlo.broadcast_in_dim %gi, dims = [0] : ({VECTOR}) -> {MATRIX}\n"
)


def row_of(array: str, index: str) -> str:
    types = f"({ARRAY}, tensor<i32>, tensor<i32>) -> {ROW}"
    return f"%gs = stablehlo.dynamic_slice {array}, {index}, %o, sizes = [1, 3] : {types}\n"


def loop(results: str, carries: dict[str, tuple[str, str]], body: str, following: str) -> str:
    """Return a loop of 8 iterations. `carries`: for each carry, its initial value and its type."""
    types = ", ".join(("tensor<i32>", *(type_ for _, type_ in carries.values())))
    first = ", ".join(("%i = %o", *(f"{name} = {value}" for name, (value, _) in carries.items())))
    return f"""{results} = stablehlo.while({first}) : {types}
    cond {{
      %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      {body}%i1 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %i1, {following} : {types}
    }}
    """


def step(forward: str, backward: str) -> str:
    constants = "".join(
        f"%{name} = stablehlo.constant dense<{value}> : tensor<i32>\n"
        for name, value in {"o": 0, "one": 1, "last": 7, "end": 8}.items()
    )
    arguments = f"%g: {ARRAY}, %b: {ARRAY}, %x: {MATRIX}, %ct: {MATRIX}, %empty: {STACK}"
    return f"""func.func public @main({arguments}) -> ({MATRIX}, {MATRIX}) {{
    {constants}{forward}{backward}func.return %y, %z : {MATRIX}, {MATRIX}
    }}"""


MULTIPLY_FORWARD = f"%h1 = stablehlo.multiply %h, %all : {MATRIX}\n"
MULTIPLY_BACKWARD = f"%d1 = stablehlo.multiply %d, %all : {MATRIX}\n"
REVERSED = "%at = stablehlo.subtract %last, %i : tensor<i32>\n"


def with_stack() -> str:
    """Return a step whose first loop saves rows in a stack, which the second loop reads."""
    starts = "tensor<i32>, tensor<i32>, tensor<i32>"
    save = (
        f"%u = stablehlo.broadcast_in_dim %row, dims = [1, 2] : ({ROW}) -> tensor<1x1x3xf32>\n"
        f"%s1 = stablehlo.dynamic_update_slice %s, %u, %i, %o, %o : ({STACK}, tensor<1x1x3xf32>, {starts}) -> {STACK}\n"
    )
    read = (
        f"%r = stablehlo.dynamic_slice %k, %at, %o, %o, sizes = [1, 1, 3] : ({STACK}, {starts}) -> tensor<1x1x3xf32>\n"
        f"%row = stablehlo.reshape %r : (tensor<1x1x3xf32>) -> {ROW}\n"
    )
    return step(
        loop(
            "%n, %y, %k",
            {"%h": ("%x", MATRIX), "%s": ("%empty", STACK)},
            row_of("%g", "%i") + SAVED + FULL + MULTIPLY_FORWARD + save,
            "%h1, %s1",
        ),
        loop("%m, %z", {"%d": ("%ct", MATRIX)}, REVERSED + read + FULL + MULTIPLY_BACKWARD, "%d1"),
    )


def without_stack(array: str = "%g", index: str = "%at", gain: str = RECOMPUTED, at: str = REVERSED) -> str:
    """Return a step whose second loop reads the row of `array` at `index`."""
    return step(
        loop(
            "%n, %y",
            {"%h": ("%x", MATRIX)},
            row_of("%g", "%i") + SAVED + FULL + MULTIPLY_FORWARD,
            "%h1",
        ),
        loop("%m, %z", {"%d": ("%ct", MATRIX)}, at + row_of(array, index) + gain + MULTIPLY_BACKWARD, "%d1"),
    )


def proof(before: str, after: str) -> Proof:
    return prove(parse_module(before), parse_module(after))


@pytest.mark.parametrize("gain", [RECOMPUTED, SAVED + FULL], ids=["slice", "reshaped slice"])
def test_row_of_stack_is_the_slice(gain: str) -> None:
    for before, after in ((with_stack(), without_stack(gain=gain)), (without_stack(gain=gain), with_stack())):
        assert (verdict := proof(before, after)).proved, verdict.reason


@pytest.mark.parametrize(
    "other",
    [
        without_stack(array="%b"),
        without_stack(index="%i"),
        without_stack(index="%one"),
        without_stack(at=REVERSED.replace("%last", "%end")),
        without_stack(gain=COLUMN),
    ],
    ids=["other operand", "reversed index", "constant index", "next index", "other dimension"],
)
def test_other_slice_is_not_proved(other: str) -> None:
    assert proof(other, other).proved
    assert not proof(with_stack(), other).proved and not proof(other, with_stack()).proved
