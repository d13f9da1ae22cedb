"""Gradient of a maximum over windows, as XLA:CPU implements it."""

from __future__ import annotations

from .fused import Fused, fused, last_steps, reads, stored

# Of a result: 256 bytes of numbers, 64 of a window's.
TYPES = """
!m = tensor<8x8xf32>
!w = tensor<4x4xf32>
!s = tensor<f32>
"""


def gradient(result: str, operand: str, source: str) -> str:
    return f"""
  %{result} = "stablehlo.select_and_scatter"(%{operand}, %{source}, %i) <{{
    window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}}> ({{
  ^bb0(%{result}0: !s, %{result}1: !s):
    %{result}2 = stablehlo.compare GE, %{result}0, %{result}1, FLOAT : (!s, !s) -> tensor<i1>
    stablehlo.return %{result}2 : tensor<i1>
  }}, {{
  ^bb0(%{result}0: !s, %{result}1: !s):
    %{result}2 = stablehlo.add %{result}0, %{result}1 : !s
    stablehlo.return %{result}2 : !s
  }}) : (!m, !w, !s) -> !m
"""


def pooled(body: str) -> Fused:
    """Return a function of %x and %y, gradients %g and %h of window results, and 0."""
    return fused("%x: !m, %y: !m, %g: !w, %h: !w, %i: !s", body, "!m", TYPES)


ONE = pooled(gradient("z", "x", "g"))
TWO = pooled(gradient("a", "x", "g") + gradient("b", "y", "h") + "  %z = stablehlo.add %a, %b : !m")


def test_pool_gradient_is_reduce_window_and_scatter() -> None:
    items = ["iota", "iota", *["reduce_window"] * 3, "concatenate", "broadcast_in_dim", "z"]
    assert stored(ONE) == items
    assert reads(ONE, "reduce_window") == {"x", "iota"}
    assert reads(ONE, "concatenate") == {"reduce_window"}
    assert reads(ONE, "broadcast_in_dim") == {"i"}
    assert reads(ONE, "z") == {"broadcast_in_dim", "concatenate", "g"}


def test_scatter_indices_are_positions_of_maxima() -> None:
    program = ONE.program
    (together,) = (op for op, name in enumerate(program.names) if name == "stablehlo.concatenate")
    (window,) = program.sources[together][:1]
    # Of the three results the first is the maxima.
    assert program.operands[together] == program.makes[window][1:]


def made_bytes(kernels: Fused) -> list[int]:
    """Return the sizes of the stored values in bytes."""
    return [kernels.program.sizes[value] for op in kernels.run.fused.kernels for value in kernels.program.makes[op]]


def test_each_window_yields_maximum_and_its_index() -> None:
    # Numbers and an index for each of two dimensions; the indices lie together.
    assert made_bytes(ONE) == [256, 256, 64, 64, 64, 128, 256, 256]


def test_indices_are_four_bytes_for_any_element_type() -> None:
    narrow = TYPES.replace("f32", "bf16")
    kernels = fused("%x: !m, %g: !w, %i: !s", gradient("z", "x", "g"), "!m", narrow)
    assert made_bytes(kernels) == [256, 256, 32, 64, 64, 128, 128, 128]


def test_gradient_keeps_value_number_and_is_a_scatter() -> None:
    program = TWO.program
    # Five arguments, two gradients and their sum; what is added comes after them.
    assert [TWO.labels[value] for value in range(8)] == ["x", "y", "g", "h", "i", "a", "b", "z"]
    assert [program.names[program.maker[value]] for value in (5, 6, 7)] == [
        *["stablehlo.scatter"] * 2,
        "stablehlo.add",
    ]
    assert program.returned == (7,)


def test_equal_pools_share_indices_but_not_zeros() -> None:
    assert [stored(TWO).count(name) for name in ("iota", "broadcast_in_dim", "concatenate")] == [2, 2, 2]
    first, second = (op for op, name in enumerate(TWO.program.names) if name == "stablehlo.reduce_window")
    assert TWO.program.operands[first][1:] == TWO.program.operands[second][1:]


def test_pools_of_other_sizes_have_their_own_indices() -> None:
    small = gradient("b", "y", "h").replace("!m", "!w").replace("(!w, !w, !s)", "(!w, !t, !s)")
    lines = gradient("a", "x", "g") + small + "  %c:2 = stablehlo.optimization_barrier %a, %b : !m, !w\n"
    types = TYPES + "!t = tensor<2x2xf32>\n"
    kernels = fused("%x: !m, %y: !w, %g: !w, %h: !t, %i: !s", f"{lines}  %z = stablehlo.tanh %c#0 : !m", "!m", types)
    assert stored(kernels).count("iota") == 4


def test_reduction_waits_for_its_operand_alone() -> None:
    """The reduction runs in the forward pass, so that its result is live until the gradient arrives."""
    product = "stablehlo.dot_general %{}, %g, contracting_dims = [1] x [0] : (!w, !w) -> !w"
    late = [f"  %{value} = {product.format(operand)}\n" for value, operand in ("ag", "ba", "cb", "dc", "ed")]
    result = pooled("".join(late) + gradient("z", "x", "e"))
    order = [result.labels[value] for op in result.run.schedule for value in result.program.makes[op][:1]]
    assert order.index("concatenate") < order.index("d") < order.index("z")
    assert last_steps(result)["concatenate"] == order.index("z")
