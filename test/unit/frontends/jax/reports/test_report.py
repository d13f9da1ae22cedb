"""The contents of `.report()` and `.explain()` agree with measurements."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import recompute
from recompute.analysis.explain.saved_values import PLAIN_STEP
from recompute.frontends.jax.compilation.budgeted_result import CompiledCandidate
from recompute.frontends.jax.compilation.compiler_options import merges_copies
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.reports.fit_verdict import DeviceBytes, FitVerdict, fit_verdict
from recompute.frontends.jax.reports.report_remarks import place_of_segment
from recompute.reports.by_module import OUTSIDE, ModuleRow
from recompute.reports.explain import to_summary
from recompute.support.counted import counted
from recompute.support.remarks import Remark
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


def test_explain_states_how_sizes_and_flops_are_counted():
    text = str(recompute.jax.explain(mlp().step, weights(), batch(), budget="60MB"))
    assert "\na call runs: the plain step, just as jax.jit runs it\n" in text
    assert "\nsizes: as the compiler reports them; on the device: temporaries, arguments and results\n" in text
    assert "\nFLOPs: as the compiler counts them\n" in text
    text = str(recompute.jax.explain(mlp().step, weights(), batch(), budget="1%"))
    assert "\nwithout the budget, a call runs: the rewritten step; with the budget, a call raises an error\n" in text


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


def test_report_summarizes_many_segments():
    text = recompute.jax.jit(mlp().step, segments="block*").report(weights(10), batch()).details()
    assert re.search(r"block\d \d+, and 2 more$", text, re.MULTILINE)


def test_report_without_gradient_gives_the_reason():
    text = recompute.jax.jit(forward()).report(weights(), batch()).details()
    assert "computes no gradient" in text and "no gradient found" in text and text.count("1.000") >= 2


def test_explanation_agrees_with_the_module_rewrite():
    step = recompute.jax.jit(mlp().step, segments="block[01]")
    (result,) = step.explain(weights(), batch())
    (expected,) = recompute.explain(
        jax.jit(mlp().step).lower(weights(), batch()).as_text(debug_info=True),
        recompute.Selection(segments="block[01]"),
    )
    assert result.segments and result.saved_bytes == expected.saved_bytes
    assert [row.segment for row in result.segments] == [row.segment for row in expected.segments]
    assert {row.segment for row in result.segments if row.segment} == {"block0", "block1"}
    with pytest.raises(recompute.Refusal, match="loss computes no gradient"):
        recompute.jax.jit(forward()).explain(weights(), batch())


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


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("options", [{"budget": "1GiB"}, {"budget": 1.0}, {"segments": "none"}, {}])
def test_a_plain_step_keeps_all_its_residuals(options: dict[str, Any], details: bool):
    """The report on a plain step lists the values that it saves, not those that a rewrite would leave."""
    step = recompute.jax.jit(mlp().step, **options)
    if options:
        report = step.report(weights(), batch())
    else:
        report = recompute.jax.explain(step, weights(), batch(), budget="200MiB")
    assert report.variant is Variant.PLAIN
    (explanation,) = step.explain(weights(), batch())
    assert sum(value.bytes for value in report.kept) == explanation.saved_bytes
    text = report.details() if details else str(report)
    assert f"kept for the backward pass: {format_bytes(explanation.saved_bytes)} of values before fusion" in text
    assert (PLAIN_STEP in " ".join(text.split())) == (options != {"segments": "none"})


@pytest.mark.parametrize(
    "options",
    [
        {"segment_budgets": {"block*": "50%"}},
        {"segments": "block*", "budget": 0.6},
        {"segments": "block*", "policy": "dots_saveable"},
        {"segments": "block[01]"},
    ],
    ids=str,
)
def test_kept_values_are_those_that_the_rewritten_step_saves(options: dict[str, Any]):
    """A budget, a segment budget or a policy keeps values inside of recomputed segments, and the list contains them."""
    step = recompute.jax.jit(mlp().step, **options)
    report, rewritten = step.report(weights(), batch()), step.lower(weights(), batch()).rewritten
    assert report.variant is Variant.RECOMPUTED and rewritten is not None
    saved_bytes = sum(value.bytes for value in rewritten.still_saved())
    assert sum(value.bytes for value in report.kept) == saved_bytes
    assert f"kept for the backward pass: {format_bytes(saved_bytes)} of values before fusion" in str(report)


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


def test_options_without_effect_beside_a_checkpoint_are_explained():
    def loss(weights: Any, x: Any) -> Any:
        for number, w in enumerate(weights):
            with jax.named_scope(f"layer{number}"):
                x = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(x, w)
        return (x**2).mean()

    step = recompute.jax.jit(jax.value_and_grad(loss), segments="layer*")
    text = " ".join(str(step.report([jnp.ones((32, 32)) / 10] * 4, jnp.ones((256, 32)))).split())
    assert "why: its own jax.checkpoint already recomputes" in text
    assert "next: remove jax.checkpoint from the model" in text and "leave out segments=" in text


def test_summary_gives_the_reason_if_nothing_can_be_freed():
    step = jax.value_and_grad(lambda w, x: jnp.mean((x @ w) ** 2))
    arguments = jnp.ones((64, 8)), jnp.ones((8192, 64))
    text = " ".join(str(recompute.jax.jit(step).report(*arguments)).split())
    assert "why: segment" in text and "not recomputed: " in text and "gate" not in text
    with pytest.raises(recompute.Refusal, match=r"\(strict\); segment.* not recomputed: "):
        recompute.jax.jit(step, strict=True).report(*arguments)


def test_summary_of_a_step_without_saving_is_short():
    report = recompute.jax.jit(forward()).report(weights(), batch())
    assert str(report).splitlines()[-2] == "next: take the gradient inside: recompute.jax.jit(jax.value_and_grad(loss))"


def test_summary_lists_values_that_are_still_saved():
    lowered = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert lowered.rewritten is not None
    saved = lowered.rewritten.still_saved()
    starts = [value for value in saved if value.reason == "recomputation starts from it"]
    assert [value.type for value in starts] == ["f32[256,16]"] * len(starts) and starts
    assert {value.module for value in starts} <= {"block0", "block1", "block2"}
    assert [value.bytes for value in saved] == sorted((value.bytes for value in saved), reverse=True)


def test_explanation_has_a_summary():
    (explanation,) = result = recompute.jax.jit(mlp().step).explain(weights(12), batch())
    lines = str(result).splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 100
    worth = [row for row in explanation.segments if row.reason is None]
    assert explanation.measured_bytes is not None
    plain = f"step: {format_bytes(explanation.measured_bytes)} of temporaries"
    assert lines[0].startswith(f"{plain}; {len(worth)} of 12 segments are worth recomputing: they free ")
    assert "  and 4 more segments" in lines
    assert result.details().startswith("function @step")


def test_report_and_explain_agree_on_plain_bytes():
    """Both compile the plain step only once, in either order, and name the step as the user does."""
    step = recompute.jax.jit(mlp().step)
    explained = str(step.explain(weights(), batch())).splitlines()
    reported = step.report(weights(), batch())
    assert reported.plain.temporaries is not None
    size = format_bytes(reported.plain.temporaries)
    assert str(reported).startswith(f"step: {size} -> ") and explained[0].startswith(f"step: {size} of temporaries; ")
    assert f"  its peak of temporaries: {size} as compiled, as in reports; " in "\n".join(explained)
    assert str(step.explain(weights(), batch())).splitlines() == explained


def scanned(blocks: Any, x: Any) -> Any:
    def body(x: Any, block: Any) -> tuple[Any, None]:
        with jax.named_scope("Block"):
            with jax.named_scope("attention"):
                h = jnp.tanh(x @ block) * x
            with jax.named_scope("mlp"):
                return x + jnp.sin(h), None

    return jnp.sum(jax.lax.scan(body, x, blocks)[0])


def test_budget_between_reachable_sizes_of_a_loop_states_that_nothing_lies_between():
    """A nested loop has few schedules, so a step may need far less than its budget allows."""

    def inner(row: Any, x: Any) -> Any:
        return jax.lax.scan(lambda x, block: (x + jnp.tanh(jnp.sin(x @ block)) @ block.T, None), x, row)[0]

    def loss(blocks: Any, x: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda x, row: (inner(row, x), None), x, blocks)[0] ** 2)

    arguments = jnp.ones((4, 4, 32, 32)) * 0.01, jnp.ones((128, 32))
    report = recompute.jax.jit(jax.grad(loss), budget=0.5).report(*arguments)
    needs, plain = report.chosen.temporaries, report.plain.temporaries
    assert needs is not None and plain is not None and needs < 0.3 * plain
    gap = f"between {format_bytes(needs)} and the {format_bytes(plain // 2)} that the budget leaves for temporaries"
    text = " ".join(str(report).split())
    assert f"next: the search found no plan with less extra work that needs {gap}" in text
    assert f"of the compiled ones with less work, the next needs {format_bytes(plain)} (the plain step)" in text
    used = replace(report, search=replace(report.search, temporaries_limit=needs))
    assert "next: a larger budget requires less extra work" in str(used)


def test_the_column_of_a_plain_step_is_not_titled_recomputed():
    x = jnp.ones((64, 8))
    plain = recompute.jax.jit(jax.value_and_grad(lambda w: jnp.mean(jnp.sin(x @ w)))).report(jnp.ones((8, 8)))
    assert plain.variant is Variant.PLAIN
    for report, title in (
        (plain, "as it runs"),
        (recompute.jax.jit(mlp().step).report(weights(), batch()), "recomputed"),
    ):
        assert re.search(rf"^{report.name} +plain +{title} +ratio$", str(report), re.MULTILINE), str(report)


def test_flops_count_all_loop_iterations():
    """The compiler counts each loop body once, so that its ratio would say nothing on the work. The first line and the
    table have the same count."""
    report = recompute.jax.jit(jax.grad(lambda blocks, x: scanned(blocks, x))).report(
        jnp.ones((6, 32, 32)) * 0.01, jnp.ones((256, 32))
    )
    assert report.loops.executed_flops is not None
    plain, less = report.loops.executed_flops
    assert 5 * 2 * 256 * 32 * 32 < plain < less < 2 * plain
    first, *lines = str(report).splitlines()
    assert f"{less / plain - 1:+.0%} FLOPs".replace("%", " %") in first
    assert report.flops == (report.plain.flops, report.chosen.flops) == (plain, less)
    (row,) = [line.split() for line in lines if line.startswith("FLOPs  ")]
    assert row[1:] == [f"{plain:.3g}", f"{less:.3g}", f"{less / plain:.3f}"]
    assert "FLOPs: counted in the program, all iterations of loops included" in lines


def test_flops_are_those_of_the_compiler_if_only_random_bits_have_loops():
    """JAX draws random bits in a loop over integers, which the user did not write."""

    def loss(parameters: Any, x: Any) -> Any:
        for index, w in enumerate(parameters):
            kept = jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), index), 0.9, x.shape)
            x = x + jnp.where(kept, jnp.tanh(jnp.sin(x @ w["up"])) @ w["down"], 0)
        return jnp.mean(x**2)

    step = recompute.jax.jit(jax.value_and_grad(loss))
    assert "stablehlo.while" in step.lower(weights(), batch()).as_text()
    report = step.report(weights(), batch())
    assert report.loops.executed_flops is None and report.flops == (report.plain.flops, report.chosen.flops)
    assert "FLOPs:" not in str(report)


def test_flops_of_copies_in_a_loop_count_all_its_iterations():
    """Each microbatch recomputes the same share of its forward pass, however many there are."""

    def accumulate(blocks: Any, batches: Any) -> Any:
        def add(total: Any, x: Any) -> tuple[Any, None]:
            gradient = jax.grad(lambda blocks: jnp.sum(unrolled(blocks, x)))(blocks)
            return total + gradient, None

        return jax.lax.scan(add, jnp.zeros_like(blocks), batches)[0]

    def unrolled(blocks: Any, x: Any) -> Any:
        for block in blocks:
            x = jnp.tanh(jnp.sin(x @ block))
        return x

    shares = list[float]()
    for microbatches in (2, 8):
        report = recompute.jax.jit(accumulate).report(jnp.ones((6, 32, 32)) * 0.01, jnp.ones((microbatches, 256, 32)))
        assert report.loops.executed_flops is not None and report.copies > 0
        plain, less = report.loops.executed_flops
        shares.append(less / plain - 1)
    assert shares[0] == pytest.approx(shares[1], rel=0.01) and 0.1 < shares[0] < 0.5


@pytest.mark.parametrize(("outer", "module"), [("LM", "LM/Block"), ("", "Block")])
def test_stacks_of_a_loop_over_layers_are_attributed_to_the_modules_of_its_body(outer: str, module: str):
    """The gradient reads the input of each block, the cosine in `mlp`, and two values in `attention`."""

    def loss(blocks: Any, x: Any) -> Any:
        with jax.named_scope(outer) if outer else nullcontext():
            return scanned(blocks, x)

    report = recompute.jax.jit(jax.grad(loss)).report(jnp.ones((6, 32, 32)) * 0.01, jnp.ones((256, 32)))
    saved = {row.module: row.plain_bytes for row in report.modules}
    stack = 6 * 256 * 32 * 4
    assert list(saved) == [module, f"{module}/mlp", f"{module}/attention"]
    assert stack <= saved[module] < 1.5 * stack
    assert (saved[f"{module}/mlp"], saved[f"{module}/attention"]) == (stack, 2 * stack)
    assert "operations: \n" not in report.details()


LAYERS = 6


def accumulated(blocks: Any, batches: Any) -> Any:
    """Return the sum of the gradients of microbatches, each of a loop over layers."""

    def add(total: Any, x: Any) -> tuple[Any, None]:
        return total + jax.grad(named)(blocks, x), None

    def named(blocks: Any, x: Any) -> Any:
        with jax.named_scope("LM"):
            return scanned(blocks, x)

    return jax.lax.scan(add, jnp.zeros_like(blocks), batches)[0]


def test_copies_in_loops_are_counted():
    """The copies of all iterations are counted and named by module, although no segment contains them."""
    report = recompute.jax.jit(jax.grad(scanned)).report(jnp.ones((LAYERS, 32, 32)) * 0.01, jnp.ones((256, 32)))
    assert report.copies > 0 and report.loops.has_loops
    again = {row.module: row.recomputed_bytes for row in report.modules}
    attention = again["Block/attention"]
    assert attention >= LAYERS * 256 * 32 * 4 and attention % LAYERS == 0, again
    counts = dict(report.copies_by_module)
    assert counts["Block/attention"] > 0 and all(module.startswith("Block") for module in counts)
    text = " ".join(report.details().split())
    assert f"left after simplification: {' '.join(map(str, report.copies_by_module[0]))}" in text
    assert "FLOPs: counted in the program" in str(report)
    assert "FLOPs: counted" not in str(recompute.jax.jit(mlp().step).report(weights(), batch()))


def test_recomputed_loop_is_explained_once():
    def loss(blocks: Any, x: Any) -> Any:
        with jax.named_scope("trunk"):
            x = jax.lax.scan(lambda x, block: (x + jnp.sin(jnp.tanh(x @ block) * x), None), x, blocks)[0]
        with jax.named_scope("head"):
            return jnp.sum(jnp.sin(x))

    arguments = jnp.ones((LAYERS, 32, 32)) * 0.01, jnp.ones((256, 32))
    (explanation,) = recompute.jax.jit(jax.value_and_grad(loss)).explain(*arguments)
    (loop,) = (row for row in explanation.loops if row.reason is None)
    assert loop.trips == LAYERS and loop.extra_flops < explanation.step_flops
    products = 3 * 2 * 256 * 32 * 32  # of one layer: one product forward, two backward
    assert LAYERS * products <= explanation.step_flops <= 2 * LAYERS * products
    instead = f"the loop at {loop.position} is recomputed instead, iteration by iteration, as the table of loops shows"
    (segment,) = (row for row in explanation.segments if row.reason == instead)
    assert segment.saved_bytes >= loop.stack_bytes - loop.kept_bytes and segment.copies == segment.freed_bytes == 0
    text = to_summary(explanation)
    assert " segments, which save nothing" in text and not re.search(r"^  \S+ +0 B +0 B ", text, re.MULTILINE)
    share = f"{loop.extra_flops / explanation.step_flops:.1%}".replace("%", " %")
    first = " ".join(to_summary(explanation).split("\n\n")[0].split())
    saved = format_bytes(loop.stack_bytes - loop.kept_bytes)
    assert f"1 of {counted(len(explanation.loops), 'loop')} is worth recomputing: it frees {saved} of the " in first
    assert first.endswith(f"at {share} more FLOPs, over all iterations")


def test_segment_of_a_recomputed_loop_agrees_with_the_row_of_the_loop() -> None:
    """The backward pass begins with the loop, so that copies of the whole segment would free nothing."""

    def loss(weights: Any, x: Any) -> Any:
        def body(x: Any, w: Any) -> Any:
            return x + jnp.tanh(jnp.sin(x @ w[0])) @ w[1], None

        with jax.named_scope("model"):
            return jnp.mean(jax.lax.scan(body, x, weights)[0] ** 2)

    arguments = (jnp.ones((8, 32, 128)), jnp.ones((8, 128, 32))), jnp.ones((256, 32))
    (explanation,) = recompute.jax.jit(jax.value_and_grad(loss)).explain(*arguments)
    (loop,), (segment,) = explanation.loops, explanation.segments
    assert loop.reason is None
    assert (
        segment.reason
        == f"the loop at {loop.position} is recomputed instead, iteration by iteration, as the table of loops shows"
    )
    assert segment.copies == segment.freed_bytes == 0


def test_report_locates_a_step_inside_a_loop():
    arguments = jnp.ones((LAYERS, 32, 32)) * 0.01, jnp.ones((3, 64, 32))
    step = recompute.jax.jit(accumulated)
    report = step.report(*arguments)
    (place,) = report.loops.positions
    assert re.fullmatch(r"inside the loop at .*test_report.py:\d+:\d+", place)
    rows = {row.module: row for row in report.modules}
    block = rows["LM/Block/attention"]
    assert block.plain_bytes > block.saved_bytes and block.recomputed_bytes > 0
    names = [f"{form}, {place}" for form in ("plain", "recomputed")]
    assert [name for name, _ in report.timelines] == ["plain", "recomputed", *names]
    stages_of = [line for line in report.details().splitlines() if "└" in line]
    assert ["forward" in line for line in stages_of] == [False, False, True, True]
    assert re.search(
        r"^modules inside the loop at test_report.py:\d+:\d+, in one iteration:$",
        str(report),
        re.MULTILINE,
    )
    assert "while/body" not in report.details()
    text = str(step.explain(*arguments))
    assert text.split()[:5] == ["accumulated,", "inside", "the", "loop", "at"] and "while/body" not in text


def test_rows_of_the_table_of_modules_add_up():
    report = recompute.jax.jit(mlp().step, segments="block*").report(weights(7), batch())
    text = str(report)
    sums = [sum(getattr(row, column) for row in report.modules) for column in ("plain_bytes", "saved_bytes")]
    recomputed = sum(row.recomputed_bytes for row in report.modules)
    (total,) = re.findall(r"^total +(\S+ \S+) +(\S+ \S+) +(\S+ \S+)$", text, re.MULTILINE)
    assert total == tuple(map(format_bytes, (*sums, recomputed)))
    assert f"of values before fusion, {total[1]} after it, as in the table" in text
    assert "values are live only while the backward pass reads them; saved bytes exclude them" in report.details()


def test_reasons_explain_a_step_without_segments():
    report = recompute.jax.jit(mlp().step, segments="block0").report(weights(), batch())
    text = " ".join(str(report).split())
    assert "listed segments" not in text
    assert "it is outside every segment, and only values inside segments are recomputed" in text
    (explanation,) = recompute.jax.jit(forward_with_gradient, segments="none").explain(jnp.ones((8, 8)))
    assert {value.reason for value in explanation.values} == {
        "the step has no segments, the parts that are recomputed: name its parts as scopes"
    }


def forward_with_gradient(w: Any) -> Any:
    return jax.grad(lambda w: jnp.sum(jnp.sin(jnp.sin(w))))(w)


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


@pytest.mark.parametrize("wrap", [lambda step: step, jax.jit, recompute.jax.jit])
def test_explain_accepts_any_step(wrap: Any):
    message = recompute.jax.explain(wrap(mlp().step), weights(), batch(), budget="500 KiB")
    needs = [item.device_bytes for item in (message.plain, message.chosen)]
    assert needs[0] is not None and needs[1] is not None and needs[1] <= 500 * 1024 < needs[0]
    assert re.search(r"^fits in 500 KiB +no +yes$", str(message), re.MULTILINE)
    first, second, *_ = str(message).splitlines()
    sizes = [format_bytes(size or 0) for size in needs]
    assert first == f"fits: needs {sizes[1]} of 500.0 KiB on the device; the plain step needs {sizes[0]}"
    assert second.startswith("step: ") and repr(message) == f"<recompute.jax.Report: {first}>"
    assert message.fit is not None and message.fit.fits and escape(first) in unescape(message._repr_html_())  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("budget", [None, "device"])
def test_budget_of_a_device_without_limit_is_rejected(budget: str | None):
    report = recompute.jax.explain(mlp().step, weights(), batch(), budget=budget)
    unknown = "unknown: the device reports no memory limit; give a size such as budget='8GiB'"
    assert str(report).splitlines()[0] == unknown and report.fit is not None and report.fit.fits is None
    assert "fits in" not in str(report) and report.copies > 0


def test_report_gives_a_verdict_on_device_memory(monkeypatch: pytest.MonkeyPatch):
    module: Any = sys.modules["recompute.frontends.jax.reports.compare_step"]
    for limit, start in ((2**20, "fits: needs "), (2**16, "does not fit: arguments"), (2**17, "does not fit without")):
        monkeypatch.setattr(module, "reported_total_bytes", lambda limit=limit: limit)
        assert str(recompute.jax.explain(mlp().step, weights(), batch())).startswith(start)


def test_verdict_depends_on_needs_and_budget():
    needs = DeviceBytes(plain=400, runs=300, fixed=100, least=200, devices=8)
    verdict = fit_verdict(needs, 150, has_failed=True)
    assert verdict == FitVerdict(
        False, "does not fit: the smallest step found needs 200 B, above the budget of 150 B per device"
    )
    assert fit_verdict(needs, 300, has_failed=False).text == (
        "fits: needs 300 B of 300 B per device; the plain step needs 400 B"
    )
    assert fit_verdict(needs, 400, has_failed=False).text.endswith("; the plain step also fits")
    assert fit_verdict(replace(needs, runs=None), 400, has_failed=False) == FitVerdict(
        None, "unknown: the compiler does not report the memory of the step"
    )


def test_a_message_without_a_remedy_is_printed_once():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    text = str(replace(report, why="step: the plain step runs: a reason", stored=replace(report.stored, saved=())))
    assert text.count("a reason") == 1 and "next: step" not in text


def test_reasons_are_wrapped_not_cut():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    words = " ".join(f"word{number}" for number in range(40))
    longer = replace(
        report,
        stored=replace(report.stored, saved=(replace(report.kept[0], reason=words),)),
        search=replace(report.search, refused=words),
    )
    text = str(longer)
    assert " ".join(text.split()).count(words) == 2 and max(map(len, text.splitlines())) <= 100
    (explanation,) = recompute.jax.jit(mlp().step).explain(weights(), batch())
    (first, *others) = explanation.segments
    text = to_summary(replace(explanation, segments=(replace(first, reason=words), *others)))
    assert words in " ".join(text.split()) and max(map(len, text.splitlines())) <= 100 and "…" not in text


def test_a_budget_needs_a_unit_and_is_printed_as_given():
    assert "fits in 60MB" in str(recompute.jax.explain(mlp().step, weights(), batch(), budget="60MB"))
    with pytest.raises(ValueError, match="'8' has no unit: write '8%', '8MiB', '8GiB', or '8B' for bytes"):
        recompute.jax.explain(mlp().step, weights(), batch(), budget="8")
    with pytest.raises(ValueError, match=r"jit: invalid budget '8': '8' has no unit: .*"):
        recompute.jax.jit(mlp().step, budget="8")


def test_explain_accepts_static_arguments():
    jitted = jax.jit(lambda count, w, x: mlp().step(w[:count], x), static_argnums=0)
    assert recompute.jax.explain(jitted, 2, weights(), batch()).copies > 0


def _donation_in(step: Any, *args: Any, **kwargs: Any) -> str:
    report = recompute.jax.explain(step, *args, budget="1GiB", **kwargs)
    lines = " ".join(str(report).split())
    return lines.partition("next: donate")[2].partition(" frees ")[0]


def test_donation_is_proposed_if_the_step_returns_an_updated_argument():
    step, gradient = mlp().step, jax.value_and_grad(forward())
    assert _donation_in(step, weights(), batch()) == "_argnums=0"
    assert _donation_in(jax.jit(lambda n, w, x: step(w, x), static_argnums=0), 1, weights(), batch()) == "_argnums=1"
    assert _donation_in(lambda w, x: step(w, x), x=batch(), w=weights()) == "_argnames='w'"
    assert _donation_in(jax.jit(step, donate_argnums=0), weights(), batch()) == ""
    assert _donation_in(gradient, weights(), batch()) == "", "a gradient is no new value of its weight"


def test_a_much_cheaper_plan_that_needs_hardly_more_is_named():
    report = recompute.jax.jit(mlp().step, budget="min").report(weights(), batch())
    needs, plain = report.chosen.temporaries, report.plain.temporaries
    assert needs is not None and plain is not None
    runs = CompiledCandidate("runs", needs, needs, 100, None)

    def advice(*others: CompiledCandidate) -> str:
        lines = str(replace(report, search=replace(report.search, candidates=(runs, *others)))).splitlines()
        return next(line for line in lines if line.startswith("next: "))

    near, far = needs + needs // 20, 2 * needs
    assert advice(CompiledCandidate("near", near, near, 40, None)).startswith(
        f"next: budget={-(-100 * near // plain) / 100:g} needs {format_bytes(near)}, hardly more than "
        f"{format_bytes(needs)}, at 40 % of the extra"
    )
    for other in (CompiledCandidate("far", far, far, 40, None), CompiledCandidate("costly", near, near, 90, None)):
        assert advice(other).startswith("next: this is the least memory that the search finds")


def test_advice_after_the_minimum_names_no_smaller_budget() -> None:
    report = recompute.jax.jit(mlp().step, budget="min").report(weights(), batch())
    runs = next(
        candidate for candidate in report.search.candidates if candidate.measured_bytes == report.chosen.temporaries
    )
    alone = replace(report, search=replace(report.search, candidates=(runs,)))
    assert report.search.is_minimum and report.search.is_complete
    advice = "next: this is the least memory that the search finds; budget=0.5"
    assert advice in str(alone) and "time_limit" not in str(alone) and "a smaller one" not in str(alone)
    assert "with a larger time_limit=, or without one, it may find a smaller plan" in " ".join(
        str(replace(alone, search=replace(alone.search, is_complete=False))).split()
    )
    within = recompute.jax.jit(mlp().step, budget=0.6).report(weights(), batch())
    assert not within.search.is_minimum


def test_a_small_saving_for_much_work_is_remarked():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    plain = replace(report.plain, temporaries=100_000, flops=1e6)
    small = replace(report, plain=plain, chosen=replace(report.chosen, temporaries=97_000, flops=1.41e6))
    assert 'next: 41 % more FLOPs for 3 % less memory: policy="dots_saveable"' in str(small)
    large = replace(small, chosen=replace(small.chosen, temporaries=30_000))
    assert "FLOPs for" not in str(large) and 'next: budget="min"' in str(large)


def test_dominant_value_is_named() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jax.nn.logsumexp(x @ w).mean()

    step = recompute.jax.jit(jax.value_and_grad(loss))
    lines = str(step.report(jax.numpy.ones((8, 4096)), jax.numpy.ones((64, 8)))).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("next: "))
    assert "saves 1.0 MiB: compute that part of the model in microbatches" in " ".join(" ".join(lines[start:]).split())
    assert max(map(len, lines)) <= 100


def test_report_is_saved_as_html_text_or_json(tmp_path: Path):
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    for suffix, start in ((".html", "<!DOCTYPE html>"), (".txt", "step: "), (".json", "{")):
        report.save(tmp_path / f"step{suffix}")
        assert (tmp_path / f"step{suffix}").read_text().startswith(start)
    facts = json.loads((tmp_path / "step.json").read_text())
    assert facts["verdict"] == str(report).splitlines()[0]
    assert facts["chosen"]["temporaries"] == report.chosen.temporaries and len(facts["kept"]) == len(report.kept)
    for name in ("step.png", "step"):
        with pytest.raises(
            ValueError,
            match=rf"'.*{name}': expected one of the suffixes \.html, \.svg \(with matplotlib\), "
            r"\.txt, \.json$",
        ):
            report.save(tmp_path / name)


def test_report_draws_a_chart(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="charts")
    recompute.jax.jit(mlp().step).report(weights(), batch()).save(tmp_path / "step.svg")
    assert "<svg" in (tmp_path / "step.svg").read_text()
    with pytest.raises(ValueError, match="no chart, since nothing is recomputed"):
        recompute.jax.jit(forward()).report(weights(), batch()).save(tmp_path / "plain.svg")


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


def test_chart_without_matplotlib_names_the_formats_of_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    message = re.escape("'xdsl-recompute[plot]'; the formats .html, .txt, .json do not")
    with pytest.raises(ImportError, match=rf"^\.svg needs matplotlib: .*{message}$"):
        report.save(tmp_path / "step.svg")
