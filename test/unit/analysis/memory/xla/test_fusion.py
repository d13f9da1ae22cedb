"""Rules by which XLA:CPU stores a value or computes it where it is read, as observed in its optimized HLO."""

from __future__ import annotations

from recompute.dialects.chlo import CHLO
from recompute.dialects.stablehlo.binary import BINARY
from recompute.dialects.stablehlo.compare_select import ELEMENTWISE
from recompute.dialects.stablehlo.padding import PADDING
from recompute.dialects.stablehlo.representation import REPRESENTATION
from recompute.dialects.stablehlo.shapes import SHAPES
from recompute.dialects.stablehlo.slices import SLICES
from recompute.dialects.stablehlo.unary import UNARY
from recompute.rules import (
    FusionRole,
    in_kernel_library,
    overwrites_operand,
    pure,
    register,
    registrations_undone,
)
from recompute.rules import (
    fused as fused_into_users,
)
from recompute.rules.facts import Facts
from recompute.rules.fusion import FUSIBLE

from .fused import Fused, in_library, places, reads, stored
from .fused import fused as fused_with

ARGUMENTS = "%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %v: tensor<8xf32>"


def fused(body: str) -> Fused:
    return fused_with(ARGUMENTS, body, "tensor<8x8xf32>")


TYPE = "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"


def unary(result: str, name: str, operand: str) -> str:
    return f"  %{result} = stablehlo.{name} %{operand} : tensor<8x8xf32>"


def binary(result: str, name: str, first: str, other: str) -> str:
    return f"  %{result} = stablehlo.{name} %{first}, %{other} : tensor<8x8xf32>"


def dot(result: str, operand: str) -> str:
    return f"  %{result} = stablehlo.dot_general %{operand}, %{operand}, contracting_dims = [1] x [0] : {TYPE}"


def body(*lines: str) -> str:
    return "\n".join(lines)


def test_chain_of_single_readers_is_one_kernel() -> None:
    kernels = fused(body(unary("a", "sine", "x"), unary("b", "exponential", "a"), unary("z", "tanh", "b")))
    assert stored(kernels) == ["z"]
    assert reads(kernels, "z") == {"x"}


def test_matrix_product_operands_are_stored() -> None:
    kernels = fused(body(unary("a", "negate", "x"), dot("z", "a")))
    assert stored(kernels) == ["a", "z"]


def test_cheap_unary_operation_fuses_into_each_reader() -> None:
    lines = [dot("a", "x"), unary("b", "negate", "a"), dot("c", "b"), binary("z", "multiply", "b", "c")]
    kernels = fused(body(*lines))
    assert stored(kernels) == ["a", "b", "c", "z"]
    assert reads(kernels, "z") == {"a", "c"}


def test_expensive_operation_with_two_readers_is_stored() -> None:
    kernels = fused(body(dot("a", "x"), unary("b", "tanh", "a"), dot("c", "b"), binary("z", "multiply", "b", "c")))
    assert reads(kernels, "z") == {"b", "c"}


def test_producer_that_reads_more_is_not_duplicated() -> None:
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), dot("c", "s")]
    kernels = fused(body(*lines, binary("z", "multiply", "s", "c")))
    assert reads(kernels, "z") == {"s", "c"}


def test_binary_producer_fuses_only_if_all_readers_can() -> None:
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), unary("n", "negate", "s")]
    kernels = fused(body(*lines, unary("m", "abs", "s"), dot("c", "n"), dot("d", "m"), binary("z", "add", "c", "d")))
    assert stored(kernels) == ["a", "b", "n", "m", "c", "d", "z"]


def test_producer_with_a_stored_path_to_a_reader_is_stored() -> None:
    """The sum is stored: it reaches %z directly, and also through the tanh, which is stored for its two readers."""
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), unary("t", "tanh", "s"), dot("c", "t")]
    kernels = fused(body(*lines, binary("u", "multiply", "s", "t"), binary("z", "add", "u", "c")))
    assert "s" in stored(kernels)


REDUCE = (
    "  %r = stablehlo.reduce(%{0} init: %i) applies stablehlo.add across dimensions = [1] : "
    "(tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n"
    "  %w = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>"
)
INIT = "  %i = stablehlo.constant dense<0.0> : tensor<f32>"


def test_reduction_fuses_unshared_producer() -> None:
    square = binary("s", "multiply", "x", "x")
    assert stored(fused(body(INIT, square, REDUCE.format("s"), binary("z", "add", "w", "y")))) == ["r", "z"]
    assert stored(fused(body(INIT, square, REDUCE.format("s"), binary("z", "add", "w", "s")))) == ["s", "r", "z"]


