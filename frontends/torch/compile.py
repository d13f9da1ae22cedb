"""Compile PyTorch training steps with `torch.compile` within a memory budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from typing_extensions import Unpack

from ...driver.api import explain
from ...driver.rewrites.rewritten import Explanations
from ...support.suggestions import suggestion
from .inductor.inductor_partitioner import InductorPartitioner
from .partition.options import OURS, Keywords, options_of
from .partition.partitioner import Partitioner
from .program_order.executor import compile_in_order
from .reports.compile_report import CompileReport, GraphReport
from .reports.dynamo_counters import breaks_since, count_breaks, count_cached

BACKENDS = ("aot_eager", "inductor")
_TORCH_KEYWORDS = frozenset({"fullgraph", "dynamic"})
"""The keywords that `compile` passes on to `torch.compile`."""


class Backend:
    """A backend for `torch.compile`. The backend uses AOTAutograd with the partitioner of this package, and runs
    operations in program order.

    Attributes:
        reports: The reports on the graphs with a backward pass that have been compiled so far.
    """

    def __init__(self, partitioner: Partitioner):
        self._partitioner = partitioner
        self._without_backward = 0
        self._breaks, self._cached = count_breaks(), count_cached()
        self._compile: Callable[..., Any] = aot_autograd(
            fw_compiler=compile_in_order,
            bw_compiler=compile_in_order,
            inference_compiler=self._inference,
            partition_fn=partitioner,
        )

    @property
    def reports(self) -> list[GraphReport]:
        return self._partitioner.reports

    def report(self) -> CompileReport:
        """Return the reports on all graphs that have been compiled so far."""
        cached = count_cached() - self._cached
        return CompileReport(tuple(self.reports), self._without_backward, breaks_since(self._breaks), cached)

    def explain(self) -> Explanations:
        """Explain which values each graph saves for its backward pass, and the effect of recomputing each segment."""
        selection = self._partitioner.options.rewrite.selection
        return Explanations(
            [
                explanation
                for graph in self.reports
                if graph.module is not None
                for explanation in explain(graph.module, selection)
            ]
        )

    def _inference(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        self._without_backward += 1
        return compile_in_order(graph, example_inputs)

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Any:
        return self._compile(graph, example_inputs, **keywords)


def backend(**keywords: Unpack[Keywords]) -> Backend:
    """Return a backend for `torch.compile`. Its steps need less memory, with bit-identical results.

    Args:
        budget: The memory limit: bytes, including weights and inputs (`"8GiB"` or a number); a share of the plain
            step's peak, excluding weights and inputs (`"50%"` or `0.5`); or `"min"` for the lowest peak. Among the
            plans within the limit, the one with the least extra work is chosen.
        reserve: The bytes to subtract from a budget in bytes, for tensors outside the graph, such as optimizer states.
        segments, policy, save, ...: The fields of `recompute.Selection`, which select the recomputed values if there is
            no budget. Segments are patterns of module paths, such as `"blocks.*"`.
        plan, planner, copies, attempts, cost, strict: As in `recompute.RecomputeOptions`.

    Raises:
        TypeError: For an unknown option.
        ValueError: For an option with an invalid value, and for options that contradict one another.

    Example:
        >>> step = torch.compile(model, backend=recompute.torch.backend(budget="8GiB"))  # doctest: +SKIP
    """
    return Backend(Partitioner(options_of(keywords)))


def compile(model: Callable[..., Any] | None = None, /, *, backend: str = "aot_eager", **keywords: Any) -> Any:
    """Compile a training step as `torch.compile` does, so that it needs less memory, with bit-identical results.

    Args:
        model: A module or a function. Without it, `compile` is a decorator.
        budget, reserve, segments, policy, ...: As for `backend`.
        backend: `"aot_eager"` runs operations in program order. `"inductor"` compiles kernels: each compiled step runs
            on zeros, and its peak is measured. At most four plans are tried, until the peak of one is within the
            budget. Inductor rounds results differently from eager mode.
        fullgraph, dynamic: As for `torch.compile`.

    Returns:
        The result of `torch.compile`, with two additional methods. `report()` and `explain()` describe the graphs that
        have been compiled so far.

    Raises:
        TypeError: For an unknown option.
        ValueError: For an option with an invalid value, and for options that contradict one another.

    Example:
        >>> step = recompute.torch.compile(model, budget="8GiB")  # doctest: +SKIP
        >>> step(batch).backward()  # doctest: +SKIP
        >>> print(step.report())  # doctest: +SKIP
    """
    if model is None:
        return partial(compile, backend=backend, **keywords)
    own_keywords = {name: value for name, value in keywords.items() if name in OURS}
    torch_keywords = {name: value for name, value in keywords.items() if name in _TORCH_KEYWORDS}
    if unknown := sorted(keywords.keys() - own_keywords.keys() - torch_keywords.keys()):
        raise TypeError(
            f"recompute.torch.compile: unknown option '{unknown[0]}'"
            f"{suggestion(unknown[0], sorted(OURS | _TORCH_KEYWORDS))}"
        )
    if backend not in BACKENDS:
        raise ValueError(f"recompute.torch.compile: unknown backend '{backend}'{suggestion(backend, BACKENDS)}")
    options = options_of(own_keywords)
    if backend == "inductor":
        partitioner = InductorPartitioner(options)
        made = Backend(partitioner.partitioner)
        compiled = torch.compile(model, options={"custom_partitioner_fn": partitioner}, **torch_keywords)
    else:
        made = Backend(Partitioner(options))
        compiled = torch.compile(model, backend=made, **torch_keywords)
    step: Any = compiled
    # `setattr` on an optimized module would set the attribute of the user's module instead.
    vars(step).update(report=made.report, explain=made.explain)
    return step
