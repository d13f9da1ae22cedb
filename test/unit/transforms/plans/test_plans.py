"""Plans are data: they are passed between runs, made by an external planner, and compared with the emitted program."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.analysis.verify.emitted import wrong_reads
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.graph import Graph
from recompute.planning.pairs import plan_of_pairs
from recompute.planning.plan import Plan
from recompute.planning.plan_file import from_json, to_json
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.test.examples import SMALL, inlined, original, peaks_of
from recompute.transforms.plans.given_plans import clone_with_planner

pytestmark = pytest.mark.slow

SMALLEST = ("chain.small.mlir", "mlp.small.mlir")
SELECTIONS = {"inside": Selection(), "outputs too": Selection(outputs=True), "dots": Selection(policy="dots_saveable")}


def step_of(module: ModuleOp) -> Step:
    actual = phases(functions_of(module)[0])
    assert actual is not None
    return Step.of(actual)


def pairs() -> list[tuple[str, str]]:
    """Return every selection on the smallest steps, and one on each of the others, in turn: those take seconds."""
    turn = list(SELECTIONS)
    others = [(name, turn[index % len(turn)]) for index, name in enumerate(SMALL) if name not in SMALLEST]
    return [*((name, selection) for name in SMALLEST for selection in turn), *others]


@pytest.mark.slow("gpt_train", "unet", "branches")
@pytest.mark.parametrize(("name", "selection"), pairs())
def test_stored_plan_reproduces_the_program(name: str, selection: str) -> None:
    first, second = original(name).clone(), original(name).clone()
    result = rewrite_in_place(first, RecomputeOptions(SELECTIONS[selection]))
    again = rewrite_in_place(second, RecomputeOptions().with_planned(from_json(to_json(result.plans))))
    assert print_module(second, debuginfo=True) == print_module(first, debuginfo=True)
    assert [step.plan for step in again.steps] == [step.plan for step in result.steps]


def test_plan_for_another_program_is_rejected() -> None:
    plans = rewrite_in_place(original("chain.small.mlir").clone()).plans
    other = parse_module(
        print_module(original("chain.small.mlir"), debuginfo=True).replace("stablehlo.tanh", "stablehlo.sine")
    )
    with pytest.raises(Refusal, match="the plan is for another program: @main is not the step for which it was made"):
        rewrite_in_place(other, RecomputeOptions(plan=plans))
    with pytest.raises(Refusal, match="the plan has no entry for @main; it has entries for @step; make a plan"):
        rewrite_in_place(
            original("chain.small.mlir").clone(), RecomputeOptions(plan=[replace(plans[0], function="step")])
        )
    with pytest.raises(Refusal, match="it has an entry for step @step, but the module has no such step"):
        rewrite_in_place(
            original("chain.small.mlir").clone(),
            RecomputeOptions(plan=[*plans, replace(plans[0], function="step")]),
        )


def cheap_again(graph: Graph) -> Plan:
    """Return an external plan that repeats all but products, each in front of its first gradient reader."""
    pairs = list[tuple[int, int]]()
    for op, name in enumerate(graph.names):
        readers = [reader for value in graph.makes[op] for reader in graph.gradient_readers[value]]
        returned = not graph.returned.isdisjoint(graph.makes[op])
        if graph.forward[op] and graph.effects[op] is None and readers and "dot" not in name and not returned:
            pairs.append((min(readers), op))
    return plan_of_pairs(graph, pairs)


@pytest.mark.slow("gpt_train")
@pytest.mark.parametrize("name", SMALL)
def test_external_planner_replaces_the_search(name: str) -> None:
    module = original(name).clone()
    result = rewrite_in_place(module, RecomputeOptions().with_planned(cheap_again))
    assert result.copies and prove(original(name), module).proved


def test_planner_without_a_plan_is_rejected() -> None:
    with pytest.raises(Refusal, match="the planner must return a Plan for each step, not NoneType"):
        rewrite_in_place(original("chain.small.mlir").clone(), RecomputeOptions().with_planned(lambda _: None))  # pyright: ignore[reportArgumentType]


def test_external_planner_saves_memory() -> None:
    module = original("chain.small.mlir").clone()
    rewrite_in_place(
        module, RecomputeOptions().with_planned(lambda graph: plan_of_pairs(graph, every_second_block(graph)))
    )
    assert peaks_of(module).in_order < peaks_of(inlined("chain.small.mlir")).in_order
    assert peaks_of(module).eager < peaks_of(inlined("chain.small.mlir")).eager


def every_second_block(graph: Graph) -> Iterator[tuple[int, int]]:
    """Generate copies of four of every eight operations, in front of the first gradient operation that reads them."""
    forward = [op for op in range(len(graph)) if graph.forward[op] and op not in graph.literals]
    for start in range(0, len(forward) - 8, 8):
        block = forward[start : start + 4]
        readers = [
            gradient_reader for value in graph.results_of(block) for gradient_reader in graph.gradient_readers[value]
        ]
        if readers:
            yield from ((min(readers), op) for op in block)


def any_pairs(graph: Graph, dice: random.Random) -> list[tuple[int, int]]:
    """Return random copies, of any operation in front of any later one of the backward pass, or at the very end."""
    places = [op for op in range(len(graph)) if graph.gradient[op]] + [len(graph) - 1]
    items = list[tuple[int, int]]()
    for place in dice.sample(places, min(len(places), dice.choice([1, 3, 8]))):
        before = [op for op in range(place) if graph.effects[op] is None and op not in graph.literals]
        items += [(place, op) for op in dice.sample(before, min(len(before), dice.choice([1, 4, 12])))]
    return items


@pytest.mark.slow("unet")
@pytest.mark.parametrize("name", ["chain.small.mlir", "mlp.small.mlir", "gpt.small.mlir", "unet.small.mlir"])
def test_any_set_of_pairs_gives_equal_results(name: str) -> None:
    dice, copies = random.Random(name), 0
    for _ in range(12):
        module = inlined(name).clone()
        step = step_of(module)
        plan = plan_of_pairs(step.graph, any_pairs(step.graph, dice))
        result = clone_with_planner(module, lambda graph, plan=plan: plan)
        copies += result.copies
        assert prove(inlined(name), module).proved
    assert copies > 50


def test_several_copies_serve_their_own_readers() -> None:
    module = inlined("gpt.small.mlir").clone()
    graph = step_of(module).graph
    op = next(op for op in range(len(graph)) if graph.forward[op] and is_read_twice(graph, op))
    first, *_, last = sorted(
        gradient_reader for value in graph.makes[op] for gradient_reader in graph.gradient_readers[value]
    )
    result = clone_with_planner(module, lambda graph: plan_of_pairs(graph, [(first, op), (last, op)]))
    assert [group.numbers for group in result.groups] == [(1,), (2,)]
    copies = [operation for operation in module.walk() if Names.COPY in operation.attributes]
    assert all(copy.results[0].uses for copy in copies) and len(copies) == 2
    assert prove(inlined("gpt.small.mlir"), module).proved


def is_read_twice(graph: Graph, op: int) -> bool:
    result = graph.makes[op]
    return graph.effects[op] is None and any(len(graph.gradient_readers[value]) > 1 for value in result)


def test_wrong_reads_are_detected_for_each_use() -> None:
    module = inlined("mlp.small.mlir").clone()
    step = step_of(module)
    plan = cheap_again(step.graph)
    clone_with_planner(module, lambda graph: plan)
    assert list(wrong_reads(step, plan)) == []
    reader = next(op for op in step.numbered.operations if Names.TARGET_GRAD in op.attributes)
    number = step.position(reader)
    for index, operand in enumerate(reader.operands):
        value = step.value(step.graph.reads[number][index])
        if operand is not value and value.type == operand.type:
            reader.operands[index] = value
    ((result, words),) = wrong_reads(step, plan)
    assert result is reader and "the plan says copy 1 of id" in words and "it reads the original" in words
