"""Remarks: decisions of the compiler with their reasons and source positions, `file:line:col: remark: reason`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xdsl.context import Context
from xdsl.ir import Operation

from .diagnostics import place_of, strict_refusal


class RemarkKind(StrEnum):
    """The kind of a remark, in LLVM's terms.

    Attributes:
        PASSED: The pass made a change.
        MISSED: The pass did not make a change.
        ANALYSIS: The remark reports a fact.
        FAILURE: A request failed.
    """

    PASSED = "passed"
    MISSED = "missed"
    ANALYSIS = "analysis"
    FAILURE = "failure"


class Topic(StrEnum):
    """The subject of a remark. Callers that treat some remarks differently read the topic, not the text.

    Attributes:
        STEP_LEFT: A step is left unchanged, for the reason in the remark.
        NOTHING_RECOMPUTED: A step is left unchanged, for the reasons in earlier remarks.
        LOOP_LEFT: A loop is left unchanged, for a reason that has no topic of its own below.
        LOOP_STACKS_SMALLEST: A loop is left unchanged, because no smaller set of stacks determines the values that the
            later loop reads.
        LOOP_COLLECTIVES: Like `LOOP_STACKS_SMALLEST`, for a loop whose collectives also prevent its recomputation.
        LOOP_NOT_COUNTED: A loop is left unchanged, because it has no counter.
        LOOPS_NOT_PROVED: All loops of a step are left unchanged, because their rewrite is not proved equal.
        CHOICE: The choice between candidates.
        EAGER: The peak on an executor that starts operations early, unlike XLA.
        COLLECTIVES: Operations with collectives, which are recomputed only if the option `collectives` allows it.
        COLLECTIVES_UNEQUAL: Operations with collectives that devices may execute a different number of times.
        MARK_REFUSED: An operation that the user marks for recomputation, but that must not run twice.
        NO_EFFECT: A mark, or a part of the selection, that has no effect.
        NOT_MOVED: A mark that only saves a value, because the options do not move marked values to the host.
        PEAK_RAISED: Copies that marks or segment budgets demand, but that raise a peak.
        NO_PEAK_LOWERED: Copies that marks demand, but that lower no peak.
        RECOMPUTED: The recomputed operations, and the reduction of memory in the whole module. Tools print these
            remarks only on request.
    """

    OTHER = ""
    STEP_LEFT = "step-left"
    NOTHING_RECOMPUTED = "nothing-recomputed"
    LOOP_LEFT = "loop-left"
    LOOP_STACKS_SMALLEST = "loop-stacks-smallest"
    LOOP_COLLECTIVES = "loop-collectives"
    LOOP_NOT_COUNTED = "loop-not-counted"
    LOOPS_NOT_PROVED = "loops-not-proved"
    CHOICE = "choice"
    EAGER = "eager"
    COLLECTIVES = "collectives"
    COLLECTIVES_UNEQUAL = "collectives-unequal"
    MARK_REFUSED = "mark-refused"
    NO_EFFECT = "no-effect"
    NOT_MOVED = "not-moved"
    PEAK_RAISED = "peak-raised"
    NO_PEAK_LOWERED = "no-peak-lowered"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, repr=False)
class Remark:
    """A decision of the compiler and its reason, attached to the operation that it concerns.

    Attributes:
        place: The position as text, for a remark from a cache, because its operation no longer exists; if empty, the
            place of the operation is printed.
        function: The symbol of the function, for an operation that a later pass may erase; if empty, the function that
            contains the operation is used.
        amounts: The quantities in the reason (bytes, FLOPs or counts) by name, for tools that read remarks.
        segments: The segments that the reason names in quotes, in the order of the reason.
        frees_nothing: Whether the reason is that recomputation would free no memory.
    """

    operation: Operation
    reason: str
    kind: RemarkKind = RemarkKind.MISSED
    topic: Topic = Topic.OTHER
    place: str = ""
    function: str = ""
    amounts: tuple[tuple[str, int], ...] = ()
    segments: tuple[str, ...] = ()
    frees_nothing: bool = False

    def __str__(self) -> str:
        return f"{self.place or place_of(self.operation)}: remark: {self.reason}"

    def __repr__(self) -> str:
        """Return the remark in one line, without the text of its operation."""
        topic = f", {self.topic.value}" if self.topic is not Topic.OTHER else ""
        return f"<{self.kind.value} remark{topic} at {self.place or place_of(self.operation)}: {self.reason}>"


MAX_PLACES = 3
"""The maximum number of places that a merged remark lists after its first place."""


def repetition_suffix(count: int, places: Iterable[str]) -> str:
    """Return the suffix of a remark that represents several remarks with the same text: ` (3 times: also at 7:9 and
    8:9)`.

    Args:
        count: The number of remarks.
        places: The places of all these remarks except the first, without duplicates.
    """
    if count == 1:
        return ""
    places = list(places)
    named = places if len(places) <= MAX_PLACES + 1 else [*places[:MAX_PLACES], f"{len(places) - MAX_PLACES} more"]
    listed = " and ".join([part for part in (", ".join(named[:-1]), *named[-1:]) if part])
    return f" ({count} times{f': also at {listed}' if listed else ''})"


def lines_of(remarks: Iterable[Remark | str]) -> list[str]:
    """Return the lines to print for remarks. Remarks with the same text become one line with their count and places.

    A remark may also be a string, which has no place.
    """
    merged = dict[tuple[bool, str], list[str]]()
    for remark in remarks:
        if isinstance(remark, str):
            merged.setdefault((False, remark), []).append("")
        else:
            merged.setdefault((True, remark.reason), []).append(remark.place or place_of(remark.operation))
    return [
        f"{f'{places[0]}: remark: ' if has_place else ''}{reason}"
        f"{repetition_suffix(len(places), list(dict.fromkeys(places))[1:])}"
        for (has_place, reason), places in merged.items()
    ]


@dataclass
class RemarkContext(Context):
    """A context that collects the remarks of passes in order."""

    remarks: list[Remark] = field(default_factory=list[Remark])


ON_REQUEST = frozenset({Topic.RECOMPUTED, Topic.EAGER})
"""The topics of remarks that are printed only with `--remarks`: details of a rewrite, and facts about other
executors."""


def tell(context: Context, remarks: Iterable[Remark]) -> None:
    """Report remarks to the context. If the context does not collect remarks, as in stock `xdsl-opt`, write them to
    standard error.

    Remarks that are printed only on request are not written to standard error."""
    if isinstance(context, RemarkContext):
        context.remarks.extend(remarks)
        return
    for line in lines_of(remark for remark in remarks if remark.topic not in ON_REQUEST):
        print(line, file=sys.stderr)


def without_effect(remarks: Iterable[Remark | str]) -> list[Remark]:
    """Return the remarks on marks, and on parts of the selection, that have no effect."""
    topics = (Topic.NO_EFFECT, Topic.MARK_REFUSED)
    return [remark for remark in remarks if isinstance(remark, Remark) and remark.topic in topics]


def demand_effect(remarks: Sequence[Remark], strict: bool) -> Sequence[Remark]:
    """Return the remarks on ineffective options, or raise the first remark as a `Refusal` if `strict` is true."""
    if strict and remarks:
        raise strict_refusal(remarks[0].operation, remarks[0].reason)
    return remarks
