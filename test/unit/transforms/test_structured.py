"""Segments and gradients as regions give the result of the flat form, also with multiple gradients in one function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from recompute.analysis.memory.timeline import eager, eager_timeline, timeline
from recompute.analysis.step.order import Order, functions_of, producers
from recompute.analysis.step.phases import phases
from recompute.analysis.step.step import Step
from recompute.dialects.context import make_context
from recompute.dialects.names import Names
from recompute.dialects.recompute import TokenOp
from recompute.dialects.structured import GradientOp, SegmentOp
from recompute.interpreters.block_compiler import BlockCompiler
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.planning import gates
from recompute.planning.graph import Graph
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.support.diagnostics import Refusal
from recompute.test.examples import PLAIN, classified, inlined, original, recomputed
from recompute.test.structured_programs import T, steps
from recompute.test.xdsl_interpreter import make_interpreter
from recompute.tools.recompute_run import main as run_main
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline_gradient import inline_gradient
from recompute.transforms.inline_segments import inline_segments
from recompute.transforms.lower import lower
from recompute.transforms.outline_gradient import outline_gradient
from recompute.transforms.phase import annotate_phases
from recompute.transforms.verify import verify

pytestmark = pytest.mark.slow


@cache
def structured(count: int = 2, blocks: int = 4) -> ModuleOp:
    """Return a parsed module, which is shared between tests: clone it before changing it."""
    return parse_module(steps(count, blocks), "steps.mlir")


def flat(module: ModuleOp) -> ModuleOp:
    work = module.clone()
    inline_gradient(work)
    inline_segments(work)
    return work


def with_tokens(module: ModuleOp) -> ModuleOp:
    work = flat(module)
    mark(work)
    assert clone(work).groups
    cse(work)
    verify(work)
    return work


def after(module: ModuleOp) -> ModuleOp:
    work = module.clone()
    assert rewrite_in_place(work).copies > 0
    return work


def peak(module: ModuleOp) -> int:
    return timeline(functions_of(module)[0], classified(module)).peak_bytes


def eager_peak(module: ModuleOp) -> int:
    return eager_timeline(functions_of(module)[0], classified(module)).peak_bytes


def executed_equal(before: ModuleOp, after: ModuleOp) -> bool:
    inputs = random_inputs(function_named(before), 0, "random")
    return compare(before, after, inputs).equal


def test_pipeline_returns_regions() -> None:
    result = after(structured())
    assert not any(isinstance(op, SegmentOp) for op in result.walk())
    gradients = [op for op in result.walk() if isinstance(op, GradientOp)]
    assert len(gradients) == 2
    for gradient in gradients:
        assert any(Names.COPY in op.attributes for op in gradient.walk())
    verify(flat(result))


def test_r13_result_is_proved_and_executed_equal() -> None:
    assert prove(structured(), after(structured())).proved
    assert prove(structured(), flat(structured())).proved
    assert prove(structured(), with_tokens(structured())).proved
    assert executed_equal(structured(), after(structured()))
    assert executed_equal(structured(), flat(structured()))


def test_xdsl_interpreter_and_meter_run_regions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (inputs,) = random_inputs(function_named(structured()), 0, "random")
    (expected,) = execute(function_named(flat(structured())), [inputs])
    (result,) = make_interpreter(structured()).call_op("main", (inputs,))
    assert result.tobytes() == expected.tobytes()
    source = tmp_path / "step.mlir"
    source.write_text(print_module(after(structured(2, 6))))
    assert run_main([str(source)]) == 0
    assert "metered" in capsys.readouterr().out


def test_views_returned_by_a_region_are_views() -> None:
    """A reshape of a transpose is copied, also if the transpose is in a segment."""
    text = """
