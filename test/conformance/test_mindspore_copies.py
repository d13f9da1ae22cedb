"""Copies: which operations are copied, how often, and what happens to equal operations and to the originals."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from recompute.dialects.context import make_context
from recompute.dialects.names import Names
from recompute.support.diagnostics import Refusal
from recompute.test.conformance.programs import (
    BEHIND,
    backward,
    chain,
    check_equal,
    classified,
    cloned,
    copies_in,
    copies_of,
    depends_in,
    forward,
    maker,
    named,
    names_in,
    net,
    recomputed,
    regions_of_copies,
    step,
    tokens_in,
)
from recompute.transforms.verify import verify

EXPONENTIALS = ["exponential", "sqrt", "exponential", "tanh"]


def one_cell(*inside: str, gradients: tuple[str, ...], result: str) -> ModuleOp:
    """Return a cell that ends in %b, a layer after it, and the cell's gradients, the first of which is %g."""
    return step(*inside, *BEHIND, *gradients, returns=f"%d, {result}")


def test_mindspore_07_copies_only_gradient_operands_and_producers() -> None:
    module = one_cell(
        forward("a", "sine %x", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("tail", "cosine %e", "cell"),
        forward("b", "tanh %tail", "cell"),
        gradients=(backward("h", "multiply %g, %e", "cell"),),
        result="%h",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "exponential"]
    check_equal(module, after)


def test_mindspore_08_second_tutorial_matmul_is_not_copied() -> None:
    result = recomputed(net("attention"))
    # Two matmuls in each of ten blocks and four in their gradients; the last block's result is not used.
    assert names_in(result.before).count("dot_general") == 10 * (2 + 4) - 1
    assert result.copies.count("dot_general") == 9
    assert result.copies.count("exponential") == 9


def test_mindspore_09_gradient_only_values_are_moved() -> None:
    module = one_cell(
        forward("a", "sine %x", "cell"),
        forward("e", "cosine %a", "cell"),
        forward("b", "tanh %x", "cell"),
        gradients=(backward("h", "multiply %g, %e", "cell"),),
        result="%h",
    )
    after = cloned(module, "cell")
    assert names_in(after).count("sine") == names_in(after).count("cosine") == 1
    assert copies_in(after) == ["sine", "cosine"]
    check_equal(module, after)


def test_mindspore_10_one_copy_for_all_readers() -> None:
    gradients = [backward(f"h{i}", f"multiply {'%g' if i == 0 else f'%h{i - 1}'}, %e", "cell") for i in range(5)]
    module = one_cell(
        forward("a", "sine %x", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("b", "tanh %e", "cell"),
        gradients=tuple(gradients),
        result="%h4",
    )
    after = cloned(module, "cell")
    (copy,) = copies_of(after, "exponential")
    readers = [use.operation for use in copy.results[0].uses]
    assert len(readers) == 5 and all(Names.TARGET_GRAD in reader.attributes for reader in readers)
    check_equal(module, after)


def test_mindspore_11_verifier_names_reader_of_original() -> None:
    after = cloned(chain(EXPONENTIALS, 3))
    verify(after)
    copy = next(op for op in after.walk() if Names.COPY in op.attributes)
    number = copy.attributes[Names.ID]
    original = next(op for op in after.walk() if op is not copy and op.attributes.get(Names.ID) == number)
    reader = next(use for use in copy.results[0].uses if Names.COPY not in use.operation.attributes)
    reader.operation.operands[reader.index] = original.results[0]
    with pytest.raises(
        Refusal,
        match=r"reads the original stablehlo\.exponential instead of a copy"
        ", although it is marked for recomputation",
    ):
        verify(after)


TWINS = (
    forward("a", "sine %x", "cell"),
    forward("e", "exponential %a", "cell"),
    forward("twin", "exponential %a", "cell"),
    forward("s", "add %e, %twin", "cell"),
    forward("b", "tanh %s", "cell"),
)
READ_TWINS = (backward("h", "multiply %g, %e", "cell"), backward("i", "multiply %h, %twin", "cell"))


def test_mindspore_19_twin_copies_of_a_region_become_one() -> None:
    module = one_cell(*TWINS, gradients=READ_TWINS, result="%i")
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "exponential"]
    check_equal(module, after)


def test_mindspore_20_twins_merge_and_region_has_one_token() -> None:
    module = one_cell(*TWINS, gradients=READ_TWINS, result="%i")
    after = cloned(module, "cell")
    # One original, one copy; the layer behind has one of its own.
    assert names_in(after).count("exponential") == 3
    assert len(tokens_in(after)) == 1
    assert maker(after, "s").operands[0] is maker(after, "s").operands[1]


def test_mindspore_21_twin_outside_region_stays_separate() -> None:
    module = one_cell(
        forward("outside", "sine %x", "before"),
        forward("a", "sine %x", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("s", "add %e, %outside", "cell"),
        forward("b", "tanh %s", "cell"),
        gradients=(backward("h", "multiply %g, %e", "cell"), backward("i", "multiply %h, %a", "cell")),
        result="%i",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "exponential"]
    # The twin outside, the original, the copy: no gradient operation reads the first two.
    assert names_in(after).count("sine") == 3
    classes = classified(after)
    readers = classes.order.readers(named(after, "outside"))
    assert readers and all(classes.is_forward(reader) for reader in readers)
    check_equal(module, after)


def test_mindspore_22_unread_originals_are_removed() -> None:
    module = net("attention")
    result = recomputed(module)
    originals = {op.attributes[Names.ID] for op in result.after.walk() if Names.ID in op.attributes}
    forward_ids = {
        op.attributes[Names.ID]
        for op in result.after.walk()
        if Names.ID in op.attributes and Names.COPY not in op.attributes
    }
    assert forward_ids < originals
    context, before = make_context(), len(names_in(result.after))
    DeadCodeElimination().apply(context, result.after)
    assert len(names_in(result.after)) == before


def test_mindspore_25_parameters_and_constants_are_shared() -> None:
    module = net("layers")
    after = cloned(module, "segment*")
    arguments = {argument for op in after.ops for argument in op.regions[0].block.args}
    delayed = {value for depend in depends_in(after) for value in depend.values}
    read = {operand for op in after.walk() if Names.COPY in op.attributes for operand in op.operands}
    # A weight is read behind the token, as the same argument; a constant where it is, and neither has a copy.
    assert delayed & arguments and not read & arguments
    assert "constant" not in copies_in(after)
    assert len(arguments) == len({argument for op in module.ops for argument in op.regions[0].block.args})
    check_equal(module, after)


RANDOM = (
    "  %s2, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : "
    '(tensor<2xui64>) -> (tensor<2xui64>, tensor<256xui32>) loc("jit(f)/jvp(cell)/rng")'
)


def test_mindspore_32_several_results_are_copied_together() -> None:
    module = step(
        RANDOM,
        forward("r", "convert %bits", "cell", types="(tensor<256xui32>) -> tensor<256xf32>"),
        forward("q", "convert %s2", "cell", types="(tensor<2xui64>) -> tensor<2xf32>"),
        forward("a", "multiply %x, %r", "cell"),
        forward("b", "tanh %a", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %r", "cell"),
        backward("j", "negate %q", "cell", types="tensor<2xf32>"),
        arguments="%x: tensor<256xf32>, %ct: tensor<256xf32>, %state: tensor<2xui64>",
        returns="%d, %h, %j",
        types="tensor<256xf32>, tensor<256xf32>, tensor<2xf32>",
    )
    after = cloned(module, "cell")
    (copy,) = copies_of(after, "rng_bit_generator")
    assert all(result.first_use is not None for result in copy.results)
    assert sorted(copies_in(after)) == ["convert", "convert", "rng_bit_generator"]
    check_equal(module, after)


BODY = """func.func private @body(%p: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %a = stablehlo.sine %p : tensor<256xf32> loc("sin")
  %b = stablehlo.tanh %a : tensor<256xf32> loc("tanh")
  func.return %b, %a : tensor<256xf32>, tensor<256xf32>
}"""


def call(results: str, argument: str) -> str:
    return (
        f"  {results} = func.call @body({argument}) : (tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) "
        'loc("jit(f)/jvp(cell)/jit(body)")'
    )


def test_mindspore_37_a_body_called_twice_is_two_regions() -> None:
    module = step(
        call("%b0, %a0", "%x"),
        call("%b, %a", "%b0"),
        *BEHIND,
        backward("h", "multiply %g, %a", "cell"),
        backward("k", "multiply %h, %b0", "cell"),
        backward("i", "multiply %k, %a0", "cell"),
        returns="%d, %i",
        functions=BODY,
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "sine"]
    assert regions_of_copies(after) == ["cell#1", "cell"]
    first, second = tokens_in(after)
    assert [gate.name_hint for gate in (*first.gates, *second.gates)] == ["g", "k"]
    check_equal(module, after)


def test_mindspore_38_skip_connection_keeps_regions_separate() -> None:
    """Regions stay separate if block 1 and block 2 both read the result of block 0."""
    module = step(
        forward("a0", "sine %x", "block0"),
        forward("b0", "tanh %a0", "block0"),
        forward("a1", "sine %b0", "block1"),
        forward("b1", "tanh %a1", "block1"),
        forward("a2", "add %b1, %b0", "block2"),
        forward("c2", "sine %a2", "block2"),
        forward("b", "tanh %c2", "block2"),
        *BEHIND,
        backward("h2", "multiply %g, %c2", "block2"),
        backward("i2", "multiply %h2, %b1", "block2"),
        backward("h1", "multiply %i2, %a1", "block1"),
        backward("h0", "multiply %h1, %a0", "block0"),
        backward("i0", "multiply %h0, %b0", "block0"),
        returns="%d, %i0",
    )
    after = cloned(module, "block*")
    assert regions_of_copies(after) == ["block2", "block1", "block0"]
    assert sorted(copies_in(after)) == ["add", "sine", "sine", "sine"]
    assert [[gate.name_hint for gate in token.gates] for token in tokens_in(after)] == [["g"], ["i2"], ["h1"]]
    assert {Names.CHECKPOINT in maker(after, kept).attributes for kept in ("b0", "b1")} == {True}
    check_equal(module, after)


def test_mindspore_18_cse_never_merges_copy_with_original() -> None:
    for lowered in (cloned(chain(EXPONENTIALS, 10)), recomputed(chain(EXPONENTIALS, 10)).after):
        before = copies_in(lowered)
        for _ in range(3):
            for cleanup in (CommonSubexpressionElimination(), CanonicalizePass(), DeadCodeElimination()):
                cleanup.apply(make_context(), lowered)
        assert copies_in(lowered) == before and len(before) == 27
        verify(lowered)