def test_expensive_operation_is_not_fused_into_broadcast() -> None:
    root = "  %s = stablehlo.sqrt %v : tensor<8xf32>"
    wide = "  %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>"
    assert stored(fused(body(root, wide, binary("z", "add", "w", "x")))) == ["s", "z"]


def test_expensive_operation_fuses_if_nothing_repeats() -> None:
    turned = "  %w = stablehlo.broadcast_in_dim %s, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>"
    assert stored(fused(body(unary("s", "sqrt", "x"), turned, binary("z", "add", "w", "y")))) == ["z"]


def test_reshape_shares_memory_with_its_operand() -> None:
    lines = [
        dot("a", "x"),
        "  %r = stablehlo.reshape %a : (tensor<8x8xf32>) -> tensor<64xf32>",
        "  %q = stablehlo.reshape %r : (tensor<64xf32>) -> tensor<8x8xf32>",
        dot("z", "q"),
    ]
    kernels = fused(body(*lines))
    assert stored(kernels) == ["a", "z"]
    assert reads(kernels, "z") == {"a"}


def test_fusible_operations() -> None:
    """Elementwise and selecting operations are fused; a reshape shares the memory of its operand."""
    elementwise = {kind.name for kind in (*UNARY, *BINARY, *ELEMENTWISE, *REPRESENTATION)}
    picking = {kind.name for kind in (*SHAPES, *SLICES, *PADDING)} | {
        f"stablehlo.{name}" for name in "dynamic_slice gather iota".split()
    }
    chlo = {kind.name for kind in CHLO.operations} - {"chlo.constant", "chlo.ragged_dot", "chlo.scan", "chlo.top_k"}
    assert (elementwise | picking | chlo) - FUSIBLE == {"stablehlo.reshape"}
    assert not FUSIBLE - (elementwise | picking | chlo)


def test_constants_are_neither_stored_nor_read() -> None:
    constant = "  %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>"
    kernels = fused(body(constant, unary("n", "negate", "c"), binary("z", "add", "n", "x")))
    assert (stored(kernels), reads(kernels, "z")) == (["z"], {"x"})


def test_expensive_operation_read_in_one_kernel_is_not_stored() -> None:
    lines = [unary("t", "tanh", "x"), unary("n", "negate", "t"), unary("m", "abs", "t")]
    assert stored(fused(body(*lines, binary("z", "add", "n", "m")))) == ["z"]
    assert stored(fused(body(*lines, dot("d", "m"), binary("z", "add", "n", "d")))) == ["t", "m", "d", "z"]


def test_expensive_operation_with_stored_reader_is_stored() -> None:
    lines = [unary("t", "tanh", "x"), dot("d", "t"), binary("z", "add", "t", "d")]
    assert stored(fused(body(*lines))) == ["t", "d", "z"]


def quotient(of: str, by: str) -> Fused:
    """Return a quotient that two kernels read, where %c is a splat constant."""
    constant = "  %c = stablehlo.constant dense<3.0> : tensor<8x8xf32>"
    used = body(dot("d", "q"), binary("s", "multiply", "q", "d"), binary("z", "add", "s", "c"))
    return fused(body(constant, binary("q", "divide", of, by), used))


def test_division_is_cheap_if_the_divisor_is_constant() -> None:
    assert reads(quotient("x", "c"), "z") == {"x", "d"}
    assert reads(quotient("c", "x"), "z") == {"q", "d"}


def test_cast_to_bf16_is_expensive_and_cast_from_it_is_cheap() -> None:
    def cast(source: str, target: str) -> Fused:
        """Return a cast of %x that two kernels read."""
        lines = f"""
          %t = stablehlo.convert %x : (tensor<8x8x{source}>) -> tensor<8x8x{target}>
          %s = stablehlo.optimization_barrier %t : tensor<8x8x{target}>
          %z = stablehlo.add %t, %s : tensor<8x8x{target}>"""
        return fused_with(f"%x: tensor<8x8x{source}>", lines, f"tensor<8x8x{target}>")

    assert reads(cast("f32", "bf16"), "z") == {"t", "s"}
    assert reads(cast("bf16", "f32"), "z") == {"x", "s"}


