"""Segments, which are named scopes here: what is copied, what is saved, and what is left unchanged."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.request.segments import find_segments
from recompute.analysis.step.residuals import residuals
from recompute.dialects.names import Names
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.selection import Selection
from recompute.rewriting.mark import mark
from recompute.support.diagnostics import Refusal
from recompute.test.conformance.layers import mlp
from recompute.test.conformance.programs import (
    BEHIND,
    T,
    backward,
    chain,
    check_equal,
    classified,
    cloned,
    copies_in,
    copies_of,
    forward,
    maker,
    named,
    names_in,
    net,
    recomputed,
    regions_of_copies,
    same_bits,
    step,
)
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.verify import verify


def test_paddle_12_makes_three_copies_instead_of_seven() -> None:
    module = mlp()
    after = cloned(module, "segment*")
    assert copies_in(after) == ["dot_general", "add", "maximum"]
    assert [op.attributes[Names.ID] for op in after.walk() if Names.COPY in op.attributes] == [
        maker(after, name).attributes[Names.ID] for name in ("m1", "s1", "r1")
    ]
    check_equal(module, after)


def test_paddle_13_checkpoint_producer_is_not_copied() -> None:
    after = cloned(mlp(), "segment*")
    for kept in ("r0", "r2"):
        assert Names.ID not in maker(after, kept).attributes
    assert len(copies_of(after, "maximum")) == 1


def test_paddle_15_gradient_needing_no_value_recomputes_none() -> None:
    """The sums before the kept relus are not recomputed, since the bias gradient is the cotangent."""
    after = cloned(mlp(), "segment*")
    for sum_ in ("s0", "s2"):
        assert Names.ID not in maker(after, sum_).attributes
    read = {value.name_hint for value in (residual.value for residual in residuals(classified(after)))}
    assert not read & {"s0", "s1", "s2", "m0", "m1", "m2"}


def test_paddle_16_the_gradient_reads_saved_values_only() -> None:
    after = cloned(mlp(), "segment*")
    verify(after)
    held = {residual.value.name_hint for residual in residuals(classified(after))}
    assert held == {"r0", "r2", "r3"}
    reader = maker(after, "p1")
    reader.operands[0] = named(after, "r1")
    with pytest.raises(
        Refusal,
        match=r"compare reads the original stablehlo\.maximum instead of a copy"
        ", although it is marked for recomputation",
    ):
        verify(after)


def test_paddle_09_both_branches_are_recomputed() -> None:
    """Both branches are recomputed; Paddle reports 'Could not recompute op range' and saves the second branch."""
    result = recomputed(net("branches"), "*")
    assert sorted(regions_of_copies(result.after)) == ["left", "right"]
    assert result.copies.count("dot_general") == result.copies.count("tanh") == 2
    result.check_equal()


def test_paddle_11_a_segment_of_one_operation_is_recomputed() -> None:
    module = step(
        forward("e", "exponential %x", "cell"),
        forward("b", "tanh %e"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        returns="%d, %h",
    )
    marked = step(
        forward("e", "exponential %x", "cell", marks="recompute.recompute = true"),
        forward("b", "tanh %e"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        returns="%d, %h",
    )
    result = recomputed(module, "cell")
    assert result.copies == []
    assert any("segment 'cell' is not recomputed: every value is an output" in text for text in result.remarks)
    after = cloned(marked, "cell")
    assert copies_in(after) == ["exponential"]
    check_equal(marked, after)


def test_paddle_17_marks_survive_printing_and_parsing() -> None:
    module = net("layers")
    mark(module, Selection("segment*"))
    clone(module)
    cse(module)
    text = print_module(module, debuginfo=True)
    again = parse_module(text, "again.mlir")
    assert print_module(again, debuginfo=True) == text
    for first, other in zip(module.walk(), again.walk(), strict=True):
        marks = [{k: v for k, v in op.attributes.items() if k.startswith(Names.PREFIX)} for op in (first, other)]
        assert marks[0] == marks[1]
    verify(again)


def test_paddle_32_unused_gradients_get_no_copies() -> None:
    """There is no copy if only the gradient of the last weight is returned; Paddle emits all seven copies."""
    module = net("layers")
    result = recomputed(keep_results(module, (0, 9)), "segment*")
    assert result.copies == []
    assert recomputed(net("layers"), "segment*").copies != []


def keep_results(module: ModuleOp, requested: tuple[int, ...]) -> ModuleOp:
    """Return the same step with only some of its results."""
    function = function_named(module)
    terminator = function.body.block.last_op
    assert terminator is not None
    terminator.operands = [terminator.operands[index] for index in requested]
    function.update_function_type()
    if function.res_attrs is not None:
        function.res_attrs = None
    return module


def test_paddle_33_values_before_stopped_gradient_are_kept() -> None:
    module = step(
        forward("a0", "sine %x", "block0"),
        forward("e0", "exponential %a0", "block0"),
        forward("b0", "tanh %e0", "block0"),
        forward("a1", "sine %b0", "block1"),
        forward("e1", "exponential %a1", "block1"),
        forward("b", "tanh %e1", "block1"),
        *BEHIND,
        backward("h", "multiply %g, %e1", "block1"),
        backward("i", "multiply %h, %a1", "block1"),
        returns="%d, %i",
    )
    after = cloned(module, "block*")
    assert regions_of_copies(after) == ["block1"]
    result = recomputed(module, "block*")
    assert any("segment 'block0' is not recomputed: no gradient operation reads" in text for text in result.remarks)


def test_paddle_34_parameters_get_gradients_if_input_has_none() -> None:
    """All gradients are kept; Paddle's reentrant recompute loses 75 of 75 if every block is recomputed."""
    result = recomputed(net("fleet"), "block*")
    assert {"block0", "block1", "block2"} <= set(regions_of_copies(result.after))
    gradients = execute(function_named(result.after), random_inputs(function_named(result.before)))[1:]
    assert len(gradients) == 15
    assert all(bool(gradient.any()) for gradient in gradients)
    result.check_equal()


