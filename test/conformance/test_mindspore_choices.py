"""Options and reports: collectives, nested and repeated marks, views, strict mode, steps next to forward functions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step.marks import is_copy
from recompute.analysis.step.order import functions_of
from recompute.dialects.names import Names
from recompute.driver.inspection.explain_function import explain
from recompute.mlir_io.printer import print_module
from recompute.options.selection import Selection
from recompute.rewriting.mark import mark
from recompute.support.operations import name_of
from recompute.test.conformance.programs import (
    BEHIND,
    T,
    backward,
    by_hand,
    chain,
    check_equal,
    chosen,
    classified,
    copies_in,
    copies_of,
    forward,
    maker,
    peak,
    regions_of_copies,
    step,
    tokens_in,
    undelayed,
)
from recompute.tools.recompute_opt import main
from recompute.transforms.clone import clone

LAYERS = ["exponential", "sqrt", "exponential", "tanh"]


def all_reduce(result: str, operand: str, handle: int) -> str:
    return f"""  {result} = "stablehlo.all_reduce"({operand}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = {handle}, type = 1>, use_global_device_ids}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) : ({T}) -> {T} loc("jit(f)/jvp(cell)/psum")"""


def collective() -> ModuleOp:
    return step(
        forward("a", "sine %x", "cell"),
        all_reduce("%n", "%a", 1),
        forward("e", "exponential %n", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %n", "cell"),
        backward("j", "multiply %i, %a", "cell"),
        returns="%d, %j",
    )


def test_mindspore_33_collective_is_kept_unless_enabled() -> None:
    module = collective()
    off, on = (by_hand(module, Selection("cell", collectives=switch)) for switch in (False, True))
    assert off.copies == ["sine", "exponential"]
    assert Names.ID not in maker(off.after, "n").attributes
    assert on.copies == ["sine", "all_reduce", "exponential"]
    # MindSpore gives the copy a fusion id of its own; here it has a channel of its own, and the original keeps its.
    channels = [
        re.findall(r"handle = (\d+)", str(op)) for op in on.after.walk() if name_of(op) == "stablehlo.all_reduce"
    ]
    assert channels == [["1"], ["2"]]


def test_mindspore_33_mark_on_collective_is_rejected_with_reason() -> None:
    module = collective()
    mark(module, Selection("cell", collectives=True))
    messages = [remark.reason for remark in clone(module).remarks]
    reason = "it is a collective, and recomputation of collectives is disabled"
    assert f"stablehlo.all_reduce is not recomputed: {reason}" in messages
    assert copies_in(module) == ["sine", "exponential"]


def test_mindspore_33_driver_proves_recomputed_collective(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(print_module(collective(), debuginfo=True))
    passes = "recompute-mark{segments=cell collectives=true},recompute-clone{collectives=true},recompute-cse"
    assert main([str(source), "-p", passes]) == 0
    assert capsys.readouterr().out.count("stablehlo.all_reduce") == 2


def test_mindspore_36_inner_boundaries_hold_when_marked_twice() -> None:
    """Repeated marks are accepted. In MindSpore a cell can be configured once; a second call is ignored or an error."""
    scopes = {"a": "outer", "e": "outer/inner", "f": "outer/inner", "k": "outer", "b": "outer"}
    texts = ("sine %x", "exponential %a", "cosine %e", "sine %f", "tanh %k")
    module = step(
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
    once, twice = module.clone(), module.clone()
    for selection in ("outer", "auto"):
        mark(twice, Selection(selection))
    mark(once, Selection("outer"))
    assert print_module(twice, debuginfo=True) == print_module(once, debuginfo=True)
    result = by_hand(module, Selection("outer"))
    assert regions_of_copies(result.after) == ["outer", "outer/inner"]
    assert {Names.CHECKPOINT in maker(result.after, kept).attributes for kept in "afb"} == {True}
    check_equal(module, result.after)


def test_mindspore_36_marking_is_idempotent() -> None:
    once = chain(LAYERS, 4)
    mark(once, Selection())
    twice = once.clone()
    mark(twice, Selection())
    assert print_module(twice, debuginfo=True) == print_module(once, debuginfo=True)


def test_mindspore_40_a_report_for_each_region() -> None:
    module = chain(LAYERS, 3)
    rows = explain(functions_of(module)[0], classified(module)).segments
    assert [row.segment for row in rows] == ["block0", "block1", "block2"]
    assert [(row.copies, row.tokens, row.gates) for row in rows[:2]] == [(3, 1, 1)] * 2
    assert [(row.saved_bytes, row.freed_bytes) for row in rows[:2]] == [(4096, 3072)] * 2
    assert rows[0].extra_flops >= 3 * 256 and rows[0].reason is None
    assert rows[2].reason and rows[2].reason.startswith("the backward pass begins with these values")


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("recompute{segments=block2 strict=true}", "nothing is recomputed: the step is left as it is (strict)"),
        ("recompute{checkpoints=v0x0 strict=true}", "nothing is recomputed: the step is left as it is (strict)"),
    ],
)
def test_mindspore_40_strict_turns_no_effect_into_error(
    passes: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "step.mlir"
    source.write_text(print_module(chain(LAYERS, 3), debuginfo=True))
    assert main([str(source), "-p", passes]) == 1
    assert message in capsys.readouterr().err
    assert main([str(source), "-p", passes.replace("strict=true", "")]) == 0
    assert main([str(source), "-p", "recompute{strict=true}"]) == 0


def test_mindspore_40_strict_names_the_mark_without_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "step.mlir"
    module = step(forward("a", "sine %x", marks="recompute.recompute = true"), *BEHIND_A, returns="%d, %g")
    source.write_text(print_module(module, debuginfo=True))
    assert main([str(source), "-p", "recompute-clone{strict=true}"]) == 1
    assert "error: the marked operation is not recomputed: no gradient operation reads any of the values (strict)" in (
        capsys.readouterr().err
    )


BEHIND_A = (forward("d", "exponential %a", "next"), backward("g", "multiply %ct, %d", "next"))
M = "tensor<16x16xf32>"


def silu_times(mark_of_the_view: str) -> ModuleOp:
    """Return silu, an unmarked view, and a product; the gradient reads all three."""
    marked = "recompute.recompute = true"
    return step(
        forward("l", "logistic %x", "cell", marks=marked),
        forward("a", "multiply %x, %l", "cell", marks=marked),
        forward("v", "reshape %a", "cell", marks=mark_of_the_view, types=f"({T}) -> {M}"),
        forward("m", "multiply %v, %y", "cell", marks=marked, types=M),
        forward("b", "tanh %m", "cell", types=M),
        forward("c", "cosine %b", "next", types=M),
        forward("d", "exponential %c", "next", types=M),
        backward("q", "multiply %ct, %d", "next", types=M),
        backward("g", "multiply %q, %c", "next", types=M),
        backward("h", "multiply %g, %m", "cell", types=M),
        backward("i", "multiply %h, %v", "cell", types=M),
        backward("j", "reshape %i", "cell", types=f"({M}) -> {T}"),
        backward("k", "multiply %j, %l", "cell"),
        arguments=f"%x: {T}, %ct: {M}, %y: {M}",
        returns="%d, %k",
        types=f"{M}, {T}",
    )


def test_mindspore_42_unmarked_view_keeps_the_saving() -> None:
    """An unmarked view is recomputed too. In MindSpore, an unmarked Reshape makes the marks useless, as it
    documents."""
    module = silu_times("")
    after = chosen(module, Selection(checkpoints=())).after
    assert copies_in(after) == ["logistic", "multiply", "reshape", "multiply"]
    assert peak(after) < peak(module)
    check_equal(module, after)
    # Unless it is marked to be kept: then it is saved.
    kept = silu_times("recompute.recompute = false")
    assert "reshape" not in copies_in(by_hand(kept, Selection("cell")).after)


def test_mindspore_43_forward_only_function_is_unchanged() -> None:
    module = chain(LAYERS, 4)
    (function,) = functions_of(module)
    evaluation = step(forward("a", "sine %x", "block0"), forward("b", "tanh %a", "block0"), returns="%b")
    other = functions_of(evaluation)[0].clone()
    other.properties["sym_name"] = type(other.sym_name)("evaluation")
    module.body.block.add_op(other)
    before = [op.name for op in other.walk()]
    result = chosen(module, Selection())
    first, second = functions_of(result.after)
    assert first.sym_name == function.sym_name and any(is_copy(op) for op in first.walk())
    assert [op.name for op in second.walk()] == before and not any(is_copy(op) for op in second.walk())


def test_mindspore_13_manual_mark_on_last_cell_has_no_empty_gate() -> None:
    """The value is saved with a remark; MindSpore gates its copy on an empty tuple, so that it may run at once."""
    module = step(
        forward("e", "exponential %x", "cell", marks="recompute.recompute = true"),
        forward("y", "cosine %e", "cell"),
        backward("d", "sine %e", "cell"),
        backward("n", "multiply %ct, %d", "cell"),
        returns="%y, %n",
    )
    result = by_hand(module, Selection("cell"))
    assert result.copies == [] and tokens_in(result.after) == []
    assert result.has_remark("the backward pass begins with these values, so recomputing them would free nothing")


def test_mindspore_31_unseeded_random_is_saved_seeded_is_copied() -> None:
    """Unseeded numbers are saved; with MindSpore's UniformReal about 2000 of 4000 differ between value and gradient."""
    seeded = step(
        "  %s2, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : "
        '(tensor<2xui64>) -> (tensor<2xui64>, tensor<4000xui32>) loc("jit(f)/jvp(cell)/rng")',
        forward("r", "convert %bits", "cell", types="(tensor<4000xui32>) -> tensor<4000xf32>"),
        forward("a", "multiply %x, %r", "cell", types="tensor<4000xf32>"),
        forward("b", "tanh %a", "cell", types="tensor<4000xf32>"),
        forward("d", "exponential %b", "next", types="tensor<4000xf32>"),
        backward("g", "multiply %ct, %d", "next", types="tensor<4000xf32>"),
        backward("h", "multiply %g, %r", "cell", types="tensor<4000xf32>"),
        arguments="%x: tensor<4000xf32>, %ct: tensor<4000xf32>, %state: tensor<2xui64>",
        returns="%d, %h",
        types="tensor<4000xf32>, tensor<4000xf32>",
    )
    after = by_hand(seeded, Selection("cell")).after
    (copy,) = copies_of(after, "rng_bit_generator")
    assert undelayed(copy.operands[0]) is classified(after).order.block.args[2]
    check_equal(seeded, after)
