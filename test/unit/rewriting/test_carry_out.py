"""Applying plans: what is copied, which steps may still be left unchanged, and the remarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.step import Step, Steps
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.graph import Graph
from recompute.planning.plan import Batch, CopyGroup, Plan, plan_nothing
from recompute.planning.plan_file import StepPlan
from recompute.rewriting import carry_out
from recompute.rewriting.carry_out import CarriedOut, carry_out_best, carry_out_planned
from recompute.rules.effects import Permission
from recompute.search.choice.choose import ChosenAttempt, choose_for
from recompute.support.diagnostics import BadRequest, Refusal
from recompute.support.operations import every_operation
from recompute.support.remarks import Remark, RemarkKind, Topic
from recompute.test.sine_chain import VALUE_BYTES, sine_chain, sine_chain_text
from recompute.transforms.clone import clone_marked
from recompute.transforms.plans.cloned_steps import Cloned

IN_ORDER = RecomputeOptions(target="none")


def applied(
    module: ModuleOp, options: RecomputeOptions = IN_ORDER, has_cut_loops: bool = False
) -> tuple[CarriedOut, Steps]:
    """Apply the best attempts to the module. Return the result, and the steps before copies were inserted."""
    steps = numbered_steps(module)
    return carry_out_best(module, steps, options, has_cut_loops), steps


def copies_in(module: ModuleOp) -> int:
    return sum(Names.COPY in op.attributes for op in every_operation(module))


def reasons(carried_out: CarriedOut) -> list[str]:
    return [remark.reason for remark in carried_out.remarks]


def test_best_attempt_is_applied_and_may_still_be_left() -> None:
    module = sine_chain()
    carried_out, _ = applied(module)
    assert carried_out.copies == copies_in(module) > 0
    assert carried_out.optional == {"step"} and carried_out.steps[0].notes
    assert carried_out.before["step"].in_order == 9 * VALUE_BYTES > carried_out.forecasts["step"].in_order


@pytest.mark.parametrize(
    ("options", "has_cut_loops", "is_known"),
    [(DEFAULT_OPTIONS, False, True), (DEFAULT_OPTIONS, True, False), (IN_ORDER, False, False)],
    ids=["barriers", "barriers and cut loops", "program order"],
)
def test_share_is_forecast_only_for_the_whole_module_under_xla(
    options: RecomputeOptions, has_cut_loops: bool, is_known: bool
) -> None:
    carried_out, _ = applied(sine_chain(), options, has_cut_loops)
    assert (carried_out.saved_share is not None) == is_known
    if carried_out.saved_share is not None:
        before, after = carried_out.before["step"], carried_out.forecasts["step"]
        assert carried_out.saved_share == 1 - after.xla / max(before.xla, 1)


NO_STEP = "func.func public @other(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"


@pytest.mark.parametrize("other", [NO_STEP, sine_chain_text(8, "other")], ids=["no step", "a step"])
def test_share_of_two_functions_is_unknown(other: str) -> None:
    """The peak of the module may be in either function."""
    carried_out, _ = applied(parse_module(f"{sine_chain_text()}\n{other}"), DEFAULT_OPTIONS)
    assert carried_out.copies and carried_out.saved_share is None


def test_peaks_are_of_the_step_before_it_changed() -> None:
    """The peaks under XLA are computed on first access, and read the step as it was."""
    module = sine_chain()
    ((function, step),) = numbered_steps(module.clone())
    expected = Peaks.of_step(function, step).xla
    carried_out, _ = applied(module, DEFAULT_OPTIONS, has_cut_loops=True)
    assert copies_in(module) and carried_out.before["step"].xla == expected


def test_step_without_copies_has_no_peaks_to_compare() -> None:
    carried_out, _ = applied(sine_chain(2))
    assert carried_out.copies == 0 and [step.function for step in carried_out.steps] == ["step"]
    assert carried_out.before == carried_out.forecasts == {} and carried_out.optional == frozenset()


def test_demanded_copies_are_not_optional() -> None:
    carried_out, _ = applied(sine_chain(mark='recompute.recompute = "must_recompute"'))
    assert carried_out.copies and carried_out.optional == frozenset()
    assert carried_out.before_optional == {} and carried_out.before_demanded.keys() == {"step"}


def test_peaks_are_divided_by_whether_copies_are_demanded() -> None:
    peaks = {name: Peaks.from_values(size, size, lambda: 0) for name, size in (("free", 1), ("forced", 2))}
    carried_out = CarriedOut((), (), before=peaks, optional=frozenset({"free"}))
    assert carried_out.before_optional == {"free": peaks["free"]}
    assert carried_out.before_demanded == {"forced": peaks["forced"]}


def refusing(name: str) -> Callable[[FuncOp, Step, RecomputeOptions], ChosenAttempt]:
    """Return a stand-in for `choose_for` that vetoes the choice for the function with this name."""

    def choose(function: FuncOp, step: Step, options: RecomputeOptions) -> ChosenAttempt:
        choice = choose_for(function, step, options)
        return replace(choice, refused="no peak falls") if function.sym_name.data == name else choice

    return choose


def test_vetoed_step_is_left_unchanged_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_out, "choose_for", refusing("step"))
    module = sine_chain()
    carried_out, _ = applied(module)
    assert carried_out.copies == copies_in(module) == 0 and carried_out.before == {}
    assert carried_out.remarks[-1].reason == "no peak falls: the step is left as it is"
    assert carried_out.remarks[-1].topic is Topic.STEP_LEFT
    assert not any(Names.RECOMPUTE in op.attributes for op in every_operation(module)), "no mark is written"


@pytest.mark.parametrize("has_cut_loops", [False, True])
def test_reason_is_reworded_beside_a_rewritten_part(has_cut_loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_out, "choose_for", refusing("second"))
    text = sine_chain_text(8, "second") if has_cut_loops else f"{sine_chain_text()}\n{sine_chain_text(8, 'second')}"
    carried_out, _ = applied(parse_module(text), has_cut_loops=has_cut_loops)
    assert reasons(carried_out)[-1] == "in the rest of the step: no peak falls: the rest of the step is left as it is"
    assert carried_out.before.keys() == (set() if has_cut_loops else {"step"})


def test_selection_that_applies_to_no_step_is_refused() -> None:
    module = sine_chain()
    with pytest.raises(BadRequest, match="checkpoint 'missing' names no operation"):
        applied(module, RecomputeOptions(Selection(checkpoints=("missing",)), target="none"))
    assert not copies_in(module)


CONDITIONAL = """
  {result} = "stablehlo.if"(%c) ({{
    %s = "stablehlo.all_reduce"({operand}) ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %t = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }}) {{replica_groups = dense<0> : tensor<1x1xi64>}} : (tensor<1024xf32>) -> tensor<1024xf32>
    stablehlo.return %s : tensor<1024xf32>
  }}, {{
    stablehlo.return {operand} : tensor<1024xf32>
  }}) {{recompute.phase = "primal"}} : (tensor<i1>) -> tensor<1024xf32>"""
COLLECTIVES = f"""
func.func public @step(%x: tensor<1024xf32>, %c: tensor<i1>) -> (tensor<1024xf32>, tensor<1024xf32>) {{
  {CONDITIONAL.format(result="%a", operand="%x")}
  {CONDITIONAL.format(result="%b", operand="%a")}
  %y = stablehlo.tanh %b {{recompute.phase = "primal"}} : tensor<1024xf32>
  %g = stablehlo.multiply %b, %a {{recompute.phase = "gradient"}} : tensor<1024xf32>
  func.return %y, %g : tensor<1024xf32>, tensor<1024xf32>
}}
"""


def test_one_remark_says_why_collectives_are_not_recomputed() -> None:
    carried_out, _ = applied(parse_module(COLLECTIVES))
    remarks = [remark for remark in carried_out.remarks if remark.topic is Topic.COLLECTIVES_UNEQUAL]
    assert carried_out.copies == 0 and len(remarks) == 1, "both conditionals have the same reason"
    assert remarks[0].reason.startswith("stablehlo.if is not recomputed: it contains collectives inside a branch")


@pytest.mark.parametrize(
    ("mark", "is_chosen", "topic"),
    [
        ("", False, Topic.OTHER),
        ("recompute.recompute = true", False, Topic.MARK_REFUSED),
        ("recompute.recompute = true", True, Topic.OTHER),
    ],
    ids=["mark of the choice", "mark of the user", "mark for a segment budget"],
)
@pytest.mark.parametrize("given", [Topic.MARK_REFUSED, Topic.NO_EFFECT, Topic.EAGER])
def test_only_marks_of_the_user_are_reported_as_marks(
    given: Topic, mark: str, is_chosen: bool, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sine_chain(mark=mark)
    sine = [op for op in every_operation(module) if op.name == "stablehlo.sine"][1]

    def clone(module: ModuleOp, steps: Steps, plan: Callable[[FuncOp, Step], Plan], permission: Permission) -> Cloned:
        cloned = clone_marked(module, steps, plan, permission)
        return replace(cloned, remarks=(Remark(sine, "the mark is refused", topic=given),))

    monkeypatch.setattr(carry_out, "clone_marked", clone)
    chosen = frozenset({sine}) if is_chosen else frozenset[Operation]()
    carried_out = carry_out_best(module, numbered_steps(module), IN_ORDER, False, chosen)
    expected = given if given is Topic.EAGER or topic is Topic.MARK_REFUSED else topic
    assert carried_out.remarks[-1].reason == "the mark is refused" and carried_out.remarks[-1].topic is expected


def searched_plans(module: ModuleOp) -> tuple[StepPlan, ...]:
    return tuple(step.as_step_plan() for step in applied(module)[0].steps)


def planned(module: ModuleOp, options: RecomputeOptions) -> CarriedOut:
    return carry_out_planned(module, numbered_steps(module), options)


def test_given_plan_is_applied_as_it_is() -> None:
    module = sine_chain()
    plans = searched_plans(sine_chain())
    carried_out = planned(module, IN_ORDER.with_planned(plans))
    assert copies_in(module) == carried_out.copies == sum(plan.plan.copies for plan in plans) > 0
    assert carried_out.remarks == () and carried_out.optional == frozenset() and carried_out.before == {}


def test_planner_plans_each_step() -> None:
    module = parse_module(f"{sine_chain_text(8, 'first')}\n{sine_chain_text(5, 'second')}")
    sizes = list[int]()

    def planner(graph: Graph) -> Plan:
        sizes.append(len(graph.names))
        return plan_nothing(graph)

    carried_out = planned(module, IN_ORDER.with_planned(planner))
    assert sizes == [8 + 1 + 7 + 1, 5 + 1 + 4 + 1]
    assert [step.function for step in carried_out.steps] == ["first", "second"]
    assert carried_out.remarks == () and not copies_in(module)


def test_plan_for_another_program_is_refused() -> None:
    plans = searched_plans(sine_chain(8))
    with pytest.raises(Refusal, match="the plan is for another program"):
        planned(sine_chain(9), IN_ORDER.with_planned(plans))


@pytest.mark.parametrize("target", ["none", "stablehlo"])
def test_given_plan_that_lowers_no_peak_is_applied_with_a_remark(target: str) -> None:
    module = sine_chain(4)
    carried_out = planned(module, RecomputeOptions(target=target).with_planned(unread_copy(sine_chain(4))))
    (remark,) = carried_out.remarks
    assert copies_in(module) == 1 and remark.kind is RemarkKind.ANALYSIS
    assert remark.reason.startswith("recomputing changes the peak from 20.0 KiB (20480 bytes) to 20.0 KiB")
    assert remark.reason.endswith(": the plan is applied anyway")


def unread_copy(module: ModuleOp) -> Sequence[StepPlan]:
    """Return a plan that copies the last of four sines after its only use in the backward pass."""
    ((function, step),) = numbered_steps(module)
    first_gradient, sine = step.graph.phases.index("gradient"), 3
    gates = step.graph.makes[first_gradient]
    group = CopyGroup("", first_gradient + 1, (Batch((sine,), step.graph.reads[sine]),), (1,), (), gates)
    return (StepPlan(function.sym_name.data, step.graph.fingerprint, Plan((group,))),)
