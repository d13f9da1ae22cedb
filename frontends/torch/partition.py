"""Partition a joint graph for less memory: import, rewrite, export, prove, and split as the default partitioner does.

AOTAutograd calls a partitioner with the joint graph of a step, and compiles the two graphs that it returns. A graph
that this frontend cannot handle is left to PyTorch's own partitioner, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import Any

import torch
from functorch.compile import default_partition
from xdsl.dialects.builtin import ModuleOp

from ...analysis.memory.timeline import Timeline
from ...analysis.step.order import functions_of
from ...analysis.step.views import value_bytes
from ...driver.api import Rewritten, memory, rewrite
from ...driver.verified import NotProved
from ...interpreters.prove import prove
from ...support.diagnostics import Refusal
from ...support.units import MINIMUM, is_share, parse_budget
from .exporter import write_joint
from .importer import read_joint, written_placeholders
from .options import Options
from .report import GraphReport, peak_with_states, plain_report, report_of, unchanged_report
from .unsupported import Unsupported
from .warning import warn_plain

Partitioned = tuple[torch.fx.GraphModule, torch.fx.GraphModule]
Partition = Callable[..., Partitioned]


_KEYWORDS = frozenset(signature(default_partition).parameters)


class BudgetNotKept(RuntimeError):
    """No plan keeps the budget; the message has the least that is known to be needed."""


@dataclass(frozen=True)
class Step:
    """A joint graph, and what it takes to plan and to split it.

    Attributes:
        module: The imported graph.
        joint: The graph that came.
        inputs, num_fwd_outputs, keywords: Arguments of the partitioner. `keywords` differ between versions.
    """

    module: ModuleOp
    joint: torch.fx.GraphModule
    inputs: Any
    num_fwd_outputs: int
    keywords: dict[str, Any]

    @property
    def tangent_bytes(self) -> int:
        """Bytes of the gradients of what the step returns: PyTorch makes them when the backward pass begins, and holds
        them until it ends."""
        (function,) = functions_of(self.module)
        arguments = zip(function.args, self.joint.graph.find_nodes(op="placeholder"), strict=True)
        return sum(value_bytes(argument) for argument, node in arguments if node.name.startswith("tangents"))

    def rewritten(self, options: Options) -> Rewritten:
        """Return the rewritten step. Raises `Refusal` and `NotProved`."""
        return _rewrite(self.module, options, self.tangent_bytes)

    def split(self, rewritten: Rewritten) -> Partitioned:
        """Return the halves of a rewritten step, whose graph is imported again and proved equal to the joint graph.

        Raises `NotProved`, and `Unsupported` for what has no form in FX.
        """
        graph = write_joint(rewritten.module, self.joint)
        proof = prove(self.module, read_joint(graph, self.num_fwd_outputs))
        if not proof.proved:
            raise NotProved(proof, f"the exported graph is not proved equal to the one that came: {proof.reason}")
        keywords = _for_graph(self.keywords, graph)
        return default_partition(graph, self.inputs, num_fwd_outputs=self.num_fwd_outputs, **keywords)

    @property
    def overwrites(self) -> bool:
        """Whether the step writes to one of its arguments."""
        return bool(written_placeholders(self.joint.graph))

    def report(self, rewritten: Rewritten) -> GraphReport:
        return report_of(self.module, rewritten, self.tangent_bytes)

    def unchanged_report(self) -> GraphReport:
        return unchanged_report(self.module, self.tangent_bytes)


@dataclass
class Partitioner:
    """A partition function for AOTAutograd, with a report for each graph that it has partitioned.

    Attributes:
        options: What to recompute.
        fallback: The partitioner of graphs that are left alone.
        reports: One for each graph, in the order of compilation.
    """

    options: Options
    fallback: Partition = default_partition
    reports: list[GraphReport] = field(default_factory=list[GraphReport])

    def __call__(
        self, joint: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **keywords: Any
    ) -> Partitioned:
        """Split a joint graph. `keywords`: those of the default partitioner, which differ between versions.

        Raises `BudgetNotKept` for a budget that no plan keeps.
        """
        start = perf_counter()
        try:
            module = read_joint(joint, num_fwd_outputs, marked=self.options.budget is None)
            halves, report = self.partitioned(Step(module, joint, inputs, num_fwd_outputs, keywords))
        except BudgetNotKept:
            raise
        except (Unsupported, Refusal, NotProved) as error:
            if isinstance(error, Refusal) and self.options.budget is not None:
                raise BudgetNotKept(error.reason) from error
            if isinstance(error, Refusal) and self.options.rewrite.strict:
                raise
            return self._left_alone(error, joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)
        except Exception as error:
            # A mistake of ours must not stop a step that runs without us.
            if self.options.rewrite.strict or self.options.rewrite.planner:  # a planner of the user
                raise
            internal = Unsupported("internal error", f"{type(error).__name__}: {error}; please report it")
            return self._left_alone(internal, joint, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)
        self.reports.append(replace(report, seconds=perf_counter() - start))
        return halves

    def partitioned(self, step: Step) -> tuple[Partitioned, GraphReport]:
        """Return the halves of the step that is to run, and the report. Raises `Refusal`, `NotProved`,
        `Unsupported`."""
        rewritten = step.rewritten(self.options)
        return step.split(rewritten), step.report(rewritten)

    def _left_alone(self, error: Unsupported | Refusal | NotProved, *arguments: Any, **keywords: Any) -> Partitioned:
        warn_plain(error)
        self.reports.append(plain_report(error))
        return self.fallback(*arguments, **keywords)


def _rewrite(module: ModuleOp, options: Options, tangent_bytes: int) -> Rewritten:
    """Return the rewrite; for the budget `min`, the one by segments if it needs less. Raises `Refusal` and `NotProved`.

    `tangent_bytes`: of the gradients of what the step returns, which are arguments and part of the peak.
    """
    chosen, limit = options.rewrite, None
    if options.budget is not None and options.budget != MINIMUM:
        (plain,) = memory(module).values()
        limit = _limit(options.budget, plain, tangent_bytes)
        if is_share(options.budget) and tangent_bytes:
            chosen = replace(chosen, budget=f"{limit + plain.argument_bytes}B")
    within = rewrite(module, chosen)
    ((before, after),) = within.memory().values()
    if limit is not None and (over := peak_with_states(after) - limit) > 0 and after.peak_bytes <= limit:
        within = rewrite(module, replace(chosen, budget=f"{max(0, limit - over + before.argument_bytes)}B"))
    if options.budget != MINIMUM:
        return within
    by_segments = rewrite(module, replace(options.rewrite, budget=None))
    return min(within, by_segments, key=_peak_bytes)


def _limit(budget: str, plain: Timeline, tangent_bytes: int) -> int:
    """Return the bytes that a budget leaves for temporaries: a share counts the gradients of the results among them."""
    if is_share(budget):
        return (parse_budget(budget, plain.peak_bytes + tangent_bytes) or 0) - tangent_bytes
    return (parse_budget(budget, 1) or 0) - plain.argument_bytes


def _peak_bytes(rewritten: Rewritten) -> int:
    ((_, after),) = rewritten.memory().values()
    return peak_with_states(after)


def _for_graph(settings: dict[str, Any], graph: torch.fx.GraphModule) -> dict[str, Any]:
    """Return the keywords of the default partitioner with nodes of the new graph in place of those of the old one, and
    without those of Inductor's."""
    keywords = {name: value for name, value in settings.items() if name in _KEYWORDS}
    nodes = keywords.get("static_lifetime_input_nodes")
    if not nodes:
        return keywords
    by_name = {node.name: node for node in graph.graph.find_nodes(op="placeholder")}
    return keywords | {"static_lifetime_input_nodes": type(nodes)(by_name[node.name] for node in nodes)}
