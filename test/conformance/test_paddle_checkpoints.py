"""Checkpoints: the segments between them, ignored checkpoints with reasons, crossing values; also on Paddle's
fixture."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

from recompute.analysis.step.marks import is_copy
from recompute.analysis.step.order import functions_of
from recompute.dialects.names import Names
from recompute.driver.inspection.explain_function import explain
from recompute.mlir_io.printer import print_module
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.support.diagnostics import Refusal
from recompute.test.conformance.fixture import backward_operations, fixture
from recompute.test.conformance.programs import (
    T,
    backward,
    by_hand,
    chain,
    check_equal,
    chosen,
    classified,
    copies_of,
    forward,
    maker,
    named,
    step,
    tokens_in,
)
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.verify import verify

# Checkpoints, and the backward operations in Paddle's test of them.
EXPECTED: dict[tuple[str, ...], str] = {
    ("b1_out",): "mean_grad add_grad mul* add_grad mul_grad",
    ("mul_out", "b2_out"): "mean_grad add* add_grad add_grad mul_grad",
    ("mul_out", "b1_out"): "mean_grad add_grad add_grad mul_grad",
    ("x", "b2_out"): "mean_grad mul* add* add_grad add_grad mul_grad",
}


def with_checkpoints(module: ModuleOp, *checkpoints: str) -> ModuleOp:
    after = module.clone()
    mark(after, Selection(checkpoints=checkpoints))
    clone(after)
    cse(after)
    verify(after)
    assert prove(module, after).proved
    return after


@pytest.mark.parametrize("checkpoints", EXPECTED)
def test_paddle_01_segments_between_checkpoints(checkpoints: tuple[str, ...]) -> None:
    after = with_checkpoints(fixture("a", "b", "c"), *checkpoints)
    assert backward_operations(after) == EXPECTED[checkpoints].split()


LAYERS = ["exponential", "sqrt", "exponential", "tanh"]


def placed(module: ModuleOp) -> list[tuple[str, str | None]]:
    """Return the segment and name of each copy, in the order of the backward pass."""
    return [
        (segment.data, op.results[0].name_hint)
        for op in module.walk()
        if is_copy(op) and isinstance(segment := op.attributes[Names.SEGMENT], StringAttr)
    ]


def test_paddle_02_head_before_first_checkpoint_is_a_segment() -> None:
    module = chain(LAYERS, 4)
    after = with_checkpoints(module, "v0x3", "v1x3")
    assert placed(after) == [
        *(("segment1", f"v1x{index}") for index in range(3)),
        *(("segment0", f"v0x{index}") for index in range(3)),
    ]
    assert [[gate.name_hint for gate in token.gates] for token in tokens_in(after)] == [["g8"], ["g12"]]
    check_equal(module, after)


@pytest.mark.parametrize("forward_too", [False, True])
def test_paddle_03_tail_after_last_checkpoint_is_not_recomputed(forward_too: bool) -> None:
    module = chain(LAYERS, 4, forward_too=forward_too)
    after = with_checkpoints(module, "v0x3", "v1x3")
    assert {name[:2] for _, name in placed(after) if name} == {"v0", "v1"}
    tail = [maker(after, f"v{layer}x{index}") for layer in (2, 3) for index in range(4)]
    assert not any(Names.SEGMENT in op.attributes or Names.ID in op.attributes for op in tail)


def test_paddle_04_order_and_duplicates_do_not_matter() -> None:
    module = chain(LAYERS, 4, forward_too=True)
    lists = (("v0x3", "v2x3"), ("v2x3", "v0x3"), ("v0x3", "v2x3", "v0x3"))
    texts = {print_module(with_checkpoints(module, *names), debuginfo=True) for names in lists}
    assert len(texts) == 1


def test_paddle_05_one_checkpoint_makes_one_segment() -> None:
    after = with_checkpoints(chain(LAYERS, 4), "v1x3")
    assert {segment for segment, _ in placed(after)} == {"segment0"} and len(placed(after)) == 7


def test_paddle_05_checkpoint_at_first_result_recomputes_nothing() -> None:
    """A remark states why nothing is recomputed; Paddle is silent."""
    result = by_hand(chain(LAYERS, 4), Selection(checkpoints=("v0x0",)))
    assert result.copies == []
    assert result.has_remark("segment 'segment0' is not recomputed: marks, checkpoints or the policy demand")


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        ((), "no segments: no checkpoint cuts the forward pass"),
        (("v0x0",), "marks, checkpoints or the policy demand"),
    ],
)
def test_paddle_06_useless_checkpoints_leave_step_unchanged(checkpoints: tuple[str, ...], message: str) -> None:
    module = chain(LAYERS, 4)
    result = chosen(module, Selection(checkpoints=checkpoints))
    assert print_module(result.after, debuginfo=True) == print_module(module, debuginfo=True)
    assert any(message in remark for remark in result.remarks)
    assert result.remarks[-1] == "nothing is recomputed: the step is left as it is"


LINE = (
    forward("a", "sine %x"),
    forward("e", "exponential %a"),
    forward("b", "tanh %e"),
    '  %dead = stablehlo.cosine %x : tensor<256xf32> loc("jit(f)/jvp()/cos"("net.py":7:3))',
    forward("f", "cosine %b"),
    forward("d", "exponential %f"),
    backward("q", "multiply %ct, %d"),
    backward("g", "multiply %q, %f"),
    backward("h", "multiply %g, %e"),
    backward("i", "multiply %h, %a"),
)


def test_paddle_07_dead_checkpoint_is_reported_at_location() -> None:
    module = step(*LINE, returns="%d, %i")
    result = chosen(module, Selection(checkpoints=("b", "dead")))
    assert "net.py:7:3: remark: checkpoint 'dead' is ignored: no result of the step needs it" in map(
        str, result.recomputation.remarks
    )
    assert result.copies == ["sine", "exponential"]
    result.check_equal()


INNER = """  %zero = stablehlo.constant dense<0> : tensor<i32> loc("jit(f)")
  %three = stablehlo.constant dense<3> : tensor<i32> loc("jit(f)")
  %w:2 = stablehlo.while(%k = %zero, %v = %a) : tensor<i32>, tensor<256xf32>
    cond {
      %p = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %inner = stablehlo.sine %v : tensor<256xf32>
      stablehlo.return %three, %inner : tensor<i32>, tensor<256xf32>
    } loc("jit(f)/jvp()/while")"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x", "it is an argument of the function"),
        ("h", "it is computed in the backward pass"),
        ("inner", "it is defined inside a region; name a result of the operation that contains the region"),
    ],
)
def test_paddle_08_invalid_checkpoint_is_reported_with_reason(name: str, why: str) -> None:
    """The other checkpoint stays effective; in Paddle a label or parameter as a checkpoint removes a segment."""
    module = step(LINE[0], INNER, forward("e", "exponential %w#1"), LINE[2], *LINE[4:], returns="%d, %i")
    result = by_hand(module, Selection(checkpoints=("b", name)))
    assert result.has_remark(f"checkpoint '{name}' is ignored: {why}")
    assert result.copies == ["sine", "while", "exponential"]


