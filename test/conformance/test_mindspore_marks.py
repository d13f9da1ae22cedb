"""Selection of recomputed operations: marks, segments and their outputs, misuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import BoolAttr

from recompute.dialects.discardable import verify_attributes
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of
from recompute.test.conformance.programs import (
    BEHIND,
    backward,
    check_equal,
    classified,
    cloned,
    copies_in,
    forward,
    maker,
    named,
    net,
    owner_of,
    recomputed,
    regions_of_copies,
    step,
)
from recompute.tools.recompute_opt import main

CELL = (forward("a", "sine %x", "cell"), forward("e", "exponential %a", "cell"), forward("b", "tanh %e", "cell"))
GRADIENTS = (backward("h", "multiply %g, %e", "cell"), backward("i", "multiply %h, %a", "cell"))


@pytest.mark.parametrize("mark", ["true", "false"])
def test_mindspore_01_a_mark_is_printed_read_and_checked(mark: str) -> None:
    module = step(
        forward("a", "sine %x", marks=f"recompute.recompute = {mark}"),
        forward("b", "tanh %a"),
        backward("g", "multiply %ct, %b"),
        backward("h", "multiply %g, %a"),
        returns="%b, %h",
    )
    module.verify()
    verify_attributes(module.walk())
    again = parse_module(print_module(module, debuginfo=True))
    assert maker(again, "a").attributes[Names.RECOMPUTE] == BoolAttr.from_bool(mark == "true")
    assert copies_in(recomputed(module).after) == (["sine"] if mark == "true" else [])


def test_mindspore_01_non_boolean_mark_is_an_error_at_location() -> None:
    module = step(
        forward("a", "sine %x", marks="recompute.recompute = 3 : i64"),
        backward("h", "multiply %ct, %a"),
        returns="%a, %h",
    )
    with pytest.raises(Refusal, match=r"mlir:\d+:\d+: error: attribute 'recompute.recompute' must be true"):
        verify_attributes(module.walk())


def test_mindspore_02_region_includes_nested_scopes() -> None:
    module = step(
        forward("a", "sine %x", "cell"),
        forward("e", "exponential %a", "cell/inner"),
        forward("f", "cosine %e", "cell/inner/innermost"),
        forward("b", "tanh %f", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %f", "cell/inner"),
        backward("i", "multiply %h, %e", "cell/inner"),
        backward("j", "multiply %i, %a", "cell"),
        returns="%d, %j",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "exponential", "cosine"]
    assert regions_of_copies(after) == ["cell"]
    check_equal(module, after)


def test_mindspore_03_a_mark_to_keep_splits_the_region() -> None:
    kept = forward("e", "exponential %a", "cell", marks="recompute.recompute = false")
    module = step(
        CELL[0],
        kept,
        forward("f", "cosine %e", "cell"),
        forward("b", "tanh %f", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %f", "cell"),
        backward("i", "multiply %h, %a", "cell"),
        returns="%d, %i",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine", "cosine"]
    # The stored value is what the second piece starts from.
    (second,) = [op for op in after.walk() if Names.COPY in op.attributes and name_of(op) == "stablehlo.cosine"]
    delay = owner_of(second.operands[0])
    assert name_of(delay) == "recompute.depend"
    assert named(after, "e") in delay.operands
    check_equal(module, after)


def test_mindspore_04_all_outputs_are_kept_across_barriers() -> None:
    module = step(
        forward("a", "sine %x", "cell"),
        forward("b", "tanh %a", "cell"),
        forward("c", "cosine %a", "cell"),
        forward("v", "optimization_barrier %c"),
        forward("w", "negate %v", "next"),
        forward("q", "add %b, %w", "next"),
        forward("d", "exponential %q", "next"),
        backward("g", "multiply %ct, %d", "next"),
        backward("h", "multiply %g, %a", "cell"),
        backward("i", "multiply %h, %b", "cell"),
        backward("j", "multiply %i, %c", "cell"),
        returns="%d, %j",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["sine"]
    assert all(Names.CHECKPOINT in maker(after, output).attributes for output in "bc")
    check_equal(module, after)


def test_mindspore_06_output_only_region_is_kept_with_remark() -> None:
    before = net("conv_relu")
    result = recomputed(before, "cell")
    assert result.copies == []
    assert any("segment 'cell' is not recomputed: every value is an output" in text for text in result.remarks)
    assert print_module(result.after, debuginfo=True) == print_module(before, debuginfo=True)


STEP = """func.func @f(%x: tensor<8xf32>, %ct: tensor<8xf32>) -> tensor<8xf32> {
  %a = stablehlo.sine %x : tensor<8xf32> loc("jit(f)/jvp(cell)/sin")
  %h = stablehlo.multiply %ct, %a : tensor<8xf32> loc("jit(f)/transpose(jvp(cell))/mul")
  func.return %h : tensor<8xf32>
}
"""


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        ("recompute{segment=cell}", 2, "segments"),
        ("recompute{segments=nowhere}", 1, "the scopes are: cell"),
        ("recompute{target=gpu}", 1, "expected one of stablehlo, none"),
    ],
)
def test_mindspore_41_misuse_error_names_valid_choices(
    request_: str, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(STEP)
    assert main([str(source), "-p", request_]) == code
    captured = capsys.readouterr()
    assert message in captured.err and "error:" in captured.err
    assert captured.out == "" and "Traceback" not in captured.err


def test_mindspore_43_missing_gradient_is_an_error_without_changes() -> None:
    module = step(forward("a", "sine %x", "cell"), forward("b", "tanh %a", "cell"), returns="%b")
    before = print_module(module, debuginfo=True)
    with pytest.raises(Refusal, match="no gradient found"):
        rewrite_in_place(module)
    assert print_module(module, debuginfo=True) == before
    assert copies_in(module) == []


def test_mindspore_44_an_expensive_operation_is_kept() -> None:
    module = net("attention")
    classes = classified(module)
    for op in classes.order.operations:
        if name_of(op) == "stablehlo.dot_general" and classes.is_forward(op):
            op.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(False)
    free, kept = recomputed(net("attention")), recomputed(module)
    assert free.copies.count("dot_general") == 9
    assert kept.copies.count("dot_general") == 0
    assert kept.copies.count("exponential") == free.copies.count("exponential") == 9
    assert kept.saving < 0.6
