"""One run of the stages: when the module stays unchanged, which alternative is named, and what the result contains.

The stages work on a copy of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from recompute.analysis.forecasts.peaks import PeakChange, Peaks
from recompute.analysis.request.checkpoints import OVERRIDDEN
from recompute.dialects.names import Names
from recompute.dialects.structured import GradientOp
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.plan import plan_nothing
from recompute.rewriting import stages
from recompute.rewriting.stages import run_stages
from recompute.search.choice.alternatives import Alternative
from recompute.search.choice.unchanged_steps import remark_on_unchanged_step
from recompute.search.outcome import RewriteResult
from recompute.support.diagnostics import BadRequest
from recompute.support.operations import every_operation
from recompute.support.remarks import Remark, Topic
from recompute.test.examples import original
from recompute.test.sine_chain import VALUE_BYTES, sine_chain
from recompute.transforms.outline_gradient import outline_gradient
from recompute.transforms.plans.cloned_steps import ClonedStep
from recompute.transforms.preparation.timelines import peaks_of

T = TypeVar("T")
IN_ORDER = RecomputeOptions(target="none")
UNCHANGED = "the step is left as it is"

LOOPS = """
func.func public @step(%x: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<8x256xf32>
  %r:4 = stablehlo.while(%i = %zero, %h = %x, %s = %empty, %t = %empty)
      : tensor<i32>, tensor<256xf32>, tensor<8x256xf32>, tensor<8x256xf32> attributes {recompute.phase = "primal"}
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.sine %h : tensor<256xf32>
    %b = stablehlo.tanh %a : tensor<256xf32>
    %a1 = stablehlo.reshape %a : (tensor<256xf32>) -> tensor<1x256xf32>
    %b1 = stablehlo.reshape %b : (tensor<256xf32>) -> tensor<1x256xf32>
    %s1 = stablehlo.dynamic_update_slice %s, %a1, %i, %z
      : (tensor<8x256xf32>, tensor<1x256xf32>, tensor<i32>, tensor<i32>) -> tensor<8x256xf32>
    %t1 = stablehlo.dynamic_update_slice %t, %b1, %i, %z
      : (tensor<8x256xf32>, tensor<1x256xf32>, tensor<i32>, tensor<i32>) -> tensor<8x256xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %b, %s1, %t1 : tensor<i32>, tensor<256xf32>, tensor<8x256xf32>, tensor<8x256xf32>
  }
  %q:2 = stablehlo.while(%i = %zero, %g = %r#1) : tensor<i32>, tensor<256xf32>
      attributes {recompute.phase = "gradient"}
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %at = stablehlo.subtract %last, %i : tensor<i32>
    %a1 = stablehlo.dynamic_slice %r#2, %at, %z, sizes = [1, 256]
      : (tensor<8x256xf32>, tensor<i32>, tensor<i32>) -> tensor<1x256xf32>
    %b1 = stablehlo.dynamic_slice %r#3, %at, %z, sizes = [1, 256]
      : (tensor<8x256xf32>, tensor<i32>, tensor<i32>) -> tensor<1x256xf32>
    %a = stablehlo.reshape %a1 : (tensor<1x256xf32>) -> tensor<256xf32>
    %b = stablehlo.reshape %b1 : (tensor<1x256xf32>) -> tensor<256xf32>
    %m = stablehlo.multiply %g, %b : tensor<256xf32>
    %k = stablehlo.multiply %m, %a : tensor<256xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %k : tensor<i32>, tensor<256xf32>
  }
  func.return %r#1, %q#1 : tensor<256xf32>, tensor<256xf32>
}
"""


def returning(value: T) -> Callable[..., T]:
    """Return a function that ignores its arguments."""

    def return_value(*_: object) -> T:
        return value

    return return_value


def reasons(result: RewriteResult) -> list[str]:
    return [remark.reason for remark in result.outcome.remarks]


@pytest.mark.parametrize("name", ["mlp.small.mlir", "unet.small.mlir"])
def test_stages_do_not_modify_the_module(name: str) -> None:
    module = original(name).clone()
    before = print_module(module)
    result, _ = run_stages(module, DEFAULT_OPTIONS)
    assert result.module is not None and result.outcome.copies
    assert print_module(module) == before


def test_step_with_copies_is_left_unchanged() -> None:
    rewritten, _ = run_stages(sine_chain(), IN_ORDER)
    assert rewritten.module is not None
    result, alternative = run_stages(rewritten.module, IN_ORDER)
    assert (result.module, alternative, result.outcome.steps) == (None, None, ())
    assert reasons(result) == [f"the step already has copies from an earlier run: {UNCHANGED}"]
    assert result.outcome.remarks[0].topic is Topic.STEP_LEFT


def test_result_without_copies_has_an_empty_plan_for_each_step() -> None:
    result, alternative = run_stages(sine_chain(), IN_ORDER.with_planned(plan_nothing))
    assert (result.module, alternative) == (None, None)
    assert reasons(result) == [f"nothing is recomputed: {UNCHANGED}"]
    assert result.outcome.remarks[0].topic is Topic.NOTHING_RECOMPUTED
    (step,) = result.outcome.steps
    assert step.function == "step" and not step.plan.groups and step.graph.forward.count(True) == 9


def test_option_at_fault_is_named_unless_a_plan_is_given() -> None:
    options = RecomputeOptions(Selection(segments="none"), target="none")
    result, _ = run_stages(sine_chain(), options)
    *_, last = reasons(result)
    assert last == (
        "nothing is recomputed (segments=none selects only marked operations: mark operations, or choose segments): "
        f"{UNCHANGED}"
    )
    planned, _ = run_stages(sine_chain(), options.with_planned(plan_nothing))
    assert reasons(planned) == [f"nothing is recomputed: {UNCHANGED}"]


def test_remarks_on_segments_precede_the_reason() -> None:
    result, _ = run_stages(sine_chain(2), IN_ORDER)
    first, last = reasons(result)
    assert first.startswith("no segments") and last == f"nothing is recomputed: {UNCHANGED}"


def test_last_reason_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A veto of the emitted step already says that the step is left unchanged."""
    veto_all_steps(monkeypatch)
    result, alternative = run_stages(sine_chain(), IN_ORDER)
    assert (result.module, alternative) == (None, None)
    assert [reason for reason in reasons(result) if UNCHANGED in reason] == [f"worse than before: {UNCHANGED}"]
    assert [step.plan.groups for step in result.outcome.steps] == [()]