func.func @main(%x: tensor<4x2xf32>) -> tensor<8xf32> {
  %a = recompute.segment {
    %a = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
    recompute.yield %a : tensor<2x4xf32>
  } : tensor<2x4xf32>
  %b = stablehlo.reshape %a : (tensor<2x4xf32>) -> tensor<8xf32>
  func.return %b : tensor<8xf32>
}
"""
    module = parse_module(text)
    assert executed_equal(module, flat(module))
    preparation = BlockCompiler()
    preparation.function(function_named(module))
    strided = {value.name_hint for value in preparation.strided}
    assert strided == {"a"} and len(preparation.strided) == 2


def test_changed_result_is_not_proved_or_equal() -> None:
    wrong = after(structured())
    inside = next(op for op in wrong.walk() if isinstance(op, GradientOp)).body.block
    multiply = next(op for op in inside.ops if op.name == "stablehlo.multiply" and Names.TARGET_GRAD in op.attributes)
    multiply.operands[1] = multiply.operands[0]
    assert not prove(structured(), wrong).proved
    assert not executed_equal(structured(), wrong)


@pytest.mark.parametrize(("count", "blocks"), [(1, 6), (2, 6), (3, 6)])
def test_several_gradients_need_less_memory(count: int, blocks: int) -> None:
    before, result = flat(structured(count, blocks)), flat(after(structured(count, blocks)))
    assert peak(result) <= 0.6 * peak(before)
    assert eager_peak(result) <= 1.10 * peak(result)


@pytest.mark.parametrize("count", [1, 2])
def test_without_tokens_nothing_is_saved(count: int) -> None:
    module = with_tokens(structured(count, 6))
    lower(module, "none")
    assert eager_peak(module) >= 0.95 * eager_peak(flat(structured(count, 6)))


def early_gates(module: ModuleOp) -> list[int]:
    """Return the gates that are computed before the last of the originals that they hold back."""
    work = flat(module)
    graph = Step.of(classified(work)).graph
    groups = clone(work).groups
    assert len(groups) == 8 and all(group.gates for group in groups)
    for group in groups:
        assert all(graph.maker[gate] < group.before for gate in group.gates)
    return [gate for group in groups for gate in group.gates if graph.maker[gate] < max(group.operations)]


def test_gates_are_not_from_an_earlier_gradient() -> None:
    """A value of the first gradient is no gate for the second step: it is computed before the second forward pass."""
    assert not early_gates(structured())


def test_disabled_gate_rules_allow_early_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both rules disabled, a value of the first gradient is a gate of the second step, so that the test can
    fail."""
    find = gates.find_gates

    def find_gates_unchecked(graph: Graph, readers: Iterable[int], after: int, before: int) -> tuple[int, ...]:
        return find(graph, readers, -1, before)

    def waits(graph: Graph, value: int, after: int) -> bool:
        return True

    monkeypatch.setattr(gates, "find_gates", find_gates_unchecked)
    monkeypatch.setattr(gates, "_waits", waits)
    assert early_gates(structured())


@pytest.mark.parametrize("segments", [True, False])
def test_microbatches_are_recomputed_in_own_gradients(segments: bool) -> None:
    """Independent microbatches are recomputed each in its own gradient; marks outside segments are shared."""
    module = flat(parse_module(microbatches(2)))
    if not segments:
        for op in module.walk():
            op.attributes.pop(Names.SEGMENT, None)
    before = peak(module)
    assert all(max(group.operations) < group.before for group in clone(module).groups)
    cse(module)
    verify(module)
    assert sum(Names.COPY in op.attributes for op in module.walk()) >= 6
    assert peak(module) <= before
    assert prove(parse_module(microbatches(2)), module).proved


def microbatches(count: int) -> str:
    lines = ["func.func @main(%x: tensor<256xf32>, %y: tensor<256xf32>) -> tensor<256xf32> {"]
    total = "%y"
    for i in range(count):
        lines += f"""
  %i{i} = stablehlo.multiply %x, {total} : {T}
  %a{i}, %b{i}, %c{i}, %d{i} = recompute.segment "f" {{
    %a{i} = stablehlo.sine %i{i} : {T}
    %b{i} = stablehlo.cosine %a{i} : {T}
    %c{i} = stablehlo.exponential %b{i} : {T}
    %d{i} = stablehlo.tanh %c{i} : {T}
    recompute.yield %a{i}, %b{i}, %c{i}, %d{i} : {T}, {T}, {T}, {T}
  }} : {T}, {T}, {T}, {T}
  %e{i} = stablehlo.negate %d{i} : {T}
  %j{i} = recompute.gradient {{
    %f{i} = stablehlo.multiply %e{i}, %d{i} : {T}
    %g{i} = stablehlo.multiply %f{i}, %c{i} : {T}
    %h{i} = stablehlo.multiply %g{i}, %b{i} : {T}
    %j{i} = stablehlo.multiply %h{i}, %a{i} : {T}
    recompute.yield %j{i} : {T}
  }} : {T}""".splitlines()
        total = f"%j{i}" if i % 2 else "%x"
    lines += [f"  %s = stablehlo.add %j0, %j1 : {T}", f"  func.return %s : {T}", "}"]
    return "\n".join(lines)


