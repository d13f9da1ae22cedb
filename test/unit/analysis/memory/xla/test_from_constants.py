"""XLA:CPU's treatment of constant expressions, and of operations that return their operand."""

from __future__ import annotations

import pytest

from .fused import Fused, fused, in_library, last_steps, places, reads, stored

TYPES = """
!m = tensor<64x64xf32>
!n = tensor<4096xf32>
!v = tensor<64xf32>
!s = tensor<f32>
"""


def step(body: str, result: str = "!m") -> Fused:
    """Return a function of matrices %x and %y and a number %i."""
    return fused("%x: !m, %y: !m, %i: !s", body, result, TYPES)


def dot(result: str, left: str, right: str) -> str:
    return f"%{result} = stablehlo.dot_general %{left}, %{right}, contracting_dims = [1] x [0] : (!m, !m) -> !m\n"


def number(result: str, literal: str) -> str:
    return f"%{result} = stablehlo.constant dense<{literal}> : !m\n"


def total(result: str, operand: str) -> str:
    across = "applies stablehlo.add across dimensions = [1]"
    return f"%{result} = stablehlo.reduce(%{operand} init: %i) {across} : (!m, !s) -> !v\n"


def counting(result: str, dimension: int) -> str:
    return f"%{result} = stablehlo.iota dim = {dimension} : !m\n"


def products_of_constants(constants: str) -> Fused:
    """Return a function with matrix products of %c and of %d."""
    return step(constants + dot("a", "x", "c") + dot("b", "a", "d") + "%z = stablehlo.sine %b : !m")


ONE = number("c", "1.0")
ALIKE = {
    "numbers": ONE + number("d", "1.0"),
    "a number and a broadcast": ONE
    + "%k = stablehlo.constant dense<1.0> : !s  %d = stablehlo.broadcast_in_dim %k, dims = [] : (!s) -> !m\n",
    "a number and a reshape": ONE + "%k = stablehlo.constant dense<1.0> : !n  %d = stablehlo.reshape %k : (!n) -> !m\n",
    "what is computed of numbers": number("k", "1.0")
    + number("l", "1.0")
    + "%c = stablehlo.tanh %k : !m  %d = stablehlo.tanh %l : !m\n",
    "iotas": counting("c", 0) + counting("d", 0),
    "what is computed of iotas": counting("k", 0)
    + counting("l", 0)
    + "%c = stablehlo.tanh %k : !m  %d = stablehlo.tanh %l : !m\n",
}
UNLIKE = {
    "numbers": ONE + number("d", "2.0"),
    "what is computed of numbers": ONE + "%d = stablehlo.tanh %c : !m\n",
    "one operation of two numbers": number("k", "1.0")
    + number("l", "2.0")
    + "%c = stablehlo.subtract %k, %l : !m  %d = stablehlo.subtract %l, %k : !m\n",
    "numbers of one bit pattern": "%k = stablehlo.constant dense<1065353216> : tensor<64x64xi32>\n"
    + number("l", "1.0")
    + "%c = stablehlo.convert %k : (tensor<64x64xi32>) -> !m  %d = stablehlo.convert %l : !m\n",
    "iotas": counting("c", 0) + counting("d", 1),
    "what is computed of iotas": counting("k", 0) + "%c = stablehlo.tanh %k : !m  %d = stablehlo.sine %k : !m\n",
}


@pytest.mark.parametrize("constants", ALIKE.values(), ids=ALIKE.keys())
def test_equal_constants_are_stored_once_for_products(constants: str) -> None:
    result = products_of_constants(constants)
    assert stored(result) == ["c", "a", "b", "z"]
    assert (reads(result, "a"), reads(result, "b")) == ({"x", "c"}, {"a", "c"})


@pytest.mark.parametrize("constants", UNLIKE.values(), ids=UNLIKE.keys())
def test_unequal_constants_are_stored_separately(constants: str) -> None:
    assert set(stored(products_of_constants(constants))) == {"c", "d", "a", "b", "z"}


def barrier_over_constants(constants: str, names: str, types: str) -> Fused:
    """Return a function with a barrier, which reads memory, over %x and constants."""
    count = 1 + len(names.split(","))
    barrier = f"%e:{count} = stablehlo.optimization_barrier %x, {names} : !m, {types}\n"
    return step(f"{constants}{barrier}%z = stablehlo.sine %e#0 : !m")


def test_constants_of_different_shape_are_distinct() -> None:
    flat = "%d = stablehlo.constant dense<1.0> : !n\n"
    assert reads(barrier_over_constants(ONE + flat, "%c, %d", "!m, !n"), "e") == {"x", "c", "d"}


