"""What XLA:CPU stores and what it computes where it is read, rule by rule, as seen in its optimised HLO."""

from __future__ import annotations

from dataclasses import dataclass

from recompute.analysis.memory.xla.fusion import Fusion, fusion
from recompute.analysis.memory.xla.read_program import program_of
from recompute.analysis.step.functions import functions_of, single_block
from recompute.dialects.chlo import CHLO
from recompute.dialects.parser import parse_module
from recompute.dialects.stablehlo.binary import BINARY
from recompute.dialects.stablehlo.elementwise import ELEMENTWISE
from recompute.dialects.stablehlo.padding import PADDING
from recompute.dialects.stablehlo.representation import REPRESENTATION
from recompute.dialects.stablehlo.shapes import SHAPES
from recompute.dialects.stablehlo.slices import SLICES
from recompute.dialects.stablehlo.unary import UNARY
from recompute.rules.fusion import FUSIBLE


@dataclass(frozen=True)
class Fused:
    """`labels`: the names of the values."""

    fusion: Fusion
    labels: dict[int, str]


def fused(body: str, returned: str = "%z") -> Fused:
    """Of a function of %x, %y: 8 x 8 and %v: 8. The result must be 8 x 8."""
    text = f"""
func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>, %v: tensor<8xf32>) -> tensor<8x8xf32> {{
{body}
  func.return {returned} : tensor<8x8xf32>
}}
"""
    block = single_block(functions_of(parse_module(text))[0])
    program = program_of(block)
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return Fused(fusion(program), {number: value.name_hint or "" for number, value in enumerate(values)})


def stored(found: Fused) -> list[str]:
    program = found.fusion.program
    return [found.labels[result] for op in found.fusion.kernels for result in program.makes[op]]


def reads(found: Fused, name: str) -> set[str]:
    program = found.fusion.program
    (op,) = (op for op in found.fusion.kernels for result in program.makes[op] if found.labels[result] == name)
    return {found.labels[value] for value in found.fusion.reads[op]}


TYPE = "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"


def unary(result: str, name: str, operand: str) -> str:
    return f"  %{result} = stablehlo.{name} %{operand} : tensor<8x8xf32>"


def binary(result: str, name: str, one: str, other: str) -> str:
    return f"  %{result} = stablehlo.{name} %{one}, %{other} : tensor<8x8xf32>"


def dot(result: str, operand: str) -> str:
    return f"  %{result} = stablehlo.dot_general %{operand}, %{operand}, contracting_dims = [1] x [0] : {TYPE}"


def body(*lines: str) -> str:
    return "\n".join(lines)


def test_a_chain_with_one_reader_each_is_one_kernel() -> None:
    found = fused(body(unary("a", "sine", "x"), unary("b", "exponential", "a"), unary("z", "tanh", "b")))
    assert stored(found) == ["z"]
    assert reads(found, "z") == {"x"}


def test_a_matrix_product_reads_memory() -> None:
    found = fused(body(unary("a", "negate", "x"), dot("z", "a")))
    assert stored(found) == ["a", "z"]


def test_a_cheap_unary_operation_goes_into_each_reader_and_keeps_its_operand() -> None:
    lines = [dot("a", "x"), unary("b", "negate", "a"), dot("c", "b"), binary("z", "multiply", "b", "c")]
    found = fused(body(*lines))
    assert stored(found) == ["a", "b", "c", "z"]
    assert reads(found, "z") == {"a", "c"}


def test_an_expensive_operation_with_two_readers_is_stored() -> None:
    found = fused(body(dot("a", "x"), unary("b", "tanh", "a"), dot("c", "b"), binary("z", "multiply", "b", "c")))
    assert reads(found, "z") == {"b", "c"}


def test_copies_that_would_read_more_are_not_made() -> None:
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), dot("c", "s")]
    found = fused(body(*lines, binary("z", "multiply", "s", "c")))
    assert reads(found, "z") == {"s", "c"}


def test_a_producer_of_two_operands_goes_into_its_readers_if_all_take_it() -> None:
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), unary("n", "negate", "s")]
    found = fused(body(*lines, unary("m", "abs", "s"), dot("c", "n"), dot("d", "m"), binary("z", "add", "c", "d")))
    assert stored(found) == ["a", "b", "n", "m", "c", "d", "z"]


def test_not_where_another_way_to_a_reader_is_stored() -> None:
    """The sum reaches %z directly and through the tanh, which two operations read."""
    lines = [dot("a", "x"), dot("b", "y"), binary("s", "add", "a", "b"), unary("t", "tanh", "s"), dot("c", "t")]
    found = fused(body(*lines, binary("u", "multiply", "s", "t"), binary("z", "add", "u", "c")))
    assert "s" in stored(found)


REDUCE = (
    "  %r = stablehlo.reduce(%{0} init: %i) applies stablehlo.add across dimensions = [1] : "
    "(tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n"
    "  %w = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>"
)
INIT = "  %i = stablehlo.constant dense<0.0> : tensor<f32>"


def test_a_reduction_computes_inside_what_nobody_else_reads() -> None:
    square = binary("s", "multiply", "x", "x")
    assert stored(fused(body(INIT, square, REDUCE.format("s"), binary("z", "add", "w", "y")))) == ["r", "z"]
    assert stored(fused(body(INIT, square, REDUCE.format("s"), binary("z", "add", "w", "s")))) == ["s", "r", "z"]


def test_an_expensive_operation_is_not_computed_for_each_element_of_a_broadcast() -> None:
    root = "  %s = stablehlo.sqrt %v : tensor<8xf32>"
    wide = "  %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>"
    assert stored(fused(body(root, wide, binary("z", "add", "w", "x")))) == ["s", "z"]


def test_it_is_where_the_broadcast_repeats_nothing() -> None:
    turned = "  %w = stablehlo.broadcast_in_dim %s, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>"
    assert stored(fused(body(unary("s", "sqrt", "x"), turned, binary("z", "add", "w", "y")))) == ["z"]


def test_reshapes_are_the_memory_of_their_operand() -> None:
    lines = [
        dot("a", "x"),
        "  %r = stablehlo.reshape %a : (tensor<8x8xf32>) -> tensor<64xf32>",
        "  %q = stablehlo.reshape %r : (tensor<64xf32>) -> tensor<8x8xf32>",
        dot("z", "q"),
    ]
    found = fused(body(*lines))
    assert stored(found) == ["a", "z"]
    assert reads(found, "z") == {"a"}


def test_which_operations_are_computed_inside_others() -> None:
    """Whatever works element by element or picks elements; a reshape is the memory of its operand."""
    elementwise = {kind.name for kind in (*UNARY, *BINARY, *ELEMENTWISE, *REPRESENTATION)}
    picking = {kind.name for kind in (*SHAPES, *SLICES, *PADDING)} | {
        f"stablehlo.{name}" for name in "dynamic_slice gather iota".split()
    }
    chlo = {kind.name for kind in CHLO.operations} - {"chlo.top_k"}
    assert (elementwise | picking | chlo) - FUSIBLE == {"stablehlo.reshape"}
    assert not FUSIBLE - (elementwise | picking | chlo)


def test_constants_are_neither_stored_nor_read() -> None:
    constant = "  %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>"
    found = fused(body(constant, unary("n", "negate", "c"), binary("z", "add", "n", "x")))
    assert (stored(found), reads(found, "z")) == (["z"], {"x"})