def test_eager_schedule_keeps_producers_before_readers() -> None:
    """Updates between two steps keep their position, and the last updates run at the end."""
    for module in (flat(structured(3)), with_tokens(structured(3)), flat(after(structured(3)))):
        before = classified(module)
        order = eager(before).order
        assert set(order.operations) == set(before.order.operations)
        for op in order.operations:
            assert all(order.position[producer] < order.position[op] for producer in producers(op))


def test_update_read_by_gradient_runs_first() -> None:
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.negate %a {recompute.phase = "gradient"} : tensor<4xf32>
  %u = stablehlo.abs %g {recompute.phase = "update"} : tensor<4xf32>
  %b = stablehlo.tanh %u {recompute.phase = "primal"} : tensor<4xf32>
  %h = stablehlo.multiply %b, %u {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %h : tensor<4xf32>
}
"""
    order = eager(classified(parse_module(text))).order
    names = [op.name.partition(".")[2] for op in order.operations]
    assert names == ["sine", "negate", "abs", "tanh", "multiply", "return"]


def test_gates_survive_cleanups_three_times() -> None:
    module = with_tokens(structured())
    tokens = sum(isinstance(op, TokenOp) for op in module.walk())
    held, text = (peak(module), eager_peak(module)), print_module(module)
    context = make_context()
    for _ in range(3):
        for cleanup in (CanonicalizePass(), CommonSubexpressionElimination(), DeadCodeElimination()):
            cleanup.apply(context, module)
    assert tokens == 8 == sum(isinstance(op, TokenOp) for op in module.walk())
    assert (peak(module), eager_peak(module)) == held
    assert print_module(module) == text
    verify(module)


def test_cleanups_keep_copies_inside_regions() -> None:
    module = after(structured())
    held = peak(flat(module))
    context = make_context()
    for _ in range(3):
        for cleanup in (CanonicalizePass(), CommonSubexpressionElimination(), DeadCodeElimination()):
            cleanup.apply(context, module)
    assert peak(flat(module)) == held
    verify(flat(module))


def test_flattening_before_or_after_gives_the_same_program() -> None:
    """The program is the same whether the step is flattened before or after recomputation."""
    from_flat = after(flat(structured()))
    assert flat(after(structured())).is_structurally_equivalent(from_flat)
    assert not flat(structured()).is_structurally_equivalent(from_flat)


@pytest.mark.parametrize("name", [name for name in PLAIN if ".small" in name])
def test_outlining_gradient_is_reversible(name: str) -> None:
    module = inlined(name).clone()
    annotate_phases(module)
    before = print_module(module, debuginfo=True)
    segments = outline_gradient(module)
    assert segments > 0
    assert prove(original(name), module).proved
    assert inline_gradient(module) == segments
    assert print_module(module, debuginfo=True) == before


@pytest.mark.slow("gpt_train")
@pytest.mark.parametrize("name", [name for name in PLAIN if ".small" in name])
def test_structured_and_flat_examples_are_recomputed_alike(name: str) -> None:
    module = inlined(name).clone()
    outline_gradient(module)
    assert rewrite_in_place(module).copies > 0
    assert prove(original(name), module).proved
    inline_gradient(module)
    assert peak(module) == peak(recomputed(name))


def test_partial_phases_in_wrong_order_are_refused() -> None:
    module = flat(structured())
    functions_of(module)[0].body.block.first_op.attributes.pop(Names.PHASE)  # pyright: ignore[reportOptionalMemberAccess]
    with pytest.raises(Refusal, match="follows the gradient operation"):
        phases(functions_of(module)[0])


def test_stated_phases_are_used_unchanged() -> None:
    module = flat(structured())
    classes = classified(module)
    for op in Order.of(functions_of(module)[0].body.block).operations[:-1]:
        assert op.attributes[Names.PHASE] == StringAttr(classes.phase[op])
