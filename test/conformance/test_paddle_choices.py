"""Selection by the user: nested segments, chains to keep, segments to skip or split, offload; and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr

from recompute.analysis.step.marks import is_copy
from recompute.analysis.step.order import Order, functions_of
from recompute.analysis.step.residuals import residuals
from recompute.dialects.names import Names
from recompute.driver.inspection.explain_function import explain
from recompute.mlir_io.printer import print_module
from recompute.options.selection import Selection
from recompute.rewriting.mark import mark
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of
from recompute.test.conformance.layers import mlp
from recompute.test.conformance.programs import (
    BEHIND,
    T,
    backward,
    by_hand,
    chain,
    check_equal,
    classified,
    forward,
    maker,
    net,
    regions_of_copies,
    step,
    tokens_in,
)
from recompute.tools.recompute_opt import main

LAYERS = ["exponential", "sqrt", "exponential", "tanh"]


def nested() -> ModuleOp:
    """Return a step whose outer segment contains an inner one; each operation states its innermost segment."""
    scopes = {"a": "outer", "e": "outer/inner", "f": "outer/inner", "k": "outer", "b": "outer"}
    texts = ("sine %x", "exponential %a", "cosine %e", "sine %f", "tanh %k")
    return step(
        *(
            forward(name, text, scope, marks=f'recompute.segment = "{scope}"')
            for (name, scope), text in zip(scopes.items(), texts, strict=True)
        ),
        *BEHIND,
        backward("h", "multiply %g, %k", "outer"),
        backward("h2", "multiply %h, %f", "outer/inner"),
        backward("i", "multiply %h2, %e", "outer/inner"),
        backward("j", "multiply %i, %a", "outer"),
        returns="%d, %j",
    )


def test_paddle_36_nested_segments_each_have_their_own_gate() -> None:
    module = nested()
    result = by_hand(module, Selection())
    assert regions_of_copies(result.after) == ["outer", "outer/inner"]
    assert [[gate.name_hint for gate in token.gates] for token in tokens_in(result.after)] == [["g"], ["h2"]]
    # %f leaves the inner segment and %a the part of the outer one in front of it: both are kept.
    assert all(Names.CHECKPOINT in maker(result.after, kept).attributes for kept in "afb")
    assert result.copies == ["sine", "exponential"]
    check_equal(module, result.after)


@pytest.mark.parametrize(
    ("pattern", "copied"),
    [
        # Two products kept are as many bytes as two relus freed: then nothing is done.
        ("main:stablehlo.dot_general", ""),
        ("main:stablehlo.add; num:1", "r1 m2 s2 r2"),
        ("main:stablehlo.dot_general; num:1", "s1 r1 m2 s2 r2"),
        # Of a chain that is kept nothing in front of it is needed any more.
        ("pre:stablehlo.dot_general>stablehlo.add; main:stablehlo.maximum; suf:stablehlo.dot_general", "m2 s2 r2"),
        ("pre:stablehlo.tanh; main:stablehlo.dot_general", "m1 s1 r1 m2 s2 r2"),
    ],
)
def test_paddle_40_data_flow_patterns_keep_operations(pattern: str, copied: str) -> None:
    """Patterns keep operations in a segment of three layers, whose output is the third relu."""
    module = mlp(["layer0", *["segment"] * 3, "tail"])
    for index in (1, 2, 3):
        for name in "msr":
            maker(module, f"{name}{index}").attributes[Names.SEGMENT] = StringAttr("segment")
    result = by_hand(module, Selection("segment", exclude=(pattern,)))
    assert [op.results[0].name_hint for op in result.after.walk() if is_copy(op)] == copied.split()
    assert result.has_remark("no memory would be freed") == (not copied)
    assert result.has_remark("matches no operations") == ("tanh" in pattern)


def test_paddle_40_operations_are_kept_by_attribute() -> None:
    module = chain(LAYERS, 3)
    maker(module, "v0x1").attributes[Names.RECOMPUTE] = BoolAttr.from_bool(False)
    after = by_hand(module, Selection()).after
    copied = [op.results[0].name_hint for op in after.walk() if is_copy(op)]
    assert copied == ["v1x0", "v1x1", "v1x2", "v0x0", "v0x2"]


def test_paddle_41_segments_are_left_out_by_number() -> None:
    module = chain(LAYERS, 5)
    result = by_hand(module, Selection(skip=(1, 3)))
    assert regions_of_copies(result.after) == ["block2", "block0"]
    assert result.has_remark("segments 'block1' and 'block3' are not recomputed: listed among the segments to skip")
    with pytest.raises(
        Refusal, match=r"there is no segment 5 to skip: the segments are 0 \(block0\) to 4 \(block4\), in this order"
    ):
        mark(chain(LAYERS, 5), Selection(skip=(5,)))


def test_paddle_44_copies_are_just_before_first_reader() -> None:
    """Only tokens, delays and copies are between a token and the first reader of its copies."""
    for module, segments in ((chain(LAYERS, 4), "auto"), (net("attention"), "auto"), (net("fleet"), "block*")):
        after = by_hand(module, Selection(segments)).after
        assert tokens_in(after)
        order = Order.of(classified(after).order.block)
        for token in tokens_in(after):
            behind = order.operations[order.position[token] :]
            first = next(op for op in behind if not is_copy(op) and not name_of(op).startswith("recompute."))
            assert Names.TARGET_GRAD in first.attributes


def offloading(mark: str) -> ModuleOp:
    return step(
        forward("a", "sine %x", "cell"),
        forward("e", "maximum %a, %x", "cell", marks=mark),
        forward("f", "cosine %e", "cell"),
        forward("b", "tanh %f", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %f", "cell"),
        # The gradient of what makes the offloaded value reads it too, as relu's does; Paddle's assertion fails there.
        backward("p", "compare GT, %e, %x", "cell", types=f"({T}, {T}) -> tensor<256xi1>"),
        backward("i", "select %p, %h, %x", "cell", types=f"tensor<256xi1>, {T}"),
        backward("j", "multiply %i, %a", "cell"),
        returns="%d, %j",
    )


def test_paddle_45_offload_is_a_mark_that_keeps_the_value() -> None:
    """The value is marked for a later offload pass, and the operations after it are recomputed from it."""
    module = offloading('recompute.recompute = "offload"')
    result = by_hand(module, Selection("cell"))
    assert result.copies == ["sine", "cosine"]
    attributes = maker(result.after, "e").attributes
    assert attributes[Names.RECOMPUTE] == StringAttr("offload") and Names.CHECKPOINT in attributes
    check_equal(module, result.after)


def test_paddle_45_policy_marks_offloadable_values() -> None:
    module = offloading("")
    selection = Selection("cell", policy="save_and_offload_only_these_names", names=("maximum",))
    after = by_hand(module, selection).after
    marked = [op for op in after.walk() if op.attributes.get(Names.RECOMPUTE) == StringAttr("offload")]
    assert [op.results[0].name_hint for op in marked] == ["e"]


@pytest.mark.parametrize(
    ("segments", "copied"), [(2, ["block0..block1"]), (3, ["block2..block2", "block0..block1"]), (5, 4)]
)
def test_paddle_46_stages_are_split_into_segments(segments: int, copied: list[str] | int) -> None:
    """Five stages are split into segments; the last one is not recomputed, as in Paddle, with a remark."""
    result = by_hand(chain(LAYERS, 5), Selection(segment_count=segments))
    actual = regions_of_copies(result.after)
    assert len(actual) == segments - 1
    if isinstance(copied, list):
        assert [segment.partition("..")[0] for segment in actual] == [segment.partition("..")[0] for segment in copied]
    assert result.has_remark("is not recomputed: the backward pass begins with these values")


def test_paddle_46_more_segments_than_stages_is_an_error() -> None:
    """The error names the cause; Paddle fails with 'range() arg 3 must not be zero'."""
    with pytest.raises(Refusal, match=r"cannot divide 5 segments \(block0, .*, block4\) into 6 segments"):
        mark(chain(LAYERS, 5), Selection(segment_count=6))


def test_paddle_47_explain_counts_phases_and_saved_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "layers.mlir"
    source.write_text(print_module(mlp(), debuginfo=True))
    assert main([str(source), "-t", "explain{format=json checkpoints=r0,r2}"]) == 0
    (explained,) = json.loads(capsys.readouterr().out)
    assert explained["operations"] == {"forward": 12, "gradient": 16, "copies": 0, "tokens": 0, "update": 0}
    assert explained["residuals"] == 4 and explained["saved_bytes"] == 4 * 1024
    assert explained["crossing"] == ["%r0"]
    assert [(row["segment"], row["copies"], row["tokens"]) for row in explained["segments"]] == [
        ("segment0", 0, 0),
        ("segment1", 3, 1),
    ]
    assert explained["segments"][1]["extra_flops"] == 2 * 16**3 + 16**2 + 16**2
    reasons = {item["value"]: item["reason"] for item in explained["values"]}
    assert reasons["%r1"] is None and reasons.keys() == {"%r0", "%r1", "%r2", "%r3"}
    assert all("the selection saves it, as a checkpoint" in reasons[kept] for kept in ("%r0", "%r2"))
    assert "the function returns it" in reasons["%r3"]


def test_paddle_47_the_same_after_recomputing() -> None:
    after = by_hand(mlp(), Selection(checkpoints=("r0", "r2"))).after
    explained = explain(functions_of(after)[0], classified(after))
    counts = explained.operations
    # Nobody asks for the gradient of the input: it is gone.
    assert (counts.forward, counts.gradient, counts.copies, counts.tokens) == (12, 15, 3, 1)
    assert explained.residuals == 3


B16 = "tensor<256xbf16>"


def test_paddle_48_parameter_casts_are_recomputed_with_segment() -> None:
    """The casts of weights to bf16 are recomputed with their layer, although they precede it and are outside any
    scope."""
    module = step(
        *(forward(f"c{n}", f"convert %w{n}", types=f"({T}) -> {B16}") for n in range(3)),
        forward("x16", "convert %x", types=f"({T}) -> {B16}"),
        *(
            line
            for n, x in enumerate(("%x16", "%b0", "%b1"))
            for line in (
                forward(f"m{n}", f"multiply {x}, %c{n}", types=B16),
                forward(f"s{n}", f"sine %m{n}", types=B16),
                forward(f"b{n}", f"tanh %s{n}", types=B16),
            )
        ),
        *(
            line
            for n, g in ((2, "%ct"), (1, "%i2"), (0, "%i1"))
            for line in (
                backward(f"h{n}", f"multiply {g}, %b{n}", types=B16),
                backward(f"k{n}", f"multiply %h{n}, %m{n}", types=B16),
                backward(f"i{n}", f"multiply %k{n}, %c{n}", types=B16),
            )
        ),
        arguments=f"%x: {T}, %ct: {B16}, " + ", ".join(f"%w{n}: {T}" for n in range(3)),
        returns="%b2, %i0",
        types=f"{B16}, {B16}",
    )
    result = by_hand(module, Selection(checkpoints=("b0", "b1")))
    copied = [op.results[0].name_hint for op in result.after.walk() if is_copy(op)]
    assert copied == ["c1", "m1", "c0", "x16", "m0"]
    held = {residual.value.name_hint for residual in residuals(classified(result.after))}
    assert held == {"b0", "b1", "b2", "c2", "m2"}
    check_equal(module, result.after)


@pytest.mark.parametrize("size", [1, 7])
def test_paddle_46_stages_with_a_tensor_of_any_size(size: int) -> None:
    """Tensors of any size are accepted; Paddle's helper unpacks a tensor along its first dimension, and fails for two
    rows."""
    module = chain(LAYERS, 5, size=size)
    check_equal(module, by_hand(module, Selection(segment_count=2)).after)