def test_paddle_08_unknown_checkpoint_error_suggests_nearest_name() -> None:
    with pytest.raises(Refusal, match=r"checkpoint 'v1y3' names no operation .* did you mean '%?v1x3'\?"):
        mark(chain(LAYERS, 4), Selection(checkpoints=("v1y3",)))


def test_paddle_09_both_branches_by_checkpoints() -> None:
    """Both branches are recomputed; Paddle reports 'Could not recompute op range [15] - [15]' and saves the second
    branch."""
    branches = [
        forward(f"{name}{index}", f"{text} {previous}")
        for name in "lr"
        for index, (text, previous) in enumerate(
            [("sine", "%x"), ("exponential", f"%{name}0"), ("tanh", f"%{name}1"), ("cosine", f"%{name}2")]
        )
    ]
    module = step(
        *branches,
        forward("s", "add %l3, %r3"),
        forward("d", "exponential %s"),
        backward("g", "multiply %ct, %d"),
        *(
            backward(f"{name}g{index}", f"multiply {cotangent}, %{name}{index}")
            for name in "rl"
            for index, cotangent in ((2, "%g"), (1, f"%{name}g2"), (0, f"%{name}g1"))
        ),
        backward("sum", "add %lg0, %rg0"),
        returns="%d, %sum",
    )
    after = with_checkpoints(module, "l3", "r3")
    assert placed(after) == [
        *(("segment1", f"r{index}") for index in range(3)),
        *(("segment0", f"l{index}") for index in range(3)),
    ]
    check_equal(module, after)


def test_paddle_10_value_crossing_segment_is_saved_and_reported() -> None:
    module = step(
        forward("a", "sine %x"),
        forward("s", "exponential %a"),
        forward("b0", "tanh %s"),
        forward("c", "sine %b0"),
        forward("e", "exponential %c"),
        forward("m", "add %e, %s"),
        forward("b1", "tanh %m"),
        forward("d", "exponential %b1"),
        backward("g", "multiply %ct, %d"),
        backward("h", "multiply %g, %c"),
        backward("k", "multiply %h, %e"),
        backward("i", "multiply %k, %s"),
        backward("j", "multiply %i, %a"),
        returns="%d, %j",
    )
    selection = Selection(checkpoints=("b0", "b1"))
    result = by_hand(module, selection)
    assert result.copies == ["sine", "exponential", "sine"]
    assert result.has_remark(
        "stablehlo.exponential of segment 'segment0' is saved: it is not a checkpoint, but operations of another"
    )
    assert Names.CHECKPOINT in maker(result.after, "s").attributes
    explained = explain(functions_of(module)[0], classified(module), selection)
    assert [(value.value, value.crosses) for value in explained.values if value.crosses] == [("%s", ("segment1",))]
    check_equal(module, result.after)


def test_paddle_14_checkpoint_is_not_recomputed() -> None:
    """A checkpoint is not recomputed; Paddle's copy of dropout computes its checkpoint again."""
    module = step(
        "  %s2, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : "
        '(tensor<2xui64>) -> (tensor<2xui64>, tensor<256xui32>) loc("jit(f)/jvp()/rng")',
        forward("r", "convert %bits", types="(tensor<256xui32>) -> tensor<256xf32>"),
        forward("a", "multiply %x, %r"),
        forward("b", "tanh %a"),
        forward("d", "exponential %b"),
        backward("g", "multiply %ct, %d"),
        backward("h", "convert %bits", types="(tensor<256xui32>) -> tensor<256xf32>"),
        backward("i", "multiply %g, %h"),
        backward("j", "multiply %i, %a"),
        backward("q", "convert %s2", types="(tensor<2xui64>) -> tensor<2xf32>"),
        arguments=f"%x: {T}, %ct: {T}, %state: tensor<2xui64>",
        returns="%d, %j, %q",
        types=f"{T}, {T}, tensor<2xf32>",
    )
    after = with_checkpoints(module, "bits", "b")
    (copy,) = copies_of(after, "rng_bit_generator")
    assert copy.results[1].first_use is None and copy.results[0].first_use is not None
    assert maker(after, "h").operands[0] is named(after, "bits")
    verify(after)
    check_equal(module, after)
