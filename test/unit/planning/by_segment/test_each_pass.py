"""A forward pass with two gradients is copied twice if one set of copies would have to wait for both."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from recompute.analysis.copies.copying import CloneOptions, plan_of_marks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.phases import updated_phases
from recompute.analysis.step.step import Step
from recompute.dialects.dead_code import drop_dead_code
from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.planning.by_segment.each_pass import repeat_in_each_pass
from recompute.planning.by_segment.plan_targets import Targets
from recompute.planning.liveness import live_bytes, peak_bytes
from recompute.planning.plan import Plan
from recompute.planning.simulate import as_graph, simulate
from recompute.proof.prove import prove
from recompute.rules.effects import Permission
from recompute.support.phase import Phase
from recompute.test.named_steps import Values, named_step, numbers
from recompute.transforms.clone import clone_marked
from recompute.transforms.lower import lower

T = "tensor<256xf32>"
BLOCKS = 4


def line(result: str, text: str, path: str) -> str:
    return f'  %{result} = stablehlo.{text} : {T} loc("jit(f)/{path}/{text.split()[0]}")'


def forward() -> list[str]:
    """Return the forward pass: block i computes `%y{i} = tanh(cosine(sine(%y{i-1})))`."""
    lines = list[str]()
    for block in range(BLOCKS):
        lines.append(line(f"s{block}", f"sine %y{block - 1}", "jvp()"))
        lines.append(line(f"u{block}", f"cosine %s{block}", "jvp()"))
        lines.append(line(f"y{block}", f"tanh %u{block}", "jvp()"))
    return lines


def backward(name: str, cotangent: str) -> list[str]:
    """Return the gradient `%{name}` of `%{cotangent}`; block i reads `%u{i}` and `%s{i}`."""
    lines, known = list[str](), cotangent
    for block in reversed(range(BLOCKS)):
        lines.append(line(f"{name}u{block}", f"multiply %{known}, %u{block}", "transpose(jvp())"))
        lines.append(line(f"{name}{block}", f"multiply %{name}u{block}, %s{block}", "transpose(jvp())"))
        known = f"{name}{block}"
    return lines


def text_of(lines: list[str], returned: str) -> str:
    head = f"func.func @f(%y-1: {T}, %a: {T}, %b: {T}) -> ({T}, {T}) {{".replace("%y-1", "%x")
    body = [each.replace("%y-1", "%x") for each in lines]
    return "\n".join([head, *body, f"  func.return {returned} : {T}, {T}", "}"])


def step_of(lines: list[str], returned: str) -> tuple[Step, Values]:
    return named_step(text_of(lines, returned))


def seed(name: str) -> str:
    return line(f"{name}c", f"multiply %{name}, %y{BLOCKS - 1}", "transpose(jvp())")


def planned(step: Step, value: Values, each_pass: bool) -> Plan:
    """Return the plan that recomputes every `%s{i}` and `%u{i}`, with a segment for each block."""
    values = numbers(step, value, [f"{name}{block}" for block in range(BLOCKS) for name in "su"])
    segments = {step.graph.maker[each]: f"block{number // 2}" for number, each in enumerate(values)}
    plan = CloneOptions().plan(step, Targets(segments, frozenset(values)))
    return repeat_in_each_pass(step.graph, plan) if each_pass else plan


TWICE = [*forward(), seed("a"), *backward("g", "ac"), seed("b"), *backward("h", "bc")]


def test_blocks_are_copied_for_each_gradient() -> None:
    step, value = step_of(TWICE, "%g0, %h0")
    once, twice = planned(step, value, False), planned(step, value, True)
    assert [group.segment for group in once.groups] == ["block3", "block2", "block1", "block0"]
    assert [group.segment for group in twice.groups] == 2 * ["block3", "block2", "block1", "block0"]
    assert twice.groups[:4] == once.groups
    first = numbers(step, value, [f"hu{block}" for block in reversed(range(BLOCKS))])
    assert [group.before for group in twice.groups[4:]] == [step.graph.maker[each] for each in first]
    assert [group.numbers for group in twice.groups[4:]] == [(2, 2)] * BLOCKS
    gates = numbers(step, value, ["bc", "h3", "h2", "h1"])
    assert [group.gates for group in twice.groups[4:]] == [(gate,) for gate in gates]
    peaks = [peak_bytes(as_graph(step.graph, simulate(step.graph, plan))) for plan in (once, twice)]
    assert peaks[1] < peaks[0]


@pytest.mark.parametrize("each_pass", [False, True])
def test_simulation_matches_rewritten_program(each_pass: bool) -> None:
    lines = [
        re.sub(r"(%[su](\d) = .*?) :", r'\1 {recompute.recompute = true, recompute.segment = "block\2"} :', each)
        for each in TWICE
    ]
    module = parse_module(text_of(lines, "%g0, %h0"))
    before = module.clone()
    steps = numbered_steps(module)
    graph, known = steps[0][1].graph, steps[0][1].phases

    def plan_of(_: FuncOp, step: Step) -> Plan:
        plan = plan_of_marks(step, CloneOptions())
        return repeat_in_each_pass(step.graph, plan) if each_pass else plan

    (result,) = clone_marked(module, steps, plan_of, Permission()).steps
    assert result.plan.copies == (4 if each_pass else 2) * BLOCKS
    paper = as_graph(graph, simulate(graph, result.plan))
    lower(module, "stablehlo")
    drop_dead_code(steps[0][0].body)
    assert list(live_bytes(paper)) == list(live_bytes(Step.of(updated_phases(known)).graph))
    assert prove(before, module)
    inputs = [np.linspace(low, 1, 256, dtype=np.float32) for low in (-1, 0, 0.5)]
    assert compare(before, module, inputs).equal


SEVERAL = {
    "one gradient": ([*forward(), seed("a"), *backward("g", "ac"), line("r", "add %g0, %b", "")], "%g0, %r"),
    "gradients side by side": (
        [
            *forward(),
            seed("a"),
            seed("b"),
            *(each for pair in zip(backward("g", "ac"), backward("h", "bc"), strict=True) for each in pair),
        ],
        "%g0, %h0",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_blocks_visited_once_are_copied_once(name: str) -> None:
    step, value = step_of(*SEVERAL[name])
    plan = planned(step, value, False)
    assert plan.groups and repeat_in_each_pass(step.graph, plan) is plan


def test_second_loss_starts_no_new_step() -> None:
    """A second loss after the first gradient starts no new step: both gradients are of the same forward pass."""
    loss = line("l", "cosine %y3", "jvp()")
    step, _ = step_of([*forward(), seed("a"), *backward("g", "ac"), loss, seed("b"), *backward("h", "bc")], "%l, %h0")
    messages = [step.phases.phase[op] for op in step.phases.order.operations]
    assert messages[: 3 * BLOCKS] == ["primal"] * 3 * BLOCKS
    assert "primal" not in messages[3 * BLOCKS :]


def renamed(line: str) -> str:
    """Return a line of the second forward pass, with names of its own for the values."""
    return re.sub(r"%([suy]-?\d)", r"%\1_", line)


def test_second_forward_pass_begins_a_new_step() -> None:
    again = [renamed(each).replace("%y-1_", "%g0") for each in forward()]
    second = [renamed(each) for each in (seed("b"), *backward("h", "bc"))]
    step, _ = step_of([*forward(), seed("a"), *backward("g", "ac"), *again, *second], "%g0, %h0")
    assert list(step.phases.phase.values()).count(Phase.PRIMAL) > 3 * BLOCKS
