"""The contents of `.report()`: verdict, sizes, modules and timelines agree with measurements."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.compiler_options import merges_copies
from recompute.frontends.jax.compilation.variants import Variant
from recompute.reports.by_module import OUTSIDE, ModuleRow
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, forward, jax, jnp, mlp, weights


def test_report_agrees_with_measurements():
    step = recompute.jax.jit(mlp().step, segments="block*")
    text = step.report(weights(), batch()).details()
    lowered = step.lower(weights(), batch())
    both: list[Any] = [lowered.plain.compile(), lowered.compile()]
    sizes = [item.memory_analysis().temp_size_in_bytes for item in both]
    flops = [item.cost_analysis()["flops"] for item in both]
    (result,) = re.findall(r"^temporaries +(\S+ \S+) +(\S+ \S+) +(\S+)$", text, re.MULTILINE)
    assert result == (*map(format_bytes, sizes), f"{sizes[1] / sizes[0]:.3f}")
    (result,) = re.findall(r"^FLOPs +(\S+) +(\S+) +(\S+)$", text, re.MULTILINE)
    assert result == (*(f"{flop:.3g}" for flop in flops), f"{flops[1] / flops[0]:.3f}")
    assert lowered.rewritten is not None
    (count, listed) = re.findall(r"^recomputed: (\d+) operations: (.*)$", text, re.MULTILINE)[0]
    assert int(count) == lowered.rewritten.copies == sum(int(word.split()[1]) for word in listed.split(", "))
    assert all(str(remark) in text for remark in lowered.remarks)


def test_first_line_of_report_is_the_verdict():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(), batch())
    first, empty, *_ = str(report).splitlines()
    sizes, flops = (report.plain.temporaries, report.chosen.temporaries), (report.plain.flops, report.chosen.flops)
    assert None not in sizes and None not in flops
    before, after = (format_bytes(size or 0) for size in sizes)
    memory, work = ((after or 0) / (before or 1) - 1 for before, after in (sizes, flops))
    assert (
        first
        == f"step: {before} -> {after} of temporaries ({memory:+.0%}), {work:+.0%} FLOPs, proved equal".replace(
            "%", " %"
        )
    )
    assert empty == ""
    assert first in unescape(unescape(report._repr_html_()))  # pyright: ignore[reportPrivateUsage]
    unproved = recompute.jax.jit(mlp().step, proof=False).report(weights(), batch())
    assert str(unproved).splitlines()[0].endswith(", not proved")
    plain = recompute.jax.jit(forward()).report(weights(), batch())
    assert str(plain).splitlines()[0].endswith("of temporaries, nothing recomputed")


def test_first_line_names_the_checkpoint_of_the_step():
    block = jax.checkpoint(lambda x, w: x + jnp.tanh(jnp.sin(x @ w)))

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = block(x, w)
        return (x**2).mean()

    report = recompute.jax.jit(jax.value_and_grad(loss)).report([jnp.ones((32, 32)) / 10] * 4, jnp.ones((256, 32)))
    assert report.variant is Variant.KEEPING and report.why is not None
    before, after = report.plain.temporaries, report.chosen.temporaries
    assert before is not None and after is not None
    if not merges_copies(("cpu",)):
        assert before == after
        assert str(report).splitlines()[0] == (
            f"loss: {format_bytes(before)} of temporaries, recomputed only by its own jax.checkpoint"
        )
        return
    assert after < before
    first, _, titles, *_ = str(report).splitlines()
    assert first.startswith(f"loss: {format_bytes(before)} -> {format_bytes(after)} of temporaries (-")
    assert first.endswith(" % FLOPs, by its own jax.checkpoint")
    assert titles.split() == ["loss", "plain", "as", "it", "runs", "ratio"]


def test_repr_shows_function_and_lowering_count():
    step = recompute.jax.jit(mlp().step)
    assert repr(step) == "<recompute.jax.jit(step), lowered for no calls>"
    step.lower(weights(), batch())
    assert repr(step) == "<recompute.jax.jit(step), lowered for 1 call>"


def test_repr_shows_result_after_compilation():
    step = recompute.jax.jit(mlp().step)
    report = step.report(weights(), batch())
    less = f"{format_bytes(report.chosen.temporaries or 0)} of temporaries, {report.copies} operations are recomputed"
    assert repr(step) == f"<recompute.jax.jit(step), lowered for 1 call: {less}>"
    step.report(weights(), batch(2 * len(batch())))
    assert re.fullmatch(r"<.*, lowered for 2 calls: the last compiled one: \S+ \S+ of temporaries, .*>", repr(step))


def test_report_summarizes_many_segments():
    text = recompute.jax.jit(mlp().step, segments="block*").report(weights(10), batch()).details()
    assert re.search(r"block\d \d+, and 2 more$", text, re.MULTILINE)


def test_report_without_gradient_gives_the_reason():
    text = recompute.jax.jit(forward()).report(weights(), batch()).details()
    assert "computes no gradient" in text and "no gradient found" in text and text.count("1.000") >= 2


def test_report_shows_memory_and_reasons():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(), batch())
    text = report.details()
    assert report.plain.device_bytes is not None and report.plain.temporaries is not None
    arguments = sum(leaf.nbytes for leaf in jax.tree.leaves((weights(), batch())))
    assert report.plain.arguments == arguments
    assert report.plain.device_bytes == report.plain.temporaries + arguments + report.plain.results
    assert "kept for the backward pass: 48.0 KiB" in text and "it is an output of its segment" in text
    assert [name for name, _ in report.timelines] == ["plain", "recomputed"]
    assert text.count("alive at the peak") == 2 and "backward" in text


@pytest.mark.parametrize(("flops", "work"), [(999.0, "+0 %"), (1000.0, "+0 %"), (1001.0, "+0 %"), (989.0, "-1 %")])
def test_no_change_is_never_negative(flops: float, work: str):
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    report = replace(report, plain=replace(report.plain, flops=1000.0), chosen=replace(report.chosen, flops=flops))
    assert f", {work} FLOPs, proved equal" in str(report).splitlines()[0]


def test_summary_fits_in_25_lines(tmp_path: Path):
    """The summary has about 25 lines of 100 columns: a row per module, the values still saved with reasons, and the
    next step."""
    report = recompute.jax.jit(mlp().step).report(weights(10), batch())
    lines = str(report).splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 100
    assert [row.module for row in report.modules] == [*(f"block{number}" for number in range(10)), OUTSIDE]
    plain, saved, again = (sum(column) for column in zip(*(_bytes(row) for row in report.modules), strict=True))
    assert saved < 0.5 * plain and again > 0
    rows = [line for line in lines if re.match(r"(block\d|6 more) +\S+ KiB +\S+ K?i?B +\S+ KiB$", line)]
    assert len(rows) == 6 and rows[-1].startswith("6 more")
    assert any(
        re.match(r" +\S+ KiB  stablehlo.add in block0, .*, steps.py:\d+:\d+: recomputation starts", line)
        for line in lines
    )
    assert any(line.startswith('next: budget="min"') for line in lines) and "report.details()" in lines[-1]
    assert repr(report) == f"<recompute.jax.Report: {lines[0]}>"
    report.save(tmp_path / "step.html")
    page = (tmp_path / "step.html").read_text()
    assert "<!DOCTYPE html>" in page and "block9" in page and "<pre" not in page
    assert report._repr_html_().startswith("<iframe srcdoc=")  # pyright: ignore[reportPrivateUsage]


def _bytes(row: ModuleRow) -> tuple[int, int, int]:
    return row.plain_bytes, row.saved_bytes, row.recomputed_bytes


def test_the_column_of_a_plain_step_is_not_titled_recomputed():
    x = jnp.ones((64, 8))
    plain = recompute.jax.jit(jax.value_and_grad(lambda w: jnp.mean(jnp.sin(x @ w)))).report(jnp.ones((8, 8)))
    assert plain.variant is Variant.PLAIN
    for report, title in (
        (plain, "as it runs"),
        (recompute.jax.jit(mlp().step).report(weights(), batch()), "recomputed"),
    ):
        assert re.search(rf"^{report.name} +plain +{title} +ratio$", str(report), re.MULTILINE), str(report)


def test_verdict_states_a_small_change_on_the_device() -> None:
    """Arguments and results of this step are most of its bytes, which a saving of temporaries hides."""

    def loss(table: Any, x: Any) -> Any:
        for _ in range(6):
            x = x + jnp.tanh(jnp.sin(x))
        return jnp.mean(x**2) + jnp.sum(table[:1])

    report = recompute.jax.jit(jax.value_and_grad(loss, argnums=1)).report(jnp.ones((8192, 1024)), jnp.ones((256, 128)))
    plain, less = report.plain.device_bytes, report.chosen.device_bytes
    assert plain is not None and less is not None and less > 0.9 * plain
    assert re.search(r", but -\d % on the device, ", str(report).splitlines()[0])
    assert report.variant.name == "RECOMPUTED"