def test_constant_lives_until_last_read_of_equal_one() -> None:
    result = products_of_constants(ALIKE["numbers"])
    # The number, the products, the sine.
    assert last_steps(result)["c"] == 2


def test_kernel_computes_constant_inline() -> None:
    for constant in (ONE, counting("c", 0)):
        assert stored(step(constant + "%z = stablehlo.add %x, %c : !m")) == ["z"]


def test_library_kernel_computes_unshared_constant_inline() -> None:
    for constant in (number("c", "2.0"), counting("c", 0)):
        results = step(constant + "%a = stablehlo.add %x, %c : !m\n" + total("z", "a"), "!v")
        assert (stored(results), in_library(results)) == (["z"], ["c", "a", "z"])


def test_function_of_constant_does_not_read_constant() -> None:
    """Only the library kernel reads the constant; a kernel that computes a function of it does not."""
    product = f"{ONE}%t = stablehlo.tanh %c : !m\n{dot('p', 'x', 't')}"
    results = step(f"{product}%s = stablehlo.sine %p : !m  %a = stablehlo.add %s, %c : !m\n{total('z', 'a')}", "!v")
    assert (stored(results), in_library(results)) == (["t", "p", "s", "z"], ["c", "a", "z"])


def test_product_of_two_constants_is_computed() -> None:
    results = step(ONE + dot("a", "c", "c") + dot("z", "x", "a"))
    assert (stored(results), reads(results, "a")) == (["c", "a", "z"], {"c"})


def test_library_kernel_reads_shared_constant() -> None:
    lines = number("c", "2.0") + "%a = stablehlo.add %x, %c : !m\n" + total("r", "a")
    wide = "%w = stablehlo.broadcast_in_dim %r, dims = [0] : (!v) -> !m  %t = stablehlo.sine %w : !m"
    results = step(f"{lines}{wide}  %z = stablehlo.power %t, %c : !m")
    assert stored(results) == ["c", "w", "z"]
    assert (reads(results, "w"), reads(results, "z")) == ({"x", "i", "c"}, {"w"})


def test_shared_iota_functions_read_nothing() -> None:
    """The iota and its functions are computed once, without operands, and read by one library kernel."""
    lines = ALIKE["what is computed of iotas"] + "%a = stablehlo.add %x, %c : !m  %b = stablehlo.multiply %a, %d : !m\n"
    assert stored(step(lines + total("z", "b"), "!v")) == ["z"]


def test_non_splat_constants_cost_nothing() -> None:
    for operand in ("c", "t"):
        lines = f"""
          %c = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : !q
          %t = stablehlo.tanh %c : !q
          %z = stablehlo.dot_general %x, %{operand}, contracting_dims = [1] x [0] : (!q, !q) -> !q"""
        kernels = fused("%x: !q", lines, "!q", "!q = tensor<2x2xf32>")
        assert (stored(kernels), reads(kernels, "z")) == (["z"], {"x"})


def test_scalar_constant_costs_nothing() -> None:
    assert reads(barrier_over_constants("%c = stablehlo.constant dense<2.0> : !s\n", "%c", "!s"), "e") == {"x"}


def product_of(nothing: str, literal: str = "0.0") -> Fused:
    """Return the product of %a with itself, where %a is made from %x and possibly %c."""
    return step(f"{number('c', literal)}%a = stablehlo.{nothing} : !m\n{dot('z', 'a', 'a')}")


RIGHT = [
    ("add %x, %c", "0.0"),
    ("add %x, %c", "-0.0"),
    ("subtract %x, %c", "0.0"),
    ("multiply %x, %c", "1.0"),
    ("divide %x, %c", "1.0"),
    ("maximum %x, %c", "0xFF800000"),
    ("minimum %x, %c", "0x7F800000"),
]
LEFT = [
    ("add %c, %x", "0.0"),
    ("multiply %c, %x", "1.0"),
    ("maximum %c, %x", "0xFF800000"),
    ("minimum %c, %x", "0x7F800000"),
]


@pytest.mark.parametrize(("nothing", "literal"), RIGHT)
def test_identity_operation_is_removed(nothing: str, literal: str) -> None:
    assert reads(product_of(nothing, literal), "z") == {"x"}


@pytest.mark.parametrize(("nothing", "literal"), LEFT)
def test_identity_with_constant_first_is_removed(nothing: str, literal: str) -> None:
    assert reads(product_of(nothing, literal), "z") == {"x"}


