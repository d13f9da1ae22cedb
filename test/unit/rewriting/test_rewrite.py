"""The table of alternatives in `rewriting/rewrite.py`: when each run follows, and when its result replaces the result
before it. The runs are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import UNCUT
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.plan import Plan, plan_nothing
from recompute.planning.plan_file import StepPlan
from recompute.rewriting import rewrite as rewrite_module
from recompute.rewriting.rewrite import replace_content, rewrite_in_place, run_with_alternatives, search_within
from recompute.search.budget.budget_problem import RunRewrite
from recompute.search.choice.alternatives import Alternative
from recompute.search.limits import Budget
from recompute.search.outcome import Recomputation, RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.support.remarks import Remark
from recompute.transforms.calls.restore import Restored

FIRST, LOOPS_ALONE, JOINED, INLINED = "first", "loops alone", "branches joined", "functions inlined"
IN_PLACE = "calls in place: "
IN_ORDER = RecomputeOptions(target="none")

CONDITIONAL = """
  {result} = "stablehlo.if"(%p) ({{ stablehlo.return %x : tensor<4xf32> }}, {{ stablehlo.return %x : tensor<4xf32> }})
    : (tensor<i1>) -> tensor<4xf32>"""


def step(conditionals: int = 0, foreign: str = "") -> ModuleOp:
    """Return a step with a call. `foreign`: a foreign attribute of the called function."""
    branches = "".join(CONDITIONAL.format(result=f"%r{number}") for number in range(conditionals))
    return parse_module(f"""
func.func public @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {{
  %a = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>{branches}
  func.return %a : tensor<4xf32>
}}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {f"attributes {{{foreign}}} " if foreign else ""}{{
  func.return %x : tensor<4xf32>
}}""")


def with_peak(count: int) -> ModuleOp:
    """Return a module with a peak of `count` numbers in program order."""
    kind = f"tensor<{count}xf32>"
    return parse_module(f"""