def joined(count: int, shape: str, result: str, dimension: int) -> list[str]:
    """Return the values stored for the negation of a concatenation of `count` operands, each of which is used once."""
    operands, types = ", ".join(["%x"] * count), ", ".join([f"tensor<{shape}>"] * count)
    lines = [
        f"  %j = stablehlo.concatenate {operands}, dim = {dimension} : ({types}) -> tensor<{result}>",
        f"  %z = stablehlo.negate %j : tensor<{result}>",
    ]
    return stored(fused_with(f"%x: tensor<{shape}>", body(*lines), f"tensor<{result}>"))


def test_concatenation_fuses_up_to_eight_operands() -> None:
    assert joined(8, "2x2xf32", "2x16xf32", 1) == ["z"]
    assert joined(9, "2x2xf32", "2x18xf32", 1) == ["j", "z"]


def test_concatenation_of_wide_rows_is_stored() -> None:
    assert joined(2, "2x63xf32", "2x126xf32", 1) == ["z"]
    assert joined(2, "2x64xf32", "2x128xf32", 1) == ["j", "z"]
    assert joined(2, "2x64xf32", "4x64xf32", 0) == ["z"]


def long_sum(kind: str, size: int, dimensions: str = "[1]") -> list[str]:
    """Return the values stored for a sum over the result of an operation that has no other reader."""
    wide, narrow = f"tensor<8x{size}x{kind}>", f"tensor<8x{kind}>" if dimensions == "[1]" else f"tensor<{size}x{kind}>"
    lines = f"""
      %i = stablehlo.constant dense<0> : tensor<{kind}>
      %a = stablehlo.abs %x : {wide}
      %z = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = {dimensions} :
        ({wide}, tensor<{kind}>) -> {narrow}"""
    return stored(fused_with(f"%x: {wide}", lines, narrow))


def test_reduction_over_32_elements_is_split_in_two() -> None:
    """A long reduction becomes two, of which the first, over windows, reads memory."""
    assert long_sum("i32", 32) == ["z"]
    assert long_sum("i32", 33) == ["a", "z"]
    # It is the reduced dimension that counts.
    assert long_sum("i32", 33, "[0]") == ["z"]


def registered(facts: Facts, *lines: str) -> Fused:
    """Return the model of a function in which `acme.f` has the facts."""
    with registrations_undone():
        register("acme.f", facts)
        return fused(body(*lines))


def foreign(result: str, operand: str) -> str:
    return f'  %{result} = "acme.f"(%{operand}) : (tensor<8x8xf32>) -> tensor<8x8xf32>'


def test_registered_operation_is_a_kernel_of_its_own_by_default() -> None:
    lines = [unary("a", "negate", "x"), foreign("f", "a"), unary("z", "negate", "f")]
    assert stored(registered(pure(), *lines)) == ["a", "f", "z"]
    assert stored(registered(fused_into_users(pure()), *lines)) == ["z"]


def test_registered_role_decides_whether_kernels_duplicate_the_operation() -> None:
    lines = [foreign("f", "x"), dot("d", "f"), binary("z", "add", "f", "d")]
    assert reads(registered(fused_into_users(pure()), *lines), "z") == {"x", "d"}
    assert reads(registered(fused_into_users(pure(), FusionRole.EXPENSIVE), *lines), "z") == {"f", "d"}


def test_registered_reduction_absorbs_operands_without_other_users() -> None:
    facts = fused_into_users(pure(), FusionRole.REDUCTION)
    assert stored(registered(facts, unary("a", "negate", "x"), foreign("z", "a"))) == ["z"]
    lines = [unary("a", "negate", "x"), foreign("f", "a"), binary("z", "add", "a", "f")]
    assert stored(registered(facts, *lines)) == ["a", "f", "z"]


def test_registered_operation_overwrites_its_operand() -> None:
    lines = [dot("d", "x"), foreign("f", "d"), dot("z", "f")]
    assert places(registered(pure(), *lines)) == ["d", "f", "z"]
    assert places(registered(overwrites_operand(pure()), *lines)) == ["d", "z"]


def test_library_kernel_includes_registered_operation() -> None:
    wide, narrow = "tensor<64x64xf32>", "tensor<64xf32>"
    lines = f"""
      %i = stablehlo.constant dense<0.0> : tensor<f32>
      %f = "acme.f"(%x) : ({wide}) -> {wide}
      %z = stablehlo.reduce(%f init: %i) applies stablehlo.add across dimensions = [1] :
        ({wide}, tensor<f32>) -> {narrow}"""
    with registrations_undone():
        register("acme.f", in_kernel_library(fused_into_users(pure())))
        assert in_library(fused_with(f"%x: {wide}", lines, narrow)) == ["f", "z"]