def test_paddle_35_several_results_some_without_gradient() -> None:
    module = step(
        forward("a", "sine %x", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("count", "convert %e", "cell", types=f"({T}) -> tensor<256xi32>"),
        forward("b", "tanh %e", "cell"),
        forward("twice", "add %count, %count", types="tensor<256xi32>"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %a", "cell"),
        returns="%d, %i, %twice",
        types=f"{T}, {T}, tensor<256xi32>",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "exponential"]
    assert {Names.CHECKPOINT in maker(after, output).attributes for output in ("count", "b")} == {True}
    check_equal(module, after)


def test_paddle_37_scope_entered_twice_is_two_segments() -> None:
    module = step(
        forward("a0", "sine %x", "cell"),
        forward("b0", "tanh %a0", "cell"),
        forward("m", "cosine %b0", "between"),
        forward("a1", "sine %m", "cell"),
        forward("b", "tanh %a1", "cell"),
        *BEHIND,
        backward("h1", "multiply %g, %a1", "cell"),
        backward("i1", "multiply %h1, %m", "cell"),
        backward("k", "multiply %i1, %b0", "between"),
        backward("h0", "multiply %k, %a0", "cell"),
        returns="%d, %h0",
    )
    assert set(find_segments(classified(module), "cell").values()) == {"cell", "cell#1"}
    after = cloned(module, "cell")
    # What stands between the two is in neither.
    assert regions_of_copies(after) == ["cell#1", "cell"]
    assert copies_in(after) == ["sine", "sine"]
    check_equal(module, after)


def test_paddle_49_the_last_segment_is_not_recomputed() -> None:
    """The last segment is not recomputed; with the loss as a checkpoint, Paddle makes 16 copies that are read at
    once."""
    result = recomputed(chain(["exponential", "sqrt", "exponential", "tanh"], 4), "block*")
    assert regions_of_copies(result.after) == ["block2", "block1", "block0"]
    assert any(
        "segment 'block3' is not recomputed: the backward pass begins with these values" in text
        for text in result.remarks
    )
    assert same_bits(*(_run(module) for module in (result.before, result.after)))
    assert names_in(result.after).count("tanh") == 4


def _run(module: ModuleOp) -> tuple[Array, ...]:
    function = function_named(module)
    return execute(function, random_inputs(function))
