"""What `.report()` and `.explain()` say is measured."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.barriers import DISABLED, DROPS_BARRIERS
from recompute.reports.bytes import human_bytes
from recompute.test.unit.frontends.steps import batch, forward, jax, mlp, weights


def test_report():
    step = recompute.jax.jit(mlp().step, segments="block*")
    text = step.report(weights(), batch())
    lowered = step.lower(weights(), batch())
    both: list[Any] = [lowered.plain.compile({DISABLED: DROPS_BARRIERS}), lowered.compile()]
    sizes = [one.memory_analysis().temp_size_in_bytes for one in both]
    flops = [one.cost_analysis()["flops"] for one in both]
    (found,) = re.findall(r"^temporaries +(\S+ \S+) +(\S+ \S+) +(\S+)$", text, re.MULTILINE)
    assert found == (*map(human_bytes, sizes), f"{sizes[1] / sizes[0]:.3f}")
    (found,) = re.findall(r"^FLOPs +(\S+) +(\S+) +(\S+)$", text, re.MULTILINE)
    assert found == (*(f"{one:.3g}" for one in flops), f"{flops[1] / flops[0]:.3f}")
    assert lowered.rewritten is not None
    (count, listed) = re.findall(r"^computed again: (\d+) operations: (.*)$", text, re.MULTILINE)[0]
    assert int(count) == lowered.rewritten.copies == sum(int(one.split()[1]) for one in listed.split(", "))
    assert all(str(remark) in text for remark in lowered.remarks)


def test_report_of_many_segments():
    text = recompute.jax.jit(mlp().step, segments="block*").report(weights(10), batch())
    assert re.search(r"block\d \d+, and 2 more$", text, re.MULTILINE)


def test_report_without_a_gradient():
    text = recompute.jax.jit(forward()).report(weights(), batch())
    assert "computes no gradient" in text and "no gradient found" in text and text.count("1.000") == 2


def test_explain():
    step = recompute.jax.jit(mlp().step, segments="block[01]")
    (found,) = step.explain(weights(), batch())
    (expected,) = recompute.explain(
        jax.jit(mlp().step).lower(weights(), batch()).as_text(debug_info=True),
        recompute.Selection(segments="block[01]"),
    )
    assert found.segments and found.saved_bytes == expected.saved_bytes
    assert [row.segment for row in found.segments] == [row.segment for row in expected.segments]
    assert {row.segment for row in found.segments if row.segment} == {"block0", "block1"}
    with pytest.raises(recompute.Refusal, match="no gradient found"):
        recompute.jax.jit(forward()).explain(weights(), batch())
