"""The table of modules, and the names of modules and segments in the details of a report."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.frontends.jax.reports.report_remarks import place_of_segment
from recompute.support.remarks import Remark
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, jax, jnp, mlp, weights


def test_report_without_named_modules_has_no_table_of_modules():
    report = recompute.jax.jit(_nameless_step).report(weights(), batch())
    assert [row.module for row in report.modules] == ["outside modules"]
    text = str(report)
    assert "outside modules" not in text and "no table of modules: no stored value belongs to a named module" in text
    (row,) = report.modules
    assert f" of values before fusion, {format_bytes(row.saved_bytes)} after it\n" in text


def _nameless_step(w: Any, x: Any) -> Any:
    def loss(w: Any) -> Any:
        y = x
        for layer in w:
            y = y + jnp.tanh(jnp.sin(y @ layer["up"])) @ layer["down"]
        return jnp.mean(y**2)

    return jax.value_and_grad(loss)(w)


def test_rows_of_the_table_of_modules_add_up():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(7), batch())
    text = str(report)
    sums = [sum(getattr(row, column) for row in report.modules) for column in ("plain_bytes", "saved_bytes")]
    recomputed = sum(row.recomputed_bytes for row in report.modules)
    (total,) = re.findall(r"^total +(\S+ \S+) +(\S+ \S+) +(\S+ \S+)$", text, re.MULTILINE)
    assert total == tuple(map(format_bytes, (*sums, recomputed)))
    assert f"of values before fusion, {total[1]} after it, as in the table" in text
    assert "values are live only while the backward pass reads them; saved bytes exclude them" in report.details()


def test_a_message_on_the_whole_step_names_no_line():
    """The first line of the model is unrelated to a budget that the step exceeds."""
    with pytest.raises(recompute.Refusal, match=r"^jit_step: error: no plan is within the budget"):
        recompute.jax.jit(mlp().step, budget="1%")(weights(), batch())


def test_details_name_modules_of_the_model():
    report = recompute.jax.jit(mlp().step, checkpoints=("block1/*",)).report(weights(4), batch())
    text = report.details()
    assert dict(report.copies_by_module) and set(dict(report.copies_by_module)) <= {
        f"block{number}" for number in range(4)
    }
    assert re.search(r"^stored after fusion +saved, plain +saved now +recomputed$", text, re.MULTILINE)
    charts = text[text.index("alive at the peak") :].split("\n\n")[0]
    assert "block0" in charts and not re.search(r"segment\d|outside segments", charts)
    remarks = (
        Remark(
            ModuleOp([]),
            "segments 'segment10', 'segment9' and 'segment1' are not recomputed: a reason",
            segments=("segment10", "segment9", "segment1"),
        ),
        Remark(ModuleOp([]), "segment 'while/body/block1' is kept: a reason", segments=("while/body/block1",)),
    )
    segments = (("segment1", ("block0", "block1")), ("segment4", ("block2",)))
    lines = replace(report, remarks=remarks, model=replace(report.model, segments=segments)).details().splitlines()
    assert lines[-2:] == ["  'segment1': part of block0 and block1", "  'segment9', 'segment10': after block2"]
    assert lines[-3].endswith("segment 'block1' is kept: a reason")


def test_report_locates_segments_that_are_not_recomputed():
    modules = {2: ("a", "b"), 4: ("b",), 6: ("c",)}
    assert [place_of_segment(number, modules) for number in (0, 2, 3, 5, 7)] == [
        "before a",
        "part of a and b",
        "part of b",
        "between b and c",
        "after c",
    ]
