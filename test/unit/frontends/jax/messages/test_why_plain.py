"""The message on an unchanged step gives the most important remark as the reason, and a remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from recompute.support.remarks import Remark, Topic

pytest.importorskip("jax", reason="the frontend for JAX")

from recompute.analysis.step.module_steps import ForwardOverReverse, NoGradient
from recompute.frontends.jax.messages.why_plain import (
    PlainReason,
    checkpointed,
    nothing_recomputed,
    plain_is_smaller,
    reason_in_model,
    refused,
)


def remark(reason: str, topic: Topic = Topic.OTHER) -> Remark:
    return Remark(ModuleOp([]), reason, topic=topic)


@pytest.mark.parametrize(
    ("topic", "remedy"),
    [
        (Topic.OTHER, "name the model's blocks"),
        (Topic.STEP_LEFT, "name the model's blocks"),
        (Topic.LOOP_LEFT, "name the model's blocks"),
        (Topic.LOOP_STACKS_SMALLEST, "checkpoint the carries of the loop"),
        (Topic.LOOP_COLLECTIVES, "allow them with recompute.jax.jit(step, collectives=True)"),
        (Topic.LOOP_NOT_COUNTED, "write the loop as jax.lax.scan"),
        (Topic.LOOPS_NOT_PROVED, "report this step"),
        (Topic.COLLECTIVES, "allow them with recompute.jax.jit(step, collectives=True)"),
        (Topic.COLLECTIVES_UNEQUAL, "take the collectives out of the branch"),
    ],
)
def test_remedy_follows_from_the_topic(topic: Topic, remedy: str) -> None:
    plain_reason = nothing_recomputed("step", [remark("reason", topic)])
    assert str(plain_reason).startswith(f"step: the plain step runs: reason; {remedy}")
    assert plain_reason.remedy.startswith(remedy)
    assert plain_is_smaller("step", 1, 2, [remark("reason", topic)]).remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("remarks", "reason"),
    [
        ([remark("loop", Topic.LOOP_LEFT), remark("collective", Topic.COLLECTIVES), remark("last")], "loop"),
        ([remark("proof", Topic.LOOPS_NOT_PROVED), remark("loop", Topic.LOOP_LEFT), remark("last")], "proof"),
        ([remark("collective", Topic.COLLECTIVES), remark("last")], "collective"),
        ([remark("first"), remark("last"), remark("none", Topic.NOTHING_RECOMPUTED)], "last"),
        ([remark("why"), remark("attempt", Topic.CHOICE)], "why"),
        ([remark("none", Topic.NOTHING_RECOMPUTED)], "none"),
        ([], "there is nothing to recompute"),
    ],
)
def test_reason_is_the_most_important_remark(remarks: list[Remark], reason: str) -> None:
    assert str(nothing_recomputed("step", remarks)).startswith(f"step: the plain step runs: {reason}; ")


def test_larger_rewritten_step_states_the_failed_proof() -> None:
    remarks = [remark("proof", Topic.LOOPS_NOT_PROVED), remark("a reduction of less than 1 %", Topic.STEP_LEFT)]
    message = str(plain_is_smaller("step", 1, 2, remarks))
    assert "(proof)" in message and "a reduction of less than 1 %" not in message


def test_segment_that_frees_nothing_gets_more_than_a_hint_on_names() -> None:
    skipped = replace(remark("segment 'segment1' is not recomputed: nothing reads it"), frees_nothing=True)
    plain_reason = nothing_recomputed("step", [skipped])
    assert plain_reason.remedy.startswith("in a model of one layer nothing can be freed: name the blocks")
    assert plain_reason.reason.startswith("segment 'segment1' is not")


@pytest.mark.parametrize(
    ("segments", "named"), [(("segment1",), "train.py:41"), (("segment1", "segment2"), "segment1"), ((), "segment1")]
)
def test_single_numbered_segment_is_named_by_its_line(segments: tuple[str, ...], named: str) -> None:
    op = ModuleOp([])
    op.location = FileLineColLoc(StringAttr("/home/user/train.py"), IntAttr(41), IntAttr(9))
    reason = reason_in_model(Remark(op, "segment 'segment1' is not recomputed", segments=segments))
    assert reason == f"segment '{named}' is not recomputed"


def test_message_names_the_checkpoint_of_the_step() -> None:
    plain_reason = checkpointed("step", selects_segments=True)
    assert plain_reason.reason.startswith("its own jax.checkpoint already recomputes")
    assert "leave out segments=" in plain_reason.remedy
    assert "segments=" not in str(checkpointed("step", selects_segments=False))


def test_message_consists_of_the_reason_and_the_remedy() -> None:
    assert str(PlainReason("step", "reason", "remedy")) == "step: the plain step runs: reason; remedy"
    assert str(PlainReason("step", "reason", "")) == "step: the plain step runs: reason"
    assert str(PlainReason("", "the step is plain", "remedy")) == "the step is plain; remedy"


def test_reason_and_remedy_are_reworded() -> None:
    assert PlainReason("step", "reason", "remedy").reworded(str.upper) == PlainReason("step", "REASON", "REMEDY")


def test_class_of_refusal_determines_the_remedy() -> None:
    assert refused("step", NoGradient(ModuleOp([]), "none")).remedy.startswith("take the gradient inside")
    assert "take the derivative in reverse mode" in str(refused("step", ForwardOverReverse(ModuleOp([]))))
    assert str(refused("step", ValueError("why"))) == "step: the plain step runs: why"


def test_remedy_at_the_end_of_an_error_is_the_remedy_of_the_step() -> None:
    plain_reason = refused("step", ValueError("a; b; do this"))
    assert (plain_reason.reason, plain_reason.remedy) == ("a; b", "do this")
    assert str(plain_reason) == "step: the plain step runs: a; b; do this"
