"""Invalid options are refused before lowering, and valid ones reach the rewrite."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

import recompute
from recompute.frontends.jax.compilation.allocation import temporary_bytes
from recompute.frontends.jax.compilation.compiler_options import merges_copies
from recompute.frontends.jax.keywords.jit_options import JitOptions, options_of
from recompute.frontends.jax.keywords.keywords import OWN_KEYWORDS, JaxJitKeywords, JitKeywords
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.test.unit.frontends.jax.steps import batch, descent, forward, jax, mlp, weights

OFFLOADING = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[], names_which_can_be_offloaded=["a"], offload_src="device", offload_dst="pinned_host"
)
PLAN = '{"recompute_plan": 1, "steps": []}'


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"segments": ["a"]}, TypeError, "segments must be a str, not list"),
        ({"segments": ""}, ValueError, "segments must not be empty"),
        ({"policy": 3}, TypeError, "policy must be a str, a policy of jax.checkpoint_policies or a function, not int"),
        ({"policy": lambda prim, *_, **params: True}, TypeError, "must accept three arguments: the name"),
        ({"policy": lambda operation: True}, TypeError, "must accept three arguments: the name"),
        ({"policy": OFFLOADING}, TypeError, "cannot be read: give the policy by name"),
        ({"policy": "dots_savable"}, ValueError, "did you mean 'dots_saveable'"),
        ({"save": "dot"}, TypeError, r"save must be a sequence of str, not str: give \('dot',\)"),
        ({"names": "x"}, TypeError, r"names must be a sequence of str, not str: give \('x',\)"),
        ({"checkpoints": "h0"}, TypeError, r"checkpoints must be a sequence of str, not str: give \('h0',\)"),
        (
            {"cost": "roofline(h10)"},
            ValueError,
            r"recompute\.jax\.jit: cost: unknown device 'h10'; expected one of a100, h100",
        ),
        ({"cost": "flop"}, ValueError, "cost: unknown cost 'flop'; expected one of flops, bytes"),
        ({"cost": "missing.json"}, ValueError, "cost: the cost file missing.json cannot be read"),
        ({"skip": "1"}, TypeError, "skip must be a sequence of int, not str$"),
        ({"save": [1]}, TypeError, "save must be a str, not int"),
        ({"attempts": 0}, ValueError, "attempts must be at least 1, not 0"),
        ({"attempts": True}, TypeError, "attempts must be an int, not bool"),
        ({"copies": 0}, ValueError, "copies must be at least 1"),
        ({"segment_count": -1}, ValueError, "segment_count must be at least 0"),
        ({"skip": 1}, TypeError, "skip must be a sequence of int"),
        ({"strict": 1}, TypeError, "strict must be True or False"),
        ({"measure": "always"}, ValueError, "measure must be 'auto', True or False, not 'always'"),
        ({"measure": 1}, ValueError, "measure must be 'auto', True or False, not 1"),
        ({"plan": "{no"}, ValueError, "the plan is not valid JSON: [^;]*$"),
        (
            {"plan": "plan.json"},
            ValueError,
            r"in Python, plan is the JSON text, not a path: pass Path\('plan.json'\).read_text\(\)",
        ),
        ({"plan": [1]}, TypeError, "plan must be the text of a plan or a sequence of StepPlan, not int"),
        ({"planner": "mine"}, TypeError, "planner must be a function"),
        ({"plan": PLAN, "planner": print}, ValueError, "plan= or planner=, not both"),
        ({"plan": PLAN, "segments": "block*"}, ValueError, "plan= and segments= both select the values to recompute"),
        ({"planner": print, "save": ["dot"]}, ValueError, "planner= and save= both select the values to recompute"),
        ({"checkpoints": ["a"], "segments": "b"}, ValueError, "segments= or checkpoints=, not both"),
        ({"search": -1}, ValueError, "search must be at least 0"),
        ({"search": 2, "planner": print}, ValueError, "planner= and search= both select the values to recompute"),
        ({"pipeline": 3}, TypeError, "pipeline must be a str such as"),
        ({"pipeline": ["recompute", 3]}, ValueError, "consist of names and passes, not of int"),
        ({"pipeline": "recompute-inlin"}, ValueError, "did you mean 'recompute-inline'"),
        ({"pipeline": "recompute{segment=a}"}, ValueError, "has no option 'segment'; did you mean 'segments'"),
        ({"pipeline": "recompute{"}, ValueError, "cannot read the pipeline"),
        ({"pipeline": "recompute", "plan": PLAN}, ValueError, "plan= or pipeline=, not both"),
        (
            {"pipeline": "recompute", "outputs": True},
            ValueError,
            "pipeline= and outputs= both select the values to recompute",
        ),
        (
            {"budgett": "8GiB"},
            TypeError,
            r"recompute\.jax\.jit got an unexpected keyword argument 'budgett'; did you mean 'budget'\?",
        ),
        ({"segment": "block*"}, TypeError, r"unexpected keyword argument 'segment'; did you mean 'segments'\?"),
        (
            {"donate_argnum": 0},
            TypeError,
            r"unexpected keyword argument 'donate_argnum'; did you mean 'donate_argnums'\?",
        ),
        ({"zzz": 0}, TypeError, "unexpected keyword argument 'zzz'$"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        recompute.jax.jit(mlp().step, **options)
    with pytest.raises(kind, match=words):
        recompute.jax.jit(**options)


def test_signature_lists_every_keyword():
    parameters = inspect.signature(recompute.jax.jit).parameters
    assert list(parameters) == ["fn", *JitKeywords.__annotations__]
    assert parameters["budget"].annotation == str | float | None and parameters["budget"].default is None
    assert (parameters["segments"].default, parameters["attempts"].default) == ("auto", RecomputeOptions().attempts)
    defaults = {name: parameter.default for name, parameter in parameters.items() if name != "fn"}
    ours = {name: value for name, value in defaults.items() if name not in JaxJitKeywords.__annotations__}
    assert recompute.jax.jit(mlp().step, **ours).lower(weights(), batch()).rewritten is not None


def test_second_function_is_rejected():
    with pytest.raises(TypeError, match="takes one function, not 2"):
        recompute.jax.jit(print, print)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("options", [{"segments": "layer*"}, {"checkpoints": ["nowhere"]}])
def test_unmatched_selection_is_rejected(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jax.stages.Lowered, "compile", None)
    with pytest.raises(ValueError, match="step: "):
        recompute.jax.jit(mlp().step, **options)(weights(), batch())


def copies(**options: Any) -> int:
    keywords: Any = {"segments": "block*", "attempts": 1, **options}
    lowered = recompute.jax.jit(mlp().step, **keywords).lower(weights(), batch())
    assert lowered.rewritten is not None
    return lowered.rewritten.copies


def test_options_reach_the_rewrite():
    everything = copies()
    for options in ({"segments": "block[01]"}, {"policy": "dots_saveable"}, {"save": ["*sine"]}, {"skip": [0]}):
        assert 0 < copies(**options) < everything, options


def test_plan_text_or_planner_replaces_the_search():
    first = recompute.jax.jit(mlp().step).lower(weights(), batch())
    assert first.rewritten is not None
    again = recompute.jax.jit(mlp().step, plan=first.rewritten.plan_text).lower(weights(), batch())
    assert again.as_text() == first.as_text()
    plan, seen = first.rewritten.plans[0].plan, list[recompute.Graph]()

    def planner(graph: recompute.Graph) -> recompute.Plan:
        seen.append(graph)
        return plan

    by_planner = recompute.jax.jit(mlp().step, planner=planner).lower(weights(), batch()).rewritten
    assert seen and by_planner is not None and by_planner.copies == first.rewritten.copies


def test_plan_for_another_step_is_rejected():
    result = recompute.jax.jit(mlp().step).lower(weights(), batch()).rewritten
    assert result is not None
    with pytest.raises(recompute.Refusal):
        recompute.jax.jit(mlp().step, plan=result.plan_text)(weights(2), batch())


def test_strict_rejects_an_unchanged_step():
    with pytest.raises(recompute.Refusal, match=r"computes no gradient, .*take the gradient inside"):
        recompute.jax.jit(forward(), strict=True)(weights(), batch())
    with pytest.raises(recompute.Refusal, match=r"left as it is \(strict\)"):
        recompute.jax.jit(lambda: descent(forward())(weights(), batch()), strict=True)()


STAGES = "recompute-inline,recompute-mark{segments=block*},recompute-clone,recompute-cse,recompute-lower"


def test_pipeline_is_given_by_name_or_as_passes():
    """A pipeline may combine a user's pass with the passes of this project."""

    @dataclass(frozen=True)
    class KeepSines(ModulePass):
        name = "keep-sines"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for operation in op.walk():
                if operation.name == "stablehlo.sine":
                    operation.attributes["recompute.recompute"] = StringAttr("must_save")

    def sines(pipeline: Any) -> int:
        lowered = recompute.jax.jit(mlp().step, pipeline=pipeline).lower(weights(), batch())
        assert lowered.why is None and lowered.rewritten is not None and lowered.rewritten.proof
        return lowered.as_text().count("stablehlo.sine")

    assert sines(STAGES) == 2 * len(weights())
    assert sines(["recompute-inline", KeepSines(), STAGES]) == len(weights())
    assert sines("recompute{segments=block1}") == len(weights()) + 1