def test_constant_of_identity_is_not_stored() -> None:
    assert stored(product_of("add %x, %c")) == ["z"]


@pytest.mark.parametrize(
    "nothing",
    [
        "%a = stablehlo.pad %x, %i, low = [0, 0], high = [0, 0], interior = [0, 0] : (!m, !s) -> !m",
        "%a = stablehlo.convert %x : !m",
        "%a = stablehlo.slice %x [0:64, 0:64] : (!m) -> !m",
        "%a = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (!m) -> !m",
    ],
    ids=["pad", "convert", "slice", "broadcast"],
)
def test_change_to_the_same_shape_or_type_is_removed(nothing: str) -> None:
    results = step(f"{nothing}\n{dot('z', 'a', 'a')}")
    assert (stored(results), reads(results, "z")) == (["z"], {"x"})


def test_transposing_broadcast_is_computed() -> None:
    results = step(f"%a = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (!m) -> !m\n{dot('z', 'a', 'a')}")
    assert (stored(results), reads(results, "z")) == (["a", "z"], {"a"})


@pytest.mark.parametrize(
    ("something", "literal"),
    [
        ("subtract %c, %x", "0.0"),
        ("divide %c, %x", "1.0"),
        ("add %x, %c", "1.0"),
        ("multiply %x, %c", "0.0"),
        ("maximum %x, %c", "0x7F800000"),
        ("minimum %x, %c", "0xFF800000"),
        ("power %x, %c", "1.0"),
    ],
)
def test_non_identity_operation_is_computed(something: str, literal: str) -> None:
    result = product_of(something, literal)
    assert (stored(result), reads(result, "z")) == (["a", "z"], {"a"})


def scatter(result: str, over: str) -> str:
    return f"""
      %{result} = "stablehlo.scatter"(%{over}, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
        update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>}}> ({{
      ^bb0(%{result}0: !s, %{result}1: !s):
        stablehlo.return %{result}1 : !s
      }}) : (!m, tensor<2x1xi32>, tensor<2x64xf32>) -> !m
"""


def scatters(body: str) -> Fused:
    return fused("%x: !m, %at: tensor<2x1xi32>, %u: tensor<2x64xf32>", body, "!m", TYPES)


def test_scatter_over_unshared_zeros_is_in_place() -> None:
    result = scatters(number("c", "0.0") + scatter("z", "c"))
    assert (stored(result), places(result)) == (["c", "z"], ["c"])


def test_each_scatter_over_shared_zeros_copies_them() -> None:
    both = scatter("a", "c") + scatter("b", "d") + "%z = stablehlo.add %a, %b : !m"
    result = scatters(number("c", "0.0") + number("d", "0.0") + both)
    assert (stored(result), places(result)) == (["c", "copy", "a", "copy", "b", "z"], ["c", "copy", "copy", "z"])
    unlike = scatters(number("c", "0.0") + number("d", "1.0") + both)
    assert "copy" not in stored(unlike)


def test_scatter_copies_zeros_with_other_readers() -> None:
    lines = number("c", "0.0") + scatter("a", "c") + "%z = stablehlo.maximum %a, %c : !m"
    assert "copy" in stored(scatters(lines))


def test_update_operand_is_not_copied() -> None:
    place = "(!m, !m, tensor<i32>, tensor<i32>) -> !m"
    lines = f"{ONE}{number('d', '1.0')}{dot('a', 'x', 'd')}%b = stablehlo.dynamic_update_slice %a, %c, %k, %k : {place}"
    kernels = fused("%x: !m, %k: tensor<i32>", f"{lines}\n%z = stablehlo.sine %b : !m", "!m", TYPES)
    assert stored(kernels) == ["c", "a", "b", "z"]


def loop(added: str) -> Fused:
    """Return a loop over %x and zeros %c; an iteration adds two of the values."""
    return step(f"""{number("c", "0.0")}{number("d", "0.0")}
      %l:2 = stablehlo.while(%j = %x, %k = %c) : !m, !m
       cond {{
        %p = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %p : tensor<i1>
       }} do {{
        %n = stablehlo.add %j, %{added} : !m
        stablehlo.return %n, %n : !m, !m
       }}
      %z = stablehlo.sine %l#0 : !m""")


def test_loop_copies_zeros_that_its_body_reads() -> None:
    assert stored(loop("k")) == ["c", "l", "l", "z"]
    assert stored(loop("d")) == ["c", "copy", "l", "l", "z"]