def veto_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def why_all_worse(
        before: Mapping[str, Peaks], emitted: Mapping[FuncOp, Peaks], keeps_barriers: bool
    ) -> tuple[Remark, ...]:
        return tuple(remark_on_unchanged_step(function, "worse than before") for function in emitted)

    monkeypatch.setattr(stages, "why_all_worse", why_all_worse)


def test_cut_loops_count_as_recomputation() -> None:
    result, alternative = run_stages(parse_module(LOOPS), IN_ORDER.with_planned(plan_nothing))
    assert result.module is not None and alternative is None
    assert result.outcome.in_loops.copies == result.outcome.copies > 0
    before, after = (peaks_of(module, "order")["step"] for module in (parse_module(LOOPS), result.module))
    assert after < before and result.outcome.peak_changes == {"step": PeakChange((before, after))}


def test_remark_on_an_unchanged_step_beside_cut_loops_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    function = FuncOp("step", ((), ()))
    unchanged = remark_on_unchanged_step(function, "little memory is saved")
    monkeypatch.setattr(stages, "cost_remarks", returning([unchanged]))
    result, _ = run_stages(parse_module(LOOPS), IN_ORDER)
    assert reasons(result)[-1] == "little memory is saved: the rest of the step is left as it is"
    result, _ = run_stages(sine_chain(), IN_ORDER)
    assert reasons(result)[-1] == unchanged.reason


def test_vetoed_copies_beside_cut_loops_suggest_the_loops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    function = FuncOp("step", ((), ()))
    veto = remark_on_unchanged_step(function, "worse than before")
    monkeypatch.setattr(stages, "why_all_worse", returning((veto,)))
    result, alternative = run_stages(parse_module(LOOPS), IN_ORDER)
    assert result.module is None and alternative is Alternative.LOOPS_ALONE
    assert result.outcome.remarks[-1] == veto


@pytest.mark.parametrize("target", ["none", "stablehlo"])
def test_peaks_before_and_after_are_in_the_result(target: str) -> None:
    """The peak under the XLA:CPU model is only known for a target with barriers."""
    module = sine_chain()
    result, _ = run_stages(module, RecomputeOptions(target=target))
    assert result.module is not None
    change = result.outcome.peak_changes["step"]
    assert change.in_order == (peaks_of(module, "order")["step"], peaks_of(result.module, "order")["step"])
    assert change.in_order[0] == 9 * VALUE_BYTES > change.in_order[1]
    assert (change.xla is None) == (target == "none") == (result.outcome.saved_share is None)


def test_peaks_are_not_reported_under_a_budget() -> None:
    """The remark on the budget gives the peaks."""
    result, _ = run_stages(sine_chain(), RecomputeOptions(target="none", budget="50%"))
    assert result.outcome.copies and result.outcome.peak_changes == {}


def with_stated_checkpoint(name: str) -> ModuleOp:
    module = sine_chain()
    next(iter(module.ops)).attributes[Names.CHECKPOINTS] = ArrayAttr([StringAttr(name)])
    return module


def test_checkpoints_of_the_step_are_part_of_the_selection() -> None:
    result, _ = run_stages(with_stated_checkpoint("a4"), IN_ORDER)
    assert [group.segment for step in result.outcome.steps for group in step.plan.groups] == ["segment0"]
    with pytest.raises(BadRequest, match="checkpoint 'missing' names no operation"):
        run_stages(with_stated_checkpoint("missing"), IN_ORDER)