def test_pipeline_without_copies_leaves_plain_step():
    with pytest.warns(recompute.jax.NothingSaved, match="the plain step runs"):
        recompute.jax.jit(mlp().step, pipeline="recompute-inline").lower(weights(), batch())
    with pytest.raises(recompute.Refusal, match="makes no copies"):
        recompute.jax.jit(mlp().step, pipeline="recompute-inline", strict=True).lower(weights(), batch())


def test_pipeline_excludes_options_of_recompute():
    with pytest.raises(
        ValueError,
        match="copies= is an option of the pass 'recompute': with pipeline=, give it there",
    ):
        recompute.jax.jit(mlp().step, pipeline="recompute", copies=3)


def test_search_chooses_smallest_compiled_attempt():
    arguments = weights(8), batch(1024)
    sizes: list[int] = []
    for search in (1, 4):
        lowered = recompute.jax.jit(mlp().step, search=search).lower(*arguments)
        size = temporary_bytes(lowered.compile())
        assert size is not None and lowered.rewritten is not None
        message = lowered.rewritten.remarks[0].reason
        before, *tried = [int(match) for match in re.findall(r"(\d+) bytes", message)]
        assert len(tried) <= search and size == min(tried) < before
        sizes.append(size)
    assert sizes[1] < sizes[0] or (sizes[1] == sizes[0] and not merges_copies(("cpu",)))