func.func public @main(%x: {kind}) -> {kind} {{
  %a = stablehlo.tanh %x : {kind}
  %b = stablehlo.sine %a : {kind}
  func.return %b : {kind}
}}""")


def functions_in_place(module: ModuleOp | None) -> list[Operation]:
    """Return the functions whose calls are left in place."""
    assert module is not None
    return [op for op in module.ops if Names.WHOLE in op.attributes]


@dataclass
class GivenRuns:
    """Stands for `run_stages`. `results`: the result of each run by name, with its alternative; None for a refusal.

    A run is named after the row of the table. Names of runs with calls in place begin with `IN_PLACE`.
    """

    results: dict[str, tuple[RewriteResult, Alternative | None] | None]
    runs: list[str] = field(default_factory=list[str])

    def __call__(
        self, module: ModuleOp, options: RecomputeOptions, joins_branches: bool = False
    ) -> tuple[RewriteResult, Alternative | None]:
        parts = [
            LOOPS_ALONE if options.planner is plan_nothing else "",
            JOINED if joins_branches else "",
            "" if options.calls else INLINED,
        ]
        name = " + ".join(filter(None, parts)) or FIRST
        has_calls_in_place = bool(functions_in_place(module))
        if has_calls_in_place:
            name = f"{IN_PLACE}{name}"
        self.runs.append(name)
        if (run := self.results[name]) is None:
            raise Refusal(module, f"{name} is refused")
        if not has_calls_in_place:
            return run
        # The rewritten copy contains the same functions.
        result, alternative = run
        return replace(result, module=module.clone()), alternative


def run_of(
    name: str, peak: int | None, alternative: Alternative | None = None, lost: frozenset[str] = frozenset()
) -> tuple[RewriteResult, Alternative | None]:
    """Return the result of a run with one remark, its name. `peak`: as in `with_peak`; None if it changes nothing."""
    module = None if peak is None else with_peak(peak)
    remark = Remark(with_peak(1), name)
    outcome = Recomputation((), (remark,), restored_calls=Restored(1, 1, {}, lost))
    return RewriteResult(module, outcome, UNCUT), alternative


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> GivenRuns:
    runs = GivenRuns({})
    monkeypatch.setattr(rewrite_module, "run_stages", runs)
    return runs


def reasons(result: RewriteResult) -> list[str]:
    return [remark.reason for remark in result.outcome.remarks]


def test_first_run_alone_if_no_alternative_may_be_better(given: GivenRuns) -> None:
    given.results = {FIRST: run_of(FIRST, 8)}
    result = run_with_alternatives(step(conditionals=1, foreign="test.foreign"), IN_ORDER)
    assert given.runs == [FIRST] and reasons(result) == [FIRST]


@pytest.mark.parametrize("peak", [4, 100])
def test_loops_alone_always_replace_vetoed_copies(given: GivenRuns, peak: int) -> None:
    alone = run_of(LOOPS_ALONE, peak)
    given.results = {FIRST: run_of(FIRST, None, Alternative.LOOPS_ALONE), LOOPS_ALONE: alone}
    result = run_with_alternatives(step(), IN_ORDER)
    assert given.runs == [FIRST, LOOPS_ALONE] and result.module is alone[0].module
    assert reasons(result) == [FIRST], "the remarks are those of the vetoed copies"


@pytest.mark.parametrize(("joined", "expected"), [(7, JOINED), (8, FIRST), (9, FIRST), (None, FIRST)])
def test_joined_branches_replace_the_first_run_if_the_peak_is_lower(
    given: GivenRuns, joined: int | None, expected: str
) -> None:
    given.results = {FIRST: run_of(FIRST, 8), JOINED: run_of(JOINED, joined)}
    result = run_with_alternatives(step(conditionals=2), IN_ORDER)
    assert given.runs == [FIRST, JOINED] and reasons(result) == [expected]


def test_refused_run_with_joined_branches_leaves_the_first_result(given: GivenRuns) -> None:
    given.results = {FIRST: run_of(FIRST, 8), JOINED: None}
    assert reasons(run_with_alternatives(step(conditionals=2), IN_ORDER)) == [FIRST]
    assert given.runs == [FIRST, JOINED]


def test_alternative_of_the_better_run_counts(given: GivenRuns) -> None:
    """With joined branches, no loop is left that has to be cut alone."""
    given.results = {FIRST: run_of(FIRST, None, Alternative.LOOPS_ALONE), JOINED: run_of(JOINED, 2)}
    assert reasons(run_with_alternatives(step(conditionals=2), IN_ORDER)) == [JOINED]
    assert given.runs == [FIRST, JOINED]


def test_alternative_of_the_worse_run_does_not_count(given: GivenRuns) -> None:
    given.results = {FIRST: run_of(FIRST, 8), JOINED: run_of(JOINED, 9, Alternative.FUNCTIONS_INLINED)}
    run_with_alternatives(step(conditionals=2), IN_ORDER)
    assert given.runs == [FIRST, JOINED]


def test_branches_are_not_joined_for_a_given_planner(given: GivenRuns) -> None:
    given.results = {LOOPS_ALONE: run_of(LOOPS_ALONE, 8)}
    run_with_alternatives(step(conditionals=2), IN_ORDER.with_planned(plan_nothing))
    assert given.runs == [LOOPS_ALONE]


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize(("inlined", "is_replaced"), [(4, True), (8, False), (None, False)])
def test_inlined_functions_replace_calls_that_raise_the_peak(
    given: GivenRuns, inlined: int | None, is_replaced: bool, joins: bool
) -> None:
    """The run with inlined functions joins branches if the result before it does."""
    calls_raise = Alternative.FUNCTIONS_INLINED
    given.results = {
        FIRST: run_of(FIRST, 16 if joins else 8, calls_raise),
        JOINED: run_of(JOINED, 8, calls_raise),
        INLINED: run_of(INLINED, inlined),
        f"{JOINED} + {INLINED}": run_of(INLINED, inlined),
    }
    result = run_with_alternatives(step(conditionals=2), IN_ORDER)
    assert given.runs == [FIRST, JOINED, f"{JOINED} + {INLINED}" if joins else INLINED]
    first, *others = reasons(result)
    assert first == (INLINED if is_replaced else JOINED if joins else FIRST)
    assert [reason.startswith("functions stay inlined") for reason in others] == [True] * is_replaced


def test_inlined_functions_follow_loops_alone_with_the_same_planner(given: GivenRuns) -> None:
    given.results = {
        FIRST: run_of(FIRST, None, Alternative.LOOPS_ALONE),
        LOOPS_ALONE: run_of(LOOPS_ALONE, 8, Alternative.FUNCTIONS_INLINED),
        f"{LOOPS_ALONE} + {INLINED}": run_of(INLINED, 4),
    }
    result = run_with_alternatives(step(), IN_ORDER)
    assert given.runs == [FIRST, LOOPS_ALONE, f"{LOOPS_ALONE} + {INLINED}"]
    assert reasons(result)[0] == INLINED


def test_calls_in_place_replace_a_result_that_lost_attributes(given: GivenRuns) -> None:
    given.results = {
        FIRST: run_of(FIRST, 8, lost=frozenset({"f"})),
        f"{IN_PLACE}{FIRST}": run_of(f"{IN_PLACE}{FIRST}", 100),
    }
    module = step(foreign="test.foreign")
    result = run_with_alternatives(module, IN_ORDER)
    assert given.runs == [FIRST, f"{IN_PLACE}{FIRST}"] and reasons(result) == [f"{IN_PLACE}{FIRST}"]
    assert functions_in_place(module) == functions_in_place(result.module) == [], "the marks of the run are removed"


def test_refused_run_with_calls_in_place_leaves_the_result_that_lost_attributes(given: GivenRuns) -> None:
    given.results = {FIRST: run_of(FIRST, 8, lost=frozenset({"f"})), f"{IN_PLACE}{FIRST}": None}
    assert reasons(run_with_alternatives(step(foreign="test.foreign"), IN_ORDER)) == [FIRST]
    assert given.runs == [FIRST, f"{IN_PLACE}{FIRST}"]


def test_calls_in_place_follow_a_refusal(given: GivenRuns) -> None:
    given.results = {FIRST: None, f"{IN_PLACE}{FIRST}": run_of(f"{IN_PLACE}{FIRST}", 8)}
    assert reasons(run_with_alternatives(step(foreign="test.foreign"), IN_ORDER)) == [f"{IN_PLACE}{FIRST}"]


def test_branches_are_not_joined_after_a_refusal(given: GivenRuns) -> None:
    """Without a given plan, joined branches are an alternative to a result, not to a refusal."""
    given.results = {FIRST: None, JOINED: run_of(JOINED, 8)}
    with pytest.raises(Refusal, match="error: first is refused"):
        run_with_alternatives(step(conditionals=2), IN_ORDER)
    assert given.runs == [FIRST]


@pytest.mark.parametrize(("foreign", "runs"), [("test.foreign", [FIRST, f"{IN_PLACE}{FIRST}"]), ("", [FIRST])])
def test_first_refusal_is_raised_if_no_run_succeeds(given: GivenRuns, foreign: str, runs: Sequence[str]) -> None:
    """Without foreign attributes, there are no calls to leave in place."""
    given.results = {FIRST: None, f"{IN_PLACE}{FIRST}": None}
    with pytest.raises(Refusal, match="error: first is refused"):
        run_with_alternatives(step(foreign=foreign), IN_ORDER)
    assert given.runs == runs


@pytest.mark.parametrize("refused", [LOOPS_ALONE, INLINED])
def test_refusal_of_a_required_alternative_is_raised(given: GivenRuns, refused: str) -> None:
    """The result before it lowers no peak, or may raise one."""
    first = (
        run_of(FIRST, None, Alternative.LOOPS_ALONE)
        if refused == LOOPS_ALONE
        else run_of(FIRST, 8, Alternative.FUNCTIONS_INLINED)
    )
    given.results = {FIRST: first, refused: None}
    with pytest.raises(Refusal, match=f"error: {refused} is refused"):
        run_with_alternatives(step(), IN_ORDER)


PLAN = (StepPlan("main", "0", Plan()),)


def test_plan_that_does_not_match_is_tried_with_joined_branches(given: GivenRuns) -> None:
    given.results = {FIRST: None, JOINED: run_of(JOINED, 100)}
    assert reasons(run_with_alternatives(step(conditionals=2), IN_ORDER.with_planned(PLAN))) == [JOINED]
    assert given.runs == [FIRST, JOINED]


@pytest.mark.parametrize(("conditionals", "runs"), [(2, [FIRST, JOINED]), (1, [FIRST])])
def test_plan_that_matches_neither_form_is_refused_for_the_first(
    given: GivenRuns, conditionals: int, runs: Sequence[str]
) -> None:
    given.results = {FIRST: None, JOINED: None}
    with pytest.raises(Refusal, match="error: first is refused"):
        run_with_alternatives(step(conditionals), IN_ORDER.with_planned(PLAN))
    assert given.runs == runs


MARKED_ARGUMENT = parse_module("""
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.custom_call @recompute.again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}""")


def test_marks_become_attributes_before_all_runs(given: GivenRuns) -> None:
    """The remarks on them precede those of the run."""
    given.results = {FIRST: run_of(FIRST, 8)}
    module = MARKED_ARGUMENT.clone()
    mark_remark, own = reasons(run_with_alternatives(module, IN_ORDER))
    assert "argument" in mark_remark and own == FIRST
    assert "custom_call" not in str(module)


@pytest.mark.parametrize("peak", [8, None])
def test_copied_branches_are_merged_in_the_final_result(
    given: GivenRuns, monkeypatch: pytest.MonkeyPatch, peak: int | None
) -> None:
    merged = list[ModuleOp]()
    monkeypatch.setattr(rewrite_module, "merge_copied_branches", merged.append)
    given.results = {FIRST: run_of(FIRST, 16), JOINED: run_of(JOINED, 8)}
    if peak is None:
        given.results = {FIRST: run_of(FIRST, None), JOINED: run_of(JOINED, None)}
    result = run_with_alternatives(step(conditionals=2), IN_ORDER)
    assert merged == ([] if peak is None else [result.module])


def test_content_is_replaced_in_place() -> None:
    module, source = with_peak(4), with_peak(8)
    (function,) = source.ops
    replace_content(module, source)
    assert list(module.ops) == [function] and not list(source.ops)


def test_unchanged_result_leaves_the_module(given: GivenRuns) -> None:
    module = step()
    operations = list(module.ops)
    given.results = {FIRST: run_of(FIRST, None)}
    assert [remark.reason for remark in rewrite_in_place(module, IN_ORDER).remarks] == [FIRST]
    assert list(module.ops) == operations
    given.results = {FIRST: run_of(FIRST, 8)}
    rewrite_in_place(module, IN_ORDER)
    assert len(list(module.ops)) == 1, "the called function is no longer in the module"


def test_invalid_input_is_refused_before_all_runs(given: GivenRuns) -> None:
    module = with_peak(4)
    next(iter(module.ops)).attributes["recompute.unknown"] = UnitAttr()
    with pytest.raises(Refusal):
        rewrite_in_place(module, IN_ORDER)
    assert given.runs == []


def test_every_candidate_of_a_budget_is_one_set_of_runs(given: GivenRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search receives a function that applies its plans, without the budget, with calls that lose attributes left
    in place."""
    given.results = {f"{IN_PLACE}{FIRST}": run_of(FIRST, 8), f"{IN_PLACE}{LOOPS_ALONE}": run_of(LOOPS_ALONE, 4)}
    module, options = step(foreign="test.foreign"), RecomputeOptions(target="none", budget="50%")

    def search(searched: ModuleOp, budget: Budget, _: RecomputeOptions, run: RunRewrite, __: object) -> RewriteResult:
        assert searched is module and budget.text == "50%"
        run(None, UNCUT)
        return run(plan_nothing, UNCUT)

    monkeypatch.setattr(rewrite_module, "cheapest_within_budget", search)
    result = search_within(module, Budget("50%", "order"), options)
    assert reasons(result) == [LOOPS_ALONE]
    assert given.runs == [f"{IN_PLACE}{FIRST}", f"{IN_PLACE}{LOOPS_ALONE}"]
    assert functions_in_place(module) == functions_in_place(result.module) == []


def test_host_moves_are_refused_under_the_model_of_xla() -> None:
    options = RecomputeOptions(budget="50%", offload="marked")
    with pytest.raises(Refusal, match="host memory is counted only in program order"):
        search_within(step(), Budget("50%", "xla"), options)