def test_remarks_on_the_selection_are_left_out_for_a_given_plan() -> None:
    """The plan replaces the selection."""
    module, options = with_stated_checkpoint("a4"), RecomputeOptions(Selection(segments="none"), target="none")
    searched, _ = run_stages(module, IN_ORDER)
    marked, _ = run_stages(module, options)
    planned, _ = run_stages(module, options.with_planned(searched.outcome.plans))
    assert OVERRIDDEN in reasons(marked)
    assert planned.outcome.plans == searched.outcome.plans != () and planned.outcome.remarks == ()


def test_limits_of_segments_are_checked_in_the_applied_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = list[int]()

    def check_limits(module: ModuleOp, limits: object, steps: Sequence[ClonedStep]) -> None:
        checked.extend(step.plan.copies for step in steps)

    monkeypatch.setattr(stages, "check_limits", check_limits)
    result, _ = run_stages(sine_chain(), IN_ORDER)
    assert checked == [result.outcome.copies]


CALLED = """
func.func public @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = func.call @f(%x) {recompute.phase = "primal"} : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = stablehlo.sine %a {recompute.phase = "primal"} : tensor<1024xf32>
  %c = stablehlo.sine %b {recompute.phase = "primal"} : tensor<1024xf32>
  %d = stablehlo.sine %c {recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %d {recompute.phase = "primal"} : tensor<1024xf32>
  %g = stablehlo.multiply %d, %c {recompute.phase = "gradient"} : tensor<1024xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %h, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
func.func private @f(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = stablehlo.cosine %x : tensor<1024xf32>
  %1 = stablehlo.tanh %0 : tensor<1024xf32>
  func.return %1 : tensor<1024xf32>
}
"""


def has_calls(module: ModuleOp | None) -> bool:
    assert module is not None
    return any(isinstance(op, CallOp) for op in every_operation(module))


@pytest.mark.parametrize(
    ("options", "may_raise", "alternative"),
    [
        (RecomputeOptions(target="none"), True, Alternative.FUNCTIONS_INLINED),
        (RecomputeOptions(target="none"), False, None),
        (RecomputeOptions(target="stablehlo"), True, None),
        (RecomputeOptions(target="none", calls=False), True, None),
    ],
    ids=["calls raise the peak", "they do not", "XLA inlines calls", "calls stay inlined"],
)
def test_restored_calls_that_may_raise_a_peak_suggest_inlined_functions(
    options: RecomputeOptions, may_raise: bool, alternative: Alternative | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "calls_may_raise_peak", returning(may_raise))
    result, named = run_stages(parse_module(CALLED), options)
    assert named is alternative
    assert has_calls(result.module) == options.calls == (result.outcome.restored_calls.calls > 0)


def test_step_without_calls_never_suggests_inlined_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "calls_may_raise_peak", returning(True))
    result, alternative = run_stages(sine_chain(), IN_ORDER)
    assert result.module is not None and alternative is None


@pytest.mark.parametrize(("target", "notes"), [("stablehlo", ["much memory if eager"]), ("none", [])])
def test_notes_on_the_eager_peak_are_only_for_targets_with_barriers(
    target: str, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Peaks, "notes", returning(["much memory if eager"]))
    result, _ = run_stages(sine_chain(), RecomputeOptions(target=target))
    assert [remark.reason for remark in result.outcome.remarks if remark.topic is Topic.EAGER] == notes
    assert result.outcome.eager_peak_bytes >= result.outcome.peak_changes["step"].in_order[1]


def test_raised_peaks_of_demanded_copies_are_the_last_remarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark forces copies, so that the step is not optional, and no veto applies."""
    demanded = list[str]()

    def remarks_on_raised_peaks(
        before: Mapping[str, Peaks], after: Mapping[FuncOp, Peaks], budgeted: object, keeps_barriers: bool
    ) -> list[Remark]:
        demanded.extend(before)
        return [Remark(function, "raised") for function in after]

    optional = list[str]()

    def why_all_worse(before: Mapping[str, Peaks], *_: object) -> tuple[Remark, ...]:
        optional.extend(before)
        return ()

    monkeypatch.setattr(stages, "remarks_on_raised_peaks", remarks_on_raised_peaks)
    monkeypatch.setattr(stages, "why_all_worse", why_all_worse)
    result, _ = run_stages(sine_chain(mark='recompute.recompute = "must_recompute"'), IN_ORDER)
    assert (demanded, optional) == (["step"], []) and reasons(result)[-1] == "raised"
    run_stages(sine_chain(), IN_ORDER)
    assert (demanded, optional) == (["step"], ["step"]), "copies of the search are optional"


def test_structured_step_is_structured_again() -> None:
    module = sine_chain()
    outline_gradient(module)
    assert has_gradient_region(module)
    result, _ = run_stages(module, IN_ORDER)
    assert result.outcome.copies and has_gradient_region(result.module)
    assert not has_gradient_region(run_stages(sine_chain(), IN_ORDER)[0].module)


def has_gradient_region(module: ModuleOp | None) -> bool:
    assert module is not None
    return any(isinstance(op, GradientOp) for op in every_operation(module))
