"""The answer to the question of whether a step fits a memory budget, as data and as text.

    print(recompute.fit(step, "8GiB"))

prints, for instance:

    yes, with recomputation: the step fits in 28KiB at 11.1099 % extra work (at least 11.1099 % is proved to be needed)
      @step needs 28.0 KiB of device memory in program order: temporaries 20.0 KiB -> 16.0 KiB, arguments and results …
      1 operation is recomputed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ...options.loop_schedule import Loops, schedule_of
from ...planning.solvers.result import LIVE
from ...support.counted import counted_are
from ...support.units import format_bytes, format_percent, is_share, readable_bytes
from .lower_bound import LowerBound

STOPPED = "  the search was stopped: this is the best plan so far, and less work may suffice"
NO_BOUND_KNOWN = "no lower bound is known"


class Verdict(Enum):
    """The possible answers to the question of whether a step fits.

    Attributes:
        AS_IT_IS: The step fits unchanged.
        RECOMPUTED: The step fits with recomputation.
        NOT_FOUND: No plan was found, but it is not proved that none exists.
        NO: It is proved that no plan is within the budget, because the arguments and results alone or a lower bound in
            program order exceed it. For a step that JAX lowered for one device, the bound must exceed the budget by
            more than the measured error of program order. For a step on several devices, this answer is not given.
    """

    AS_IT_IS = "yes"
    RECOMPUTED = "with recomputation"
    NOT_FOUND = "not found"
    NO = "no"


@dataclass(frozen=True)
class Fit:
    """The answer to the question of whether a step fits a budget.

    The keys of mappings are function names.

    Attributes:
        budget: The budget as text.
        memory_model: The description of the memory model.
        verdict: Whether the step fits, unchanged or with recomputation.
        plain: Temporaries of the unchanged step in bytes.
        argument_and_result_bytes: Bytes of arguments and results on the device.
        limits: The temporaries that the budget allows, in bytes.
        peaks: Temporaries of the rewritten step in bytes; empty if it does not fit.
        smallest_peaks: Temporaries in bytes of the smallest rewrite that was found, if it is unknown whether the step
            fits; otherwise, or if no rewrite was found, empty.
        copies: The number of copies of operations in the rewritten step.
        extra_percent: The extra FLOPs in percent of the FLOPs of the step.
        bound_percent: The proven lower bound on the extra FLOPs, in percent; None if there is no bound.
        loops: The value of the option `loops` for which `bound_percent` holds; None if no loops were cut.
        reason: The reason that the step does not fit, or that no plan was found; "" if it fits.
        lower_bound: The proven lower bound on the temporaries in program order; None for a step of several blocks,
            or on several devices.
        devices: The number of devices that share the arrays. If there are several, bytes are counted for whole
            arrays instead of shards, and no lower bound is known.
        is_lowered_by_jax: Whether JAX lowered the step, so that XLA compiles it and may need less or more memory.
        finished: Whether the search was completed. If not, less work may suffice, and a refusal proves nothing.
    """

    budget: str
    memory_model: str
    verdict: Verdict
    plain: Mapping[str, int]
    argument_and_result_bytes: Mapping[str, int]
    limits: Mapping[str, int]
    peaks: Mapping[str, int]
    smallest_peaks: Mapping[str, int] = field(default_factory=dict[str, int])
    copies: int = 0
    extra_percent: float = 0.0
    bound_percent: float | None = None
    loops: Loops | None = None
    reason: str = ""
    lower_bound: LowerBound | None = None
    finished: bool = True
    devices: int = 1
    is_lowered_by_jax: bool = False

    @property
    def fits(self) -> bool:
        """Whether a plan within the budget was found."""
        return self.verdict in (Verdict.AS_IT_IS, Verdict.RECOMPUTED)

    @property
    def minimum_bytes(self) -> int | None:
        """A proven lower bound on the bytes on the device, in program order; None if there is none. A compiler that
        reorders or fuses operations may need less."""
        return (
            None if self.lower_bound is None else self.lower_bound.bytes + sum(self.argument_and_result_bytes.values())
        )

    def __str__(self) -> str:
        return "\n".join(fit_lines(self))


def fit_lines(answer: Fit) -> list[str]:
    """Return the answer as text: the verdict in the first line, then the bytes with their memory model."""
    if not answer.fits:
        return list(_no(answer) if answer.verdict is Verdict.NO else _not_found(answer))
    return list(_as_it_is(answer) if answer.verdict is Verdict.AS_IT_IS else _recomputation_lines(answer))


def _budget(answer: Fit) -> str:
    """Return the budget as the user gave it. For a share, add the bytes of temporaries that it allows."""
    if not is_share(answer.budget) or not answer.limits:
        return answer.budget
    sizes = [f"{format_bytes(limit)} of {format_bytes(answer.plain[name])}" for name, limit in answer.limits.items()]
    return f"{answer.budget} ({', '.join(sizes)} of temporaries)"


def _bytes(answer: Fit, count: int) -> str:
    """Return a number of bytes as rounded text. If only the rounded number equals a limit, add the exact number: for a
    budget of 576KiB, the text may be `576.0 KiB (589828 bytes)`."""
    limits = [
        limit + around
        for name, limit in answer.limits.items()
        for around in (0, answer.argument_and_result_bytes.get(name, 0))
    ]
    rounded = format_bytes(count)
    hides_difference = any(count != limit and rounded == format_bytes(limit) for limit in limits)
    return readable_bytes(count) if hides_difference else rounded


def _as_it_is(answer: Fit) -> Iterator[str]:
    yield f"yes, as it is: {_subject(answer)} fits in {_budget(answer)}"
    yield from _decided_by_compiler(answer)
    yield from _needs(answer, answer.plain)
    yield from _whole_arrays(answer)


def _recomputation_lines(answer: Fit) -> Iterator[str]:
    work = f"{format_percent(answer.extra_percent)} % extra work ({_bound_of(answer)})"
    yield f"yes, with recomputation: {_subject(answer)} fits in {_budget(answer)} at {work}"
    yield from _decided_by_compiler(answer)
    if not answer.finished:
        yield STOPPED
    yield from _needs(answer, answer.peaks)
    yield from _whole_arrays(answer)
    yield f"  {counted_are(answer.copies, 'operation')} recomputed"


def _subject(answer: Fit) -> str:
    """Return the subject of the first line. For a step that JAX lowered, the subject names the memory model, because
    only the compiled step shows whether it fits."""
    return f"{answer.memory_model}, the step" if answer.is_lowered_by_jax else "the step"


def _decided_by_compiler(answer: Fit) -> Iterator[str]:
    """For a step that JAX lowered, yield a warning: the compiled step may need more or less memory than the step as
    written.
    """
    if answer.is_lowered_by_jax:
        yield "  the bytes are those of the step as written; the compiled step may need less or more:"
        yield f"  recompute.jax.explain(step, *arguments, budget={answer.budget!r}) compiles it and measures its memory"


def _bound_of(answer: Fit) -> str:
    """Return the proven lower bound on the extra work as a phrase.

    A bound of 0 is reported as unknown if the plan has extra work."""
    if answer.bound_percent is None or answer.bound_percent == 0 < answer.extra_percent:
        return NO_BOUND_KNOWN
    cut = "" if answer.loops is None else f", with {schedule_of(answer.loops).pass_option}"
    return f"at least {format_percent(answer.bound_percent)} % is proved to be needed{cut}"


def _no(answer: Fit) -> Iterator[str]:
    if answer.limits and answer.lower_bound is not None:
        least = answer.lower_bound.bytes
        around = sum(answer.argument_and_result_bytes.values())
        yield (
            f"no: the step does not fit in {_budget(answer)}: the proven minimum is {_bytes(answer, least + around)} "
            f"of device memory, {readable_bytes(least)} of temporaries, in program order"
        )
        yield f"  a compiler that reorders or fuses operations may need less: {_compiling(answer)}"
    else:
        yield f"no: {answer.reason}"
    yield from _needs(answer, answer.plain)
    yield from _minimum(answer)


def _not_found(answer: Fit) -> Iterator[str]:
    only_in_order = _has_bound_above_limit(answer)
    if only_in_order:
        compiler = "but a compiler that reorders or fuses operations may need less"
        yield f"unknown: the step does not fit in {_budget(answer)} in program order, {compiler}"
    else:
        stopped = "" if answer.finished else " before the search was stopped"
        yield (f"unknown: no plan was found{stopped} with which the step fits in {_budget(answer)}, but one may exist")
    whole = "" if answer.devices == 1 else "counting whole arrays: "
    yield f"  {whole}{without_operations(answer.reason)}"
    if only_in_order:
        yield f"  {_compiling(answer)}"
    yield from _needs(answer, answer.plain)
    yield from _smallest(answer)
    yield from _whole_arrays(answer)
    yield from _minimum(answer)


def _has_bound_above_limit(answer: Fit) -> bool:
    """Return whether the proven lower bound on the temporaries in program order exceeds the limit."""
    bound = answer.lower_bound
    return bound is not None and bool(answer.limits) and bound.bytes > min(answer.limits.values())


def _compiling(answer: Fit) -> str:
    """Return the advice to compile the step and to measure its memory."""
    return f"recompute.jax.jit(step, budget={answer.budget!r}) compiles the step and measures its memory"


def _whole_arrays(answer: Fit) -> Iterator[str]:
    """For a step on several devices, yield a line with the note that bytes are counted for whole arrays instead of
    shards."""
    if answer.devices == 1:
        return
    shards = f"the shards on each of {answer.devices} devices"
    if answer.fits:
        yield f"  bytes are counted for whole arrays; {shards} need at most as much"
    else:
        yield f"  the model counts whole arrays, but {shards} need less: {_compiling(answer)} on one device"


def _minimum(answer: Fit) -> Iterator[str]:
    """Yield lines on the proven minimum of temporaries, if one is known."""
    if answer.lower_bound is not None:
        least = _bytes(answer, answer.lower_bound.bytes)
        yield f"  the proven minimum of temporaries in program order, {least}, is determined by"
        yield from (f"    {line}" for line in answer.lower_bound.lines())


def _smallest(answer: Fit) -> Iterator[str]:
    """Yield a line for each function with the device memory of the smallest plan found, and with its proven minimum."""
    least = answer.minimum_bytes
    proved = "" if least is None else f"; at least {_bytes(answer, least)} is proved to be needed"
    for name, peak in answer.smallest_peaks.items():
        needed = _bytes(answer, peak + answer.argument_and_result_bytes[name])
        yield (
            f"  with the smallest plan found, @{name} needs {needed} of device memory {answer.memory_model}: "
            f"temporaries {_bytes(answer, peak)}{proved}"
        )


def _needs(answer: Fit, peaks: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each function with its bytes on the device, divided into temporaries, arguments and results.

    `peaks`: the temporaries of each function in bytes."""
    for name, after in peaks.items():
        before, around = answer.plain[name], answer.argument_and_result_bytes[name]
        needed = _bytes(answer, after)
        change = needed if after == before else f"{_bytes(answer, before)} -> {needed}"
        yield (
            f"  @{name} needs {_bytes(answer, after + around)} of device memory {answer.memory_model}: "
            f"temporaries {change}, arguments and results {format_bytes(around)}"
        )


def without_operations(reason: str) -> str:
    """Return the reason for a refusal without its list of operations."""
    return reason.split(LIVE)[0]
