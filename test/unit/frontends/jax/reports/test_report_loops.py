"""Reports and explanations of steps with loops: FLOPs, copies and modules over all iterations."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

import recompute
from recompute.reports.explain import to_summary
from recompute.support.counted import counted
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, jax, jnp, mlp, weights


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
    assert f"the next larger compiled plan with less work needs {format_bytes(plain)} (the plain step)" in text
    used = replace(report, search=replace(report.search, temporaries_limit=needs))
    assert "next: a larger budget requires less extra work" in str(used)


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
    assert re.fullmatch(r"inside the loop at .*test_report_loops.py:\d+:\d+", place)
    rows = {row.module: row for row in report.modules}
    block = rows["LM/Block/attention"]
    assert block.plain_bytes > block.saved_bytes and block.recomputed_bytes > 0
    names = [f"{form}, {place}" for form in ("plain", "recomputed")]
    assert [name for name, _ in report.timelines] == ["plain", "recomputed", *names]
    stages_of = [line for line in report.details().splitlines() if "└" in line]
    assert ["forward" in line for line in stages_of] == [False, False, True, True]
    assert re.search(
        r"^modules inside the loop at test_report_loops.py:\d+:\d+, in one iteration:$",
        str(report),
        re.MULTILINE,
    )
    assert "while/body" not in report.details()
    text = str(step.explain(*arguments))
    assert text.split()[:5] == ["accumulated,", "inside", "the", "loop", "at"] and "while/body" not in text
