"""The Python API: the road of `recompute-opt` as functions.

import recompute

done = recompute.rewrite(text)                  # a module, or its text; proved equal, or an error
print(done.text, *done.remarks)
print(recompute.memory(done.module)["main"].peak_bytes, "bytes of temporaries at their peak")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..analysis.explain.explanation import Explanation
from ..analysis.memory.timeline import Timeline
from ..analysis.request.loop_schedule import demand_proof
from ..analysis.request.selection import AUTO, Selection
from ..analysis.step.copied import is_copy
from ..analysis.step.functions import functions_of
from ..dialects.context import make_context
from ..dialects.diagnostics import Refusal, Remark
from ..dialects.every import every_operation
from ..dialects.marks import is_named_as_mark
from ..dialects.parser import parse_module
from ..dialects.printer import print_module
from ..interpreters.prove import Proof
from ..interpreters.prove import prove as prove_modules
from ..planning.graph import Graph
from ..planning.objective import WORTH_IT
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan, from_json, to_json
from ..reports.explain import to_text
from ..rules.costs.cost import FLOPS
from ..rules.flops import flops
from ..transforms.clone import Planner
from ..transforms.lower import TARGETS
from ..transforms.merge_remat import without_remat
from ..transforms.plans.budget import Budget
from ..transforms.plans.carry_out import LEFT, Emission
from ..transforms.plans.host_moves import offload_asked
from ..transforms.plans.segment_budgets import of_rest
from ..transforms.plans.tried import tried_plans
from ..transforms.recompute import Recomputation, recomputed, recomputed_within
from ..transforms.take_marks import but_for_moves, take_marks
from .looking import MODELS, explanations_of, timelines_of
from .pipeline import Pipeline, passes_of
from .request import Request
from .road import NotProved, assumption_remarks, take, take_apart
from .verification import verify_module


@dataclass(frozen=True)
class Rewritten:
    """A module that computes the same as the one that came in. `proof` is None where none was asked for."""

    module: ModuleOp
    plans: tuple[StepPlan, ...]
    remarks: tuple[Remark, ...]
    proof: Proof | None
    copies: int
    extra_flops: int
    _original: ModuleOp = field(repr=False)

    @property
    def text(self) -> str:
        """MLIR with locations."""
        return print_module(self.module, debuginfo=True)

    @property
    def plan_text(self) -> str:
        """For `Request.plan`, and for `recompute{plan=…}`."""
        return to_json(self.plans)

    def memory(self, model: str = "order") -> dict[str, tuple[Timeline, Timeline]]:
        """For each function the timelines before and after."""
        before, after = memory(self._original, model), memory(self.module, model)
        return {name: (before[name], after[name]) for name in after}


def rewrite(step: ModuleOp | str, request: Request | None = None, *, name: str = "<input>") -> Rewritten:
    """Recompute what the request says. A module that is given stays as it is; `name` is that of a text, for errors.

    Raises `ParseError` for text that is no MLIR, `Refusal` for what cannot be done, `NotProved`, and `ValueError` for a
    request that contradicts itself or names an unknown target; `BadPlan`, which is one, for a plan that is none.
    """
    asked = (request or Request()).folded()
    if asked.proof:
        demand_proof(asked.loops)
    planned = _planned(asked)
    original, said = _unmarked(_module(step, name))
    remarks = but_for_moves(said, bool(asked.offload))
    if asked.pipeline is not None:
        return _through(original, asked, asked.pipeline, remarks)
    budget = None if asked.budget is None else Budget.of(asked.budget, asked.memory_model, asked.target)
    if asked.measure is not None and planned is None:
        least = _least(original, asked, asked.measure)
        return replace(least, remarks=(*remarks, *least.remarks))
    done, offload = list[Recomputation](), offload_asked(original, asked.offload, asked.cost)

    def write(module: ModuleOp) -> ModuleOp:
        start, how = _start(module, asked), (asked.selection, asked.copies, asked.target, asked.stagger)
        rest = asked.calls, asked.attempts, asked.loops, asked.cost, offload
        if budget is None:
            work, said = recomputed(start, *how, planned, *rest)
        else:
            found = recomputed_within(start, budget, *how, *rest)
            work, said = found.module, found.outcome
        done.append(said)
        if asked.strict and not said.copies:
            raise Refusal(module, f"{said.remarks[-1].reason} (strict)")
        return start.clone() if work is None else work

    try:
        module, proof = take_apart(original, write, asked.proof)
    except NotProved as error:
        if planned is not None or not done or not done[0].rolled.copies:
            raise
        left = rewrite(original, replace(asked, loops=False))
        said = Remark(functions_of(original)[0], f"loops are left as they are: not proved: {error.proof.reason}")
        return replace(left, remarks=(*remarks, said, *left.remarks))
    remarks = (*remarks, *done[0].remarks, *(assumption_remarks(proof, module) if proof is not None else ()))
    return Rewritten(module, done[0].plans, remarks, proof, done[0].copies, done[0].extra_flops, original)


def _through(original: ModuleOp, asked: Request, pipeline: Pipeline, said: tuple[Remark, ...]) -> Rewritten:
    """The passes of the pipeline, each verified, and the proof. Raises `BadPipeline`, a `ValueError`."""
    if (other := asked.beside_pipeline()) is not None:
        raise ValueError(f"a pipeline says what is done: {other} is an option of the pass 'recompute'")
    module, context = original.clone(), make_context()
    changes = [partial(one.apply, context) for one in passes_of(pipeline)]
    proof = take(module, changes, proof=asked.proof, original=original)
    remarks = (*said, *context.remarks, *(assumption_remarks(proof, module) if proof is not None else ()))
    copies = [op for op in every_operation(module) if is_copy(op)]
    if asked.strict and not copies:
        raise Refusal(module, "the pipeline makes no copies (strict)")
    plans = tuple(plan for text in context.plans for plan in from_json(text))
    return Rewritten(module, plans, remarks, proof, len(copies), sum(map(flops, copies)), original)


def _least(original: ModuleOp, request: Request, measure: Callable[[ModuleOp], int]) -> Rewritten:
    """What needs least of all attempts, by what is measured; the step as it is where none is worth it."""
    emission = Emission(request.target, request.stagger, request.calls)
    start = _start(original, request)
    plans = tried_plans(start, request.selection, request.attempts, request.copies, emission, request.loops)
    rest = replace(request, selection=of_rest(request.selection))
    tried = [(str(one.attempt), replace(rest, plan=one.plans, measure=None)) for one in plans if one.copies]
    if not request.selection.segment_budgets:
        tried.append(("loops alone", replace(request, planner=_nothing, measure=None, strict=False)))
    named = [(words, one) for words, each in tried if (one := rewrite(original, each)).copies]
    written = [one for _, one in named]
    if not written:
        return rewrite(original, replace(request, measure=None))
    with ThreadPoolExecutor(request.workers) as pool:
        before, *sizes = pool.map(measure, [original, *(one.module for one in written)])
    listed = "; ".join(f"{words}: {size}" for (words, _), size in zip(named, sizes, strict=True))
    said = f"measured, in bytes: as it is: {before}; {listed}"
    if min(sizes) <= before * (1 - WORTH_IT):
        _, _, place = min((size, one.extra_flops, n) for n, (size, one) in enumerate(zip(sizes, written, strict=True)))
        least = written[place]
        return replace(least, remarks=(Remark(functions_of(least.module)[0], said), *least.remarks))
    if request.strict:
        raise Refusal(functions_of(original)[0], f"{said}: {LEFT} (strict)")
    left = original.clone()
    return Rewritten(left, (), (Remark(functions_of(left)[0], f"{said}: {LEFT}"),), None, 0, 0, original)


def _nothing(graph: Graph) -> Plan:
    return Plan()


def _start(original: ModuleOp, request: Request) -> ModuleOp:
    """The module that attempts are made on, which the proof does not look at."""
    return without_remat(original) if request.merge_remat else original


def _planned(request: Request) -> Sequence[StepPlan] | Planner | None:
    if request.target not in TARGETS:
        raise ValueError(f"unknown target '{request.target}'; known are {', '.join(TARGETS)}")
    if sum(one is not None for one in (request.plan, request.planner, request.budget)) > 1:
        raise ValueError("a request has a plan, a planner or a budget, not several of them")
    if request.selection.segment_budgets and (request.plan is not None or request.planner is not None):
        raise ValueError("a plan or a planner says what is recomputed, and so do segment_budgets: give one of them")
    return request.planner or (from_json(request.plan) if isinstance(request.plan, str) else request.plan)


def prove(before: ModuleOp | str, after: ModuleOp | str) -> Proof:
    """Try to prove that both compute the same numbers, bit for bit. Raises `ParseError`, and `Refusal` where one of
    them does not verify."""
    modules = _module(before, "before"), _module(after, "after")
    for module in modules:
        verify_module(module)
    return prove_modules(*modules)


class Explanations(list[Explanation]):
    """One explanation for each step; `print` shows them as tables, as `recompute-opt -t explain` does."""

    @override
    def __str__(self) -> str:
        return "\n".join(map(to_text, self))

    __repr__ = __str__


def explain(step: ModuleOp | str, selection: Selection = AUTO, cost: str = FLOPS) -> Explanations:
    """What each step of the module saves for its backward pass, and what recomputing each segment would change.

    `cost`: as in `Request`. Raises `Refusal`.
    """
    return Explanations(explanations_of(_verified(step), selection, cost))


def memory(step: ModuleOp | str, model: str = "order") -> dict[str, Timeline]:
    """Bytes over time of each function that can be called from outside. `model`: order or xla; `ValueError` for others.

    Raises `Refusal` for dynamic shapes.
    """
    if model not in MODELS:
        raise ValueError(f"unknown model '{model}'; known are {', '.join(MODELS)}")
    return dict(timelines_of(_verified(step), model))


def context() -> Context:
    """An xDSL context with the dialects that are read and written here."""
    return make_context()


def as_module(step: ModuleOp | str, name: str = "<input>") -> ModuleOp:
    """A module, or its text, with marks that are written as calls as attributes: in a copy where it has any."""
    return _unmarked(_module(step, name))[0]


def _verified(step: ModuleOp | str) -> ModuleOp:
    module = as_module(step)
    verify_module(module)
    return module


def _module(step: ModuleOp | str, name: str) -> ModuleOp:
    return parse_module(step, name) if isinstance(step, str) else step


def _unmarked(module: ModuleOp) -> tuple[ModuleOp, tuple[Remark, ...]]:
    """Marks that are written as calls as attributes, in a copy of the module where it has any."""
    if not any(map(is_named_as_mark, module.walk())):
        return module, ()
    copy = module.clone()
    return copy, take_marks(copy).remarks
