"""What `.report()` and `.explain()` say is measured."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from typing import Any

import pytest

import recompute
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.steps import batch, forward, jax, mlp, weights


def test_report():
    step = recompute.jax.jit(mlp().step, segments="block*")
    text = str(step.report(weights(), batch()))
    lowered = step.lower(weights(), batch())
    both: list[Any] = [lowered.plain.compile(), lowered.compile()]
    sizes = [one.memory_analysis().temp_size_in_bytes for one in both]
    flops = [one.cost_analysis()["flops"] for one in both]
    (found,) = re.findall(r"^temporaries +(\S+ \S+) +(\S+ \S+) +(\S+)$", text, re.MULTILINE)
    assert found == (*map(format_bytes, sizes), f"{sizes[1] / sizes[0]:.3f}")
    (found,) = re.findall(r"^FLOPs +(\S+) +(\S+) +(\S+)$", text, re.MULTILINE)
    assert found == (*(f"{one:.3g}" for one in flops), f"{flops[1] / flops[0]:.3f}")
    assert lowered.rewritten is not None
    (count, listed) = re.findall(r"^computed again: (\d+) operations: (.*)$", text, re.MULTILINE)[0]
    assert int(count) == lowered.rewritten.copies == sum(int(one.split()[1]) for one in listed.split(", "))
    assert all(str(remark) in text for remark in lowered.remarks)


def test_the_first_line_is_the_verdict():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(), batch())
    first, empty, *_ = str(report).splitlines()
    sizes, flops = (report.plain.temporaries, report.less.temporaries), (report.plain.flops, report.less.flops)
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
    assert first in report._repr_html_().replace("&gt;", ">")  # pyright: ignore[reportPrivateUsage]
    unproved = recompute.jax.jit(mlp().step, proof=False).report(weights(), batch())
    assert str(unproved).splitlines()[0].endswith(", not proved")
    plain = recompute.jax.jit(forward()).report(weights(), batch())
    assert str(plain).splitlines()[0].endswith("of temporaries, nothing recomputed")


def test_a_step_shows_what_it_was_made_for():
    step = recompute.jax.jit(mlp().step)
    assert repr(step) == "<recompute.jax.jit(step), lowered for no calls>"
    step.lower(weights(), batch())
    assert repr(step) == "<recompute.jax.jit(step), lowered for 1 call>"


def test_report_of_many_segments():
    text = str(recompute.jax.jit(mlp().step, segments="block*").report(weights(10), batch()))
    assert re.search(r"block\d \d+, and 2 more$", text, re.MULTILINE)


def test_report_without_a_gradient():
    text = str(recompute.jax.jit(forward()).report(weights(), batch()))
    assert "computes no gradient" in text and "no gradient found" in text and text.count("1.000") == 3


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


def test_what_a_report_shows():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(), batch())
    text = str(report)
    assert report.plain.device_bytes is not None and report.plain.temporaries is not None
    arguments = sum(leaf.nbytes for leaf in jax.tree.leaves((weights(), batch())))
    assert report.plain.arguments == arguments
    assert report.plain.device_bytes == report.plain.temporaries + arguments + report.plain.results
    assert "kept for the backward pass: 48.0 KiB" in text and "it is an output of its segment" in text
    assert [name for name, _ in report.timelines] == ["plain", "recomputed"]
    assert text.count("alive at the peak") == 2 and "backward" in text
    page = report._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert page.startswith("<pre>step") and "<svg" in page and "&lt;" not in page.split("</pre>")[1][:5]


def test_a_page_without_pictures(monkeypatch: pytest.MonkeyPatch):
    report = recompute.jax.jit(mlp().step).report(weights(), batch())

    def missing(*_: object) -> str:
        raise ImportError("matplotlib")

    monkeypatch.setattr("recompute.frontends.jax.report_text.to_svg", missing)
    assert "<svg" not in report._repr_html_()  # pyright: ignore[reportPrivateUsage] and "temporaries" in report._repr_html_()


@pytest.mark.parametrize("wrap", [lambda step: step, jax.jit, recompute.jax.jit])
def test_explain_any_step(wrap: Any):
    said = recompute.jax.explain(wrap(mlp().step), weights(), batch(), budget="500 KiB")
    needs = [one.device_bytes for one in (said.plain, said.less)]
    assert needs[0] is not None and needs[1] is not None and needs[1] <= 500 * 1024 < needs[0]
    assert re.search(r"^fits in 500.0 KiB +no +yes$", str(said), re.MULTILINE)
    assert "fits in" not in str(recompute.jax.explain(wrap(mlp().step), weights(), batch()))


def test_explain_says_what_did_nothing():
    step = recompute.jax.jit(mlp().step, segments="block*", save=["nobody"])
    said = str(recompute.jax.explain(step, weights(), batch()))
    assert "save=nobody matches no operation of a segment, and saves nothing" in said


def test_explain_a_step_with_static_arguments():
    jitted = jax.jit(lambda count, w, x: mlp().step(w[:count], x), static_argnums=0)
    assert recompute.jax.explain(jitted, 2, weights(), batch()).copies > 0


def test_long_rewrites_say_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("recompute.frontends.jax.progress.SECONDS", 0.01)
    recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert re.fullmatch(r"(recompute.jax: rewriting step: \d+ s so far\n)+", capsys.readouterr().err)
