"""Choose among the attempts at a module by the measured memory of their results, such as the memory that a compiler
reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...options.recompute_options import RecomputeOptions
from ...planning.objective import is_worth_it
from ...planning.plan import plan_nothing
from ...support.units import readable_bytes
from ..local_choices.limit_segments import selection_without_budgets
from .module_attempts import module_attempts


class MeasuredResult(Protocol):
    """The result of a rewrite, reduced to the properties that the choice reads. The memory of its module is
    measured."""

    @property
    def module(self) -> ModuleOp: ...
    @property
    def extra_flops(self) -> int: ...


Result = TypeVar("Result", bound=MeasuredResult)


@dataclass(frozen=True)
class MeasuredChoice(Generic[Result]):
    """The choice among measured results.

    Attributes:
        smallest: The result with the fewest bytes; in a tie, the one with the fewest extra FLOPs. None if it reduces
            memory too little.
        summary: The measured bytes of the unchanged module and of each result, as a string.
    """

    smallest: Result | None
    summary: str


def options_to_measure(module: ModuleOp, options: RecomputeOptions) -> Iterator[tuple[str, RecomputeOptions]]:
    """Yield the options of each rewrite to measure, with its description: one for each attempt with copies, and one
    that recomputes only in loops.

    Raises:
        Refusal: In the same cases as `recompute`.
    """
    unmeasured = replace(options, measure=None)
    of_attempt = replace(unmeasured, selection=selection_without_budgets(options.selection))
    for attempt in module_attempts(module, replace(options, offload="")):
        if attempt.copies:
            yield str(attempt.attempt), replace(of_attempt, plan=attempt.plans)
    if not options.selection.segment_budgets:
        yield "loops alone", replace(unmeasured, planner=plan_nothing, strict=False)


def choose_by_measurement(
    original: ModuleOp,
    results: Sequence[tuple[str, Result]],
    measure: Callable[[ModuleOp], int],
    workers: int,
) -> MeasuredChoice[Result]:
    """Measure the original module and each result, and choose the result with the fewest bytes; in a tie, choose the
    result with the fewest extra FLOPs.

    Args:
        original: The unchanged module.
        results: The results, each with its description.
        measure: Returns the bytes that a module needs.
        workers: The number of modules that are measured in parallel.
    """
    with ThreadPoolExecutor(workers) as pool:
        plain_bytes, *sizes = pool.map(measure, [original, *(result.module for _, result in results)])
    sized = [(size, result) for size, (_, result) in zip(sizes, results, strict=True)]
    listed = "; ".join(f"{words}: {readable_bytes(size)}" for (words, _), size in zip(results, sizes, strict=True))
    size_bytes, smallest = min(sized, key=lambda pair: (pair[0], pair[1].extra_flops))
    summary = f"measured: unchanged: {readable_bytes(plain_bytes)}; {listed}"
    return MeasuredChoice(smallest if is_worth_it(plain_bytes, size_bytes) else None, summary)