def test_keywords_are_the_fields_of_the_options():
    selection, options = ({field.name for field in fields(item)} for item in (Selection, RecomputeOptions))
    not_for_jax = {"selection", "target", "memory_model", "workers", "merge_remat"}
    assert selection | options - not_for_jax | {"search"} == OWN_KEYWORDS
    assert set(JaxJitKeywords.__annotations__) <= inspect.signature(jax.jit).parameters.keys()


@pytest.mark.parametrize("is_nested", [False, True])
def test_pipeline_that_does_not_lower_is_rejected(is_nested: bool):
    """The error names a remaining recompute operation and its line; `jax.export` up to jax 0.11 drops the lines of a
    nested step."""
    step = recompute.jax.jit(mlp().step, pipeline="recompute-inline,recompute-mark{segments=block*},recompute-clone")
    called: Any = jax.jit(step) if is_nested else step
    line = r"\.py:\d+:\d+"
    place = rf"(^step:\d+:\d+|{line})" if is_nested else line
    with pytest.raises(
        recompute.Refusal,
        match=f"{place}: error: recompute.token is unknown to JAX: .* end with the pass recompute-lower",
    ):
        called(weights(), batch())
    lowered = recompute.jax.jit(
        mlp().step, pipeline="recompute-inline,recompute-mark{segments=block*},recompute-clone,recompute-lower"
    ).lower(weights(), batch())
    assert lowered.rewritten is not None and lowered.rewritten.copies


def test_misplaced_option_error_names_its_place():
    step = recompute.jax.jit(mlp().step)
    with pytest.raises(TypeError, match=r"budget= is an option of recompute\.jax\.jit, not an argument"):
        step.report(weights(), batch(), budget=0.5)


def test_misspelt_keyword_of_a_call_gets_a_suggestion():
    """The suggestion is an argument of the step, or an option; wrappers with keywords of their own are accepted."""

    def plain(w: Any, x: Any) -> Any:
        return mlp().step(w, x)

    @functools.wraps(plain)
    def with_flag(*args: Any, flag: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs)

    step = recompute.jax.jit(plain)
    option = (
        r"plain got an unexpected keyword argument 'budgets'; did you mean 'budget', an option of recompute\.jax\.jit"
    )
    calls: list[Any] = [step, step.lower, step.report, step.explain, partial(recompute.jax.explain, jax.jit(plain))]
    for call in calls:
        with pytest.raises(TypeError, match=option):
            call(weights(), batch(), budgets="1MiB")
        with pytest.raises(TypeError, match=r"plain got an unexpected keyword argument 'xx'; did you mean 'x'\?$"):
            call(weights(), xx=batch())
    assert recompute.jax.jit(with_flag).lower(weights(), batch(), flag=1.0) is not None


def test_policy_of_wrong_type_is_rejected():
    number: Any = 5
    with pytest.raises(TypeError, match=r"policy must be a str, a policy .* or a function, not int"):
        recompute.jax.jit(mlp().step, policy=number)


def test_options_of_the_rewrite_have_one_source():
    """`JitOptions` repeats no field of `RecomputeOptions`; `measure` is a switch here, and a function there."""
    shared = {option.name for option in fields(JitOptions)} & {option.name for option in fields(RecomputeOptions)}
    assert shared == {"measure"}
    options = options_of({"budget": "50%", "time_limit": 3})
    assert (options.budget, options.rewrite.budget, options.rewrite.time_limit) == ("50%", "50%", 3)
    alone = options.rewrite_without_budget
    assert alone == replace(options.rewrite, budget=None, time_limit=None)
