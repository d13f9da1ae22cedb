"""Run a script of the corpus in eager mode and under `recompute.torch`, and compare the results bit by bit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch

from recompute import RecomputeOptions, rewrite
from recompute.benchmarks.torch.refusals import describe_error, first_line, is_refusal
from recompute.benchmarks.torch.scripts.script import Compile, Results, Script
from recompute.benchmarks.torch.training_step import Outcome
from recompute.planning.graph import Graph
from recompute.planning.liveness import peak_bytes
from recompute.planning.plan import Plan
from recompute.planning.solvers.solve_graph import problem_of_graph
from recompute.planning.solvers.working_set import largest_working_set

DIFFERENCES = 3
"""The number of differing tensors that the detail of a judgement names."""


class ScriptVerdict(StrEnum):
    """The outcome of a script under `recompute.torch`. The last three members are defects of `recompute`."""

    EQUAL = "equal"
    FALLBACK = "equal, fallback"
    AS_TORCH = "equal to torch.compile"
    ERROR_AS_TORCH = "error of torch.compile"
    BROKEN = "fails in eager mode"
    REFUSED = "budget refused"
    WRONG = "WRONG"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"

    @property
    def is_fault(self) -> bool:
        """Whether the verdict makes the benchmark fail."""
        return self in (ScriptVerdict.WRONG, ScriptVerdict.CRASH, ScriptVerdict.TIMEOUT)


@dataclass(frozen=True)
class Judgement:
    """The verdict on a script, with the reason, the differences or the error."""

    script: str
    verdict: ScriptVerdict
    detail: str = ""


@dataclass(frozen=True)
class ScriptRun:
    """The results of a run, or the exception that ended it."""

    results: Results | None
    error: Exception | None


def eager(target: Any) -> Any:
    """Return the target uncompiled. In the eager run, this function replaces `compile`."""
    return target


def compile_with_torch(target: Any) -> Any:
    """Compile with PyTorch's backend `aot_eager`, which recomputes no values."""
    return torch.compile(target, backend="aot_eager")


@dataclass(frozen=True)
class Ours:
    """A callable that compiles with `recompute.torch` within a budget (or with `none`), and stores the backends for
    their reports."""

    budget: str
    backends: list[Any] = field(default_factory=list)
    of_workers: list[Any] = field(default_factory=list)
    """Reports on graphs that the script's worker processes compiled."""

    def __call__(self, target: Any) -> Any:
        import recompute.torch as rt

        self.backends.append(rt.backend(budget=None if self.budget == "none" else self.budget))
        return torch.compile(target, backend=self.backends[-1])

    def reports(self) -> list[Any]:
        """Return a report for each compiled graph, including those of worker processes."""
        return [*(report for backend in self.backends for report in backend.reports), *self.of_workers]

    def reasons_without_graphs(self) -> list[str]:
        """Return the reason of each backend that compiled no graph with a backward pass."""
        return [] if self.of_workers else [backend.report().reason for backend in self.backends if not backend.reports]

    def detail(self) -> str:
        """Return the numbers of graphs and copies, and the reasons why graphs are unchanged, as one line."""
        reports = self.reports()
        reasons = [reason_for_no_copies(report) for report in reports if not report.copies]
        copies = sum(report.copies for report in reports)
        reasons += self.reasons_without_graphs()
        return "; ".join([f"{len(reports)} graphs, {copies} copies", *map(first_line, dict.fromkeys(reasons))])


def reason_for_no_copies(report: Any) -> str:
    """Return the reason why a graph has no copies.

    There are three possible reasons: the graph was left to PyTorch, a single operation needs as much memory as the peak
    of the step, or the rewrite reports a reason.
    """
    if report.reason or report.module is None:
        return report.reason
    graphs = list[Graph]()

    def planner(graph: Graph) -> Plan:
        graphs.append(graph)
        return Plan()

    rewrite(report.module, RecomputeOptions(target="none", planner=planner))
    for graph in graphs:
        needed = largest_working_set(problem_of_graph(graph)).bytes
        if needed == peak_bytes(graph):
            return f"one operation alone needs the peak of {needed} bytes, which copies cannot reduce"
    return report.remarks[-1] if report.remarks else "no remark"


def attempt(script: Script, compile: Compile) -> ScriptRun:
    """Run a script, and return its results or its exception."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ScriptRun(script.body(compile), None)
        except Exception as error:
            return ScriptRun(None, error)


def judge(script: Script, budget: str) -> Judgement:
    """Compare a script's results under `recompute.torch` with its eager results and, if they differ, with those under
    `aot_eager`."""
    plain = attempt(script, eager)
    if plain.results is None:
        return Judgement(script.name, ScriptVerdict.BROKEN, describe_error(plain.error))
    compile = Ours(budget)
    own = attempt(script, compile)
    if own.results is None:
        return Judgement(script.name, error_verdict(script, own.error), describe_error(own.error))
    lines = Outcome(own.results).differences(Outcome(plain.results))
    if not lines:
        falls_back = any(report.reason for report in compile.reports())
        return Judgement(script.name, ScriptVerdict.FALLBACK if falls_back else ScriptVerdict.EQUAL, compile.detail())
    by_pytorch = attempt(script, compile_with_torch)
    if by_pytorch.results is not None and not Outcome(own.results).differences(Outcome(by_pytorch.results)):
        return Judgement(script.name, ScriptVerdict.AS_TORCH, compile.detail())
    shown = ", ".join(lines[:DIFFERENCES])
    return Judgement(script.name, ScriptVerdict.WRONG, f"{len(lines)} differ: {shown}; {compile.detail()}")


def error_verdict(script: Script, error: Exception | None) -> ScriptVerdict:
    """Return the verdict on an error: a rejected budget, an error that PyTorch raises too, or a crash."""
    if is_refusal(error):
        return ScriptVerdict.REFUSED
    by_pytorch = attempt(script, compile_with_torch)
    return ScriptVerdict.ERROR_AS_TORCH if type(error) is type(by_pytorch.error) else ScriptVerdict.CRASH
