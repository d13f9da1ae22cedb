"""The marks of a plan, and the remark on the plan that `recompute-clone` derives from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

from recompute.analysis.step.module_steps import numbered_steps
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.plan import Batch, CopyGroup, Plan
from recompute.planning.plan_file import OperationNote, StepPlan
from recompute.rewriting import marked_plan
from recompute.rewriting.marked_plan import REMEDY, plan_to_mark, write_plan_marks
from recompute.rewriting.rewrite import run_with_alternatives
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.search.budget.markable_plan import MarkableResult
from recompute.search.outcome import RewriteResult
from recompute.support.operations import every_operation
from recompute.support.remarks import RemarkKind
from recompute.test.sine_chain import sine_chain
from recompute.transforms.clone import clone
from recompute.transforms.preparation.timelines import peaks_of

IN_ORDER = RecomputeOptions(target="none")
Choose = Callable[[BudgetProblem, RewriteResult], MarkableResult | None]


def searched(module: ModuleOp) -> RewriteResult:
    """Return the choice without a budget, as a search would return it."""
    result = run_with_alternatives(module, IN_ORDER)
    assert result.module is not None
    return replace(result, peaks=peaks_of(result.module, "order"))


def twice(module: ModuleOp) -> tuple[StepPlan, ...]:
    """Return a plan that copies the second of four sines for each of two gradients, which marks cannot express."""
    ((function, step),) = numbered_steps(module)
    graph = step.graph
    first = graph.phases.index("gradient")
    groups = [
        CopyGroup("", first + number, (Batch((1,), graph.reads[1]),), (number,), graph.makes[1], gates)
        for number, gates in ((1, graph.makes[first]), (2, graph.makes[first + 1]))
    ]
    return (StepPlan(function.sym_name.data, graph.fingerprint, Plan(tuple(groups))),)


def marked_operations(module: ModuleOp) -> list[str | None]:
    return [op.results[0].name_hint for op in every_operation(module) if Names.RECOMPUTE in op.attributes]


def test_copied_operations_are_marked_once() -> None:
    module = sine_chain(4)
    ((_, step),) = numbered_steps(module)
    (plan,) = twice(module)
    write_plan_marks(step, plan)
    assert marked_operations(module) == ["a2"]
    clone(module)
    assert sum(Names.COPY in op.attributes for op in every_operation(module)) == 1


def test_segments_of_the_plan_are_written_and_residuals_are_kept() -> None:
    """The residual reads the copied value, and only the backward pass reads the residual."""
    value = "tensor<1024xf32>"
    module = parse_module(f"""
func.func public @step(%x: {value}) -> ({value}, {value}) {{
  %a = stablehlo.sine %x {{recompute.phase = "primal"}} : {value}
  %r = stablehlo.multiply %a, %a {{recompute.phase = "residual"}} : {value}
  %y = stablehlo.tanh %a {{recompute.phase = "primal"}} : {value}
  %g = stablehlo.multiply %y, %y {{recompute.phase = "gradient"}} : {value}
  %h = stablehlo.multiply %g, %r {{recompute.phase = "gradient"}} : {value}
  %i = stablehlo.multiply %h, %a {{recompute.phase = "gradient"}} : {value}
  func.return %y, %i : {value}, {value}
}}""")
    ((_, step),) = numbered_steps(module)
    group = CopyGroup("", 5, (Batch((0,), step.graph.reads[0]),), (1,), step.graph.makes[0], step.graph.makes[4])
    notes = (OperationNote(0, segment="block"),)
    write_plan_marks(step, StepPlan("step", step.graph.fingerprint, Plan((group,)), notes))
    sine, residual = step.operation(0), step.operation(1)
    assert sine.attributes[Names.SEGMENT] == StringAttr("block")
    assert marked_operations(module) == ["a"] and Names.CHECKPOINT in residual.attributes


def test_plan_of_the_search_is_marked_without_a_remark_if_its_marks_give_it() -> None:
    module = sine_chain()
    result = searched(module)
    marked = plan_to_mark(module, replace(IN_ORDER, budget="80%"), result)
    assert marked.plans == result.outcome.plans and marked.remark is None


def choosing(**verdict: bool) -> Choose:
    """Return a stand-in for `markable_result` that chooses the plan that is derived from the marks of the search."""

    def choose(problem: BudgetProblem, searched: RewriteResult) -> MarkableResult:
        return MarkableResult(problem.evaluate(searched.outcome.plans), **verdict)

    return choose


@pytest.mark.parametrize(
    ("budget", "is_met", "verdict", "kind"),
    [
        ("80%", True, "the marks stay within the budget, but with another plan", RemarkKind.ANALYSIS),
        ("60%", False, "the marks exceed the budget of 60% (21.6 KiB of temporaries)", RemarkKind.MISSED),
        ("min", False, "the marks need more memory than the plan", RemarkKind.MISSED),
    ],
)
def test_worse_plan_has_a_remark_with_its_peak(
    budget: str, is_met: bool, verdict: str, kind: RemarkKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marked_plan, "markable_result", choosing(is_met=is_met, is_as_good=False))
    module = sine_chain()
    result = searched(module)
    remark = plan_to_mark(module, replace(IN_ORDER, budget=budget), result).remark
    assert remark is not None and remark.kind is kind and remark.operation is next(iter(module.ops))
    after = result.peaks["step"]
    assert remark.reason == (
        f"{verdict}, since marks cannot state how often or where an operation is copied: with recompute-clone, "
        f"36.0 KiB -> {after / 1024:.1f} KiB at the peak in program order; {result.outcome.copies} operations are "
        f"recomputed, {result.outcome.extra_flops} FLOPs more; {REMEDY}"
    )
    assert remark.amounts == (
        ("peak_bytes_before", 36 * 1024),
        ("peak_bytes_after", after),
        ("operations", result.outcome.copies),
        ("flops", result.outcome.extra_flops),
    )


def test_candidates_are_measured_with_the_plans_that_marks_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan copies an operation twice, and the plan that is derived from its mark copies it once. The marks are
    those of the candidate."""
    monkeypatch.setattr(marked_plan, "markable_result", choosing(is_met=True, is_as_good=False))
    module = sine_chain(4)
    result = run_with_alternatives(module, IN_ORDER.with_planned(twice(module)))
    assert result.outcome.copies == 2
    marked = plan_to_mark(module, replace(IN_ORDER, budget="80%"), result)
    assert [plan.plan.copies for plan in marked.plans] == [2] and marked.remark is not None
    assert ("operations", 1) in marked.remark.amounts
    assert marked_operations(module) == [], "the module is not marked yet"


def test_plan_of_the_search_is_marked_if_no_derived_plan_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose_none(problem: BudgetProblem, searched: RewriteResult) -> None:
        return None

    monkeypatch.setattr(marked_plan, "markable_result", choose_none)
    module = sine_chain()
    result = searched(module)
    marked = plan_to_mark(module, replace(IN_ORDER, budget="80%"), result)
    assert marked.plans == result.outcome.plans and marked.remark is None
