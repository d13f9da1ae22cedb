"""A joint graph on its way to a step with less memory: planned, rewritten, exported, proved, and split."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from functorch.compile import default_partition
from xdsl.dialects.builtin import ModuleOp

from ....analysis.step.order import functions_of
from ....analysis.step.views import value_bytes
from ....driver.api import Rewritten, rewrite
from ....driver.verified import NotProved
from ....mlir_io.printer import print_module
from ....options.recompute_options import RecomputeOptions
from ....planning.plan import Optimality
from ....proof.prove import prove
from ....support.diagnostics import Refusal
from ....support.units import MINIMUM, is_share, parse_budget, readable_bytes
from ..fx.exporter import write_joint
from ..fx.halves import Halves
from ..fx.importer import is_backward, read_joint, written_placeholders
from ..options import Options
from ..program_order.module_peaks import Peak
from .plan_cache import PlanCache, StoredPlan

TIGHTENED, SHRUNK = 6, 0.93
"""Maximum number of budgets that are tried below the lowest peak so far, and the share of it that is tried first."""
TIGHT = 0.99
"""The share of the lowest peak so far above which no smaller budget is tried: it would save less than one percent."""
LOWERED = 4
"""Maximum number of plans for a budget. Each further plan has a lower limit: random states of the previous plan
exceeded the budget by the difference."""
_WITH_STATES = "the states of random generators that copies restore exceed the budget with every plan that was tried"
_KEYWORDS = frozenset(signature(default_partition).parameters)


@dataclass(frozen=True)
class RewrittenStep:
    """A rewrite. It is proved equal when it is split (`JointStep.split`), as the exported graph that runs.

    Attributes:
        result: The rewrite.
        peak: Its peak in program order.
        remarks: The reasons of its remarks.
        optimality: Extra work and lower bound of its plan; None if no bound is known.
        is_stored: Whether an earlier process made the plan.
    """

    result: Rewritten
    peak: Peak
    remarks: tuple[str, ...]
    optimality: Optimality | None
    is_stored: bool = False

    @classmethod
    def of(cls, step: JointStep, options: RecomputeOptions) -> RewrittenStep:
        """Plan and rewrite the step. Raises `Refusal`."""
        result = rewrite(step.module, replace(options, proof=False))
        optimalities = [plan.plan.optimality for plan in result.plans]
        remarks = tuple(remark.reason for remark in result.remarks)
        return cls(result, Peak.of(result.module), remarks, optimalities[0] if len(optimalities) == 1 else None)

    @classmethod
    def of_stored(cls, step: JointStep, options: RecomputeOptions, stored: StoredPlan) -> RewrittenStep | None:
        """Rewrite the step by a stored plan; None if the plan does not fit, or if the peak is another one."""
        try:
            result = rewrite(step.module, replace(options, plan=stored.plan, budget=None, proof=False))
        except (Refusal, ValueError):
            return None
        peak = Peak.of(result.module)
        if peak.with_states != stored.peak_bytes:
            return None
        return cls(result, peak, stored.remarks, stored.optimality, is_stored=True)

    @property
    def stored_plan(self) -> StoredPlan:
        """The plan in the form that is kept for later processes."""
        return StoredPlan(self.result.plan_text, self.peak.with_states, self.remarks, self.optimality)


@dataclass(frozen=True)
class JointStep:
    """A joint graph, and the data to plan and to split it.

    Attributes:
        module: The imported graph.
        joint: The graph as AOTAutograd made it.
        inputs, num_fwd_outputs, keywords: Arguments of the partitioner. `keywords` differ between versions.
        for_inductor: Whether Inductor compiles the step.
    """

    module: ModuleOp
    joint: torch.fx.GraphModule
    inputs: Any
    num_fwd_outputs: int
    keywords: dict[str, Any]
    for_inductor: bool = False
    _smallest: dict[str, RewrittenStep] = field(default_factory=dict[str, "RewrittenStep"], repr=False)

    @cached_property
    def peak(self) -> Peak:
        """The peak of the plain step in program order."""
        return Peak.of(self.module)

    @cached_property
    def has_backward(self) -> bool:
        """Whether the backward pass has an operation."""
        arguments = self.joint.graph.find_nodes(op="placeholder")
        tangents = {node for node in arguments if node.name.startswith("tangents")}
        return any(
            node.op == "call_function" and (is_backward(node) or not tangents.isdisjoint(node.all_input_nodes))
            for node in self.joint.graph.nodes
        )

    @cached_property
    def tangent_bytes(self) -> int:
        """Bytes of the gradients of the results: PyTorch makes them when the backward pass begins, and holds them until
        it ends."""
        (function,) = functions_of(self.module)
        arguments = zip(function.args, self.joint.graph.find_nodes(op="placeholder"), strict=True)
        return sum(value_bytes(argument) for argument, node in arguments if node.name.startswith("tangents"))

    def rewrite(self, options: Options) -> RewrittenStep:
        """Return the rewritten step, by a plan of an earlier process if there is one. Raises `Refusal`."""
        cache = PlanCache.of(lambda: self.text, options)
        if (stored := cache.get()) is not None:
            rewritten = RewrittenStep.of_stored(self, options.rewrite, stored)
            if rewritten is not None:
                return rewritten
        rewritten = _rewrite(self, options)
        cache.put(rewritten.stored_plan)
        return rewritten

    def smallest_rewrite(self, options: RecomputeOptions) -> RewrittenStep:
        """Return the rewrite with the lowest peak, which is searched once. Raises `Refusal`."""
        least = Options(replace(options, budget=MINIMUM), MINIMUM)
        key = repr(least)
        if key not in self._smallest:
            self._smallest[key] = self.rewrite(least)
        return self._smallest[key]

    @cached_property
    def text(self) -> str:
        """The imported graph as MLIR, with locations: module paths decide on segments."""
        return print_module(self.module, debuginfo=True)

    def split(self, rewritten: RewrittenStep) -> Halves:
        """Return the halves of a rewritten step, whose graph is imported again and proved equal to the joint graph.

        Raises `NotProved`, and `Unsupported` for an operation without a form in FX.
        """
        graph = write_joint(rewritten.result.module, self.joint, self.for_inductor, views_again=True)
        proof = prove(self.module, read_joint(graph, self.num_fwd_outputs))
        if not proof.proved:
            raise NotProved(proof, f"the exported graph is not proved equal to the original: {proof.reason}")
        keywords = _for_graph(self.keywords, graph)
        return default_partition(graph, self.inputs, num_fwd_outputs=self.num_fwd_outputs, **keywords)

    @property
    def overwrites(self) -> bool:
        """Whether the step writes to one of its arguments."""
        return bool(written_placeholders(self.joint.graph))


def _rewrite(step: JointStep, options: Options) -> RewrittenStep:
    """Return the rewrite within the budget. Raises `Refusal`.

    Tangents are arguments of the step, and part of the peak that a budget limits.
    """
    if options.budget == MINIMUM:
        return _with_lowest_peak(step, options.rewrite)
    if options.budget is None:
        return RewrittenStep.of(step, options.rewrite)
    plain = step.peak
    limit = _limit(options.budget, step)
    chosen = options.rewrite
    if is_share(options.budget) and step.tangent_bytes:
        chosen = replace(chosen, budget=f"{limit + plain.argument_bytes}B")
    bound = limit
    try:
        for _ in range(LOWERED):
            within = RewrittenStep.of(step, chosen)
            over = within.peak.with_states - limit
            if over <= 0:
                return within
            bound = max(0, min(bound, within.peak.temporary_bytes) - over)
            chosen = replace(chosen, budget=f"{bound + plain.argument_bytes}B")
    except Refusal as error:
        return _smallest_within(step, options.rewrite, limit, error)
    return _smallest_within(step, options.rewrite, limit, Refusal(step.module, _WITH_STATES))


def _smallest_within(step: JointStep, options: RecomputeOptions, limit: int, error: Refusal) -> RewrittenStep:
    """Return the rewrite with the lowest peak if it is within the limit, after a budget was refused. Otherwise raises a
    `Refusal` that also states this peak."""
    try:
        smallest = step.smallest_rewrite(options)
    except Refusal:
        raise error from None
    if smallest.peak.with_states <= limit:
        return smallest
    reached = smallest.peak.with_states + step.tangent_bytes
    words = f"the lowest peak of any plan is {readable_bytes(reached)} in addition to weights and inputs"
    raise Refusal(error.operation, f"{error.reason}; {words}") from error


def _with_lowest_peak(step: JointStep, options: RecomputeOptions) -> RewrittenStep:
    """Return the rewrite with the lowest peak: by the plan of the solvers, or by segments. Raises `Refusal` if both are
    refused.

    The greedy search for the least budget may stop early. So smaller budgets are tried, by bisection between the lowest
    peak and the highest refused budget.
    """
    within, refused = list[RewrittenStep](), list[Refusal]()
    for each in (options, replace(options, budget=None)):
        try:
            within.append(RewrittenStep.of(step, each))
        except Refusal as error:
            refused.append(error)
    if not within:
        raise refused[0]
    best = min(within, key=lambda rewritten: rewritten.peak.with_states)
    highest_refused = 0
    for _ in range(TIGHTENED):
        budget = max(int(SHRUNK * best.peak.with_states), (highest_refused + best.peak.with_states) // 2)
        if budget > TIGHT * best.peak.with_states:
            break
        try:
            tighter = RewrittenStep.of(step, replace(options, budget=f"{budget + step.peak.argument_bytes}B"))
        except Refusal:
            highest_refused = budget
            continue
        if tighter.peak.with_states >= best.peak.with_states:
            break
        best = tighter
    return best


def _limit(budget: str, step: JointStep) -> int:
    """Return the bytes that a budget leaves for temporaries: a share counts the gradients of the results among them."""
    if is_share(budget):
        return (parse_budget(budget, step.peak.temporary_bytes + step.tangent_bytes) or 0) - step.tangent_bytes
    return (parse_budget(budget, 1) or 0) - step.peak.argument_bytes


def _for_graph(settings: dict[str, Any], graph: torch.fx.GraphModule) -> dict[str, Any]:
    """Return the keywords of the default partitioner with nodes of the new graph instead of nodes of the old one, and
    without keywords that only Inductor's partitioner has."""
    keywords = {name: value for name, value in settings.items() if name in _KEYWORDS}
    nodes = keywords.get("static_lifetime_input_nodes")
    if not nodes:
        return keywords
    by_name = {node.name: node for node in graph.graph.find_nodes(op="placeholder")}
    return keywords | {"static_lifetime_input_nodes": type(nodes)(by_name[node.name] for node in nodes)}
