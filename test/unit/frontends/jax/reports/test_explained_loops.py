"""`explain` and `report` of steps with loops: layers, microbatches and time steps by `lax.scan`, without scopes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import recompute
from recompute.reports.explain import _wrap_table
from recompute.support.remarks import Remark
from recompute.test.unit.frontends.jax.steps import jax

jnp: Any = jax.numpy
LAYERS, WIDTH = 6, 64
LINE = re.compile(r"test_explained_loops\.py:\d+")


def layers_step(blocks: Any, x: Any) -> Any:
    def loss(blocks: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda x, block: (x + jnp.tanh(jnp.sin(x @ block)), None), x, blocks)[0])

    return jax.grad(loss)(blocks)


def unrolled_loss(blocks: Any, x: Any) -> Any:
    for block in blocks:
        x = jax.nn.gelu(x @ block)
    return jnp.mean(x**2)


def micro_step(blocks: Any, batches: Any) -> Any:
    def add(total: Any, x: Any) -> tuple[Any, None]:
        value, gradient = jax.value_and_grad(unrolled_loss)(blocks, x)
        return jax.tree.map(jnp.add, total, gradient), value

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, blocks), batches)


def time_step(weight: Any, inputs: Any) -> Any:
    def loss(weight: Any) -> Any:
        def cell(state: Any, x: Any) -> tuple[Any, Any]:
            state = jnp.tanh(jnp.sin(state @ weight) + x) * jnp.cos(state)
            return state, state

        return jnp.mean(jax.lax.scan(cell, jnp.zeros_like(inputs[0]), inputs)[1] ** 2)

    return jax.grad(loss)(weight)


BLOCKS = jnp.ones((LAYERS, WIDTH, WIDTH)) * 0.01
STEPS: dict[str, tuple[Any, Any]] = {
    "layers": (layers_step, (BLOCKS, jnp.ones((128, WIDTH)))),
    "microbatches": (micro_step, (list(BLOCKS), jnp.ones((4, 128, WIDTH)))),
    "time": (time_step, (BLOCKS[0], jnp.ones((20, 16, WIDTH)))),
}


@pytest.mark.parametrize("name", STEPS)
def test_summaries_name_places_in_the_model(name: str) -> None:
    """Files have their base names, rows fit their columns, and segments have no names of loops or numbers."""
    step, arguments = STEPS[name]
    text = str(recompute.jax.jit(step).explain(*arguments))
    assert all(len(line) <= 100 for line in text.splitlines()), text
    assert "/test_explained_loops" not in text and LINE.search(text), text
    assert not re.search(r"segment\d|while|closed_call|body", text), text
    heads = [line for line in text.splitlines() if line.endswith("decision")]
    rows = [line for line in text.splitlines() if re.match(r"  (?:test_)?\S+:\d+", line)]
    assert heads and rows and any(row.endswith("  recompute") for row in rows), text
    assert "program order" not in text, "a peak that no executor of JAX has"


def test_explain_and_report_describe_the_same_decision() -> None:
    """The only named segment is the body of the loop, which would free nothing; the rewrite divides it."""
    step, arguments = STEPS["microbatches"]
    jitted = recompute.jax.jit(step)
    (explained,), report = jitted.explain(*arguments), jitted.report(*arguments)
    assert report.copies > 0 and report.loops.executed_flops is not None
    recomputed = [row for row in explained.segments if row.reason is None]
    assert sum(row.copies for row in recomputed) == report.copies and report.why is None
    plain, less = report.loops.executed_flops
    share = sum(row.extra_flops for row in recomputed) / explained.step_flops
    assert share == pytest.approx(less / plain - 1, rel=0.05)
    assert f"{len(recomputed)} of {len(explained.segments)} segments are worth recomputing" in " ".join(
        str(jitted.explain(*arguments)).split()
    )


def test_a_step_that_the_choice_leaves_unchanged_is_explained_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from recompute.driver.inspection import explain_function

    def blocks(weights: Any, x: Any) -> Any:
        for number, weight in enumerate(weights):
            with jax.named_scope(f"block{number}"):
                x = jnp.tanh(jnp.sin(x @ weight))
        return jnp.sum(x)

    step, arguments = jax.grad(blocks), (BLOCKS, jnp.ones((128, WIDTH)))
    (explained,) = recompute.jax.jit(step).explain(*arguments)
    assert any(row.reason is None for row in explained.segments)
    choose = explain_function.choose_for
    monkeypatch.setattr(explain_function, "choose_for", lambda *given: replace(choose(*given), refused="a veto"))
    explanations = recompute.jax.jit(step).explain(*arguments)
    assert {row.reason for row in explanations[0].segments} >= {"a veto"}
    assert "no segment is worth recomputing" in " ".join(str(explanations).split())


def test_reports_name_lines_in_place_of_numbered_segments() -> None:
    step, arguments = STEPS["microbatches"]
    report = recompute.jax.jit(step).report(*arguments)
    assert (
        LINE.fullmatch(report.copies_by_module[0][0])
        and sum(count for _, count in report.copies_by_module) == report.copies
    )
    details = report.details()
    tables = details.partition(": remark: ")[0].rpartition("\n\n")[0]
    assert not re.search(r"segment\d|closed_call", tables), tables
    assert re.search(r"'segment\d': (after|before|at) test_explained_loops\.py:\d+", details)


def test_reasons_name_segments_by_their_place() -> None:
    from recompute.frontends.jax.messages.why_plain import nothing_recomputed

    blocks, (x, *_) = STEPS["microbatches"][1]
    step = recompute.jax.jit(jax.value_and_grad(unrolled_loss))
    remarks = [remark for remark in step.report(blocks, x).remarks if isinstance(remark, Remark)]
    numbered = [remark for remark in remarks if re.search(r"segment 'segment\d'", remark.reason)]
    message = str(nothing_recomputed("step", numbered[-1:]))
    assert re.match(r"step: the plain step runs: segment 'test_explained_loops\.py:\d+' is not recomputed: ", message)


def test_tables_fit_and_keep_the_end_of_long_names() -> None:
    rows = [("segment", "saved", "decision"), (f"LM/{'Block/' * 30}mlp", "1.0 KiB", "recompute")]
    rows.append(("head", "2.0 KiB", f"keep: {'a reason ' * 20}".strip()))
    lines = _wrap_table(rows)
    assert max(map(len, lines)) <= 100 and lines[1].endswith("Block/mlp  1.0 KiB  recompute"), lines
    assert lines[1].startswith("  …") and lines[3].startswith("    keep: a reason")
