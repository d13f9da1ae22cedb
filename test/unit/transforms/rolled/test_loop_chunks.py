"""Pairs of loops save carries in place of stacks, or stay unchanged with a reason."""

from __future__ import annotations

import pytest

from recompute.dialects.context import make_context
from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import AUTO, Selection
from recompute.proof.prove import prove
from recompute.search.local_choices.recompute_loops import recompute_loops
from recompute.test.unit.transforms.rolled.test_binomial import INPUTS, STEP

TEXT = STEP.format(n=30, last=29)
BACKWARD = '} loc("jit(step)/transpose(jvp())/while")\n  func.return'
SAME_DIRECTION = TEXT.replace("%at = stablehlo.subtract %last, %j", "%at = stablehlo.add %j, %o").replace(
    "}\n  func.return", BACKWARD
)


def loop_remarks(text: str, loops: str, selection: Selection = AUTO) -> str:
    """Return the remarks on the loops; the result is proved and computes the same."""
    before = parse_module(text, "step.mlir", make_context())
    before.verify()
    after = before.clone()
    rolled = recompute_loops(after, selection, loops)
    after.verify()
    proof = prove(before, after)
    assert proof, proof.reason
    assert compare(before, after, INPUTS).equal
    return "\n".join(str(remark) for remark in rolled.remarks)


@pytest.mark.parametrize("text", [TEXT, SAME_DIRECTION], ids=["reversed", "in the same direction"])
@pytest.mark.parametrize("every", [1, 4, 5, 30, 99])
def test_loops_keep_carries_in_chunks(text: str, every: int) -> None:
    message = loop_remarks(text, f"periodic({every})")
    if every in (4, 5):
        assert f"saves its carries every {every} iterations" in message
    else:
        assert "but its stacks need only 600" in message, message


def test_slots_need_a_loop_that_reads_in_reverse() -> None:
    assert "slots require that the later loop reads the slices in reverse order" in loop_remarks(
        SAME_DIRECTION, "binomial(4)"
    )


def test_loops_of_different_lengths_are_unchanged() -> None:
    head, tail = TEXT.split("%m, %g =")
    fewer = head + "%m, %g =" + tail.replace("dense<30>", "dense<20>")
    assert "runs 30 times, but the loop that reads its stacks runs 20 times" in loop_remarks(fewer, "periodic(5)")


def test_loop_that_reads_in_another_order_is_unchanged() -> None:
    """A loop that reads every slice one position further, with the first one clamped, is unchanged."""
    other = TEXT.replace("dense<29>", "dense<28>")
    assert "saves its carries" not in loop_remarks(other, "periodic(5)")


def test_saved_values_are_not_recomputed() -> None:
    kept = TEXT.replace(
        "%next = stablehlo.sine %p : tensor<5xf32>",
        "%next0 = stablehlo.sine %p {recompute.recompute = false} : tensor<5xf32>\n"
        "    %next = stablehlo.negate %next0 : tensor<5xf32>",
    )
    assert "stablehlo.sine, and stablehlo.sine must not be recomputed" in loop_remarks(kept, "periodic(5)")
