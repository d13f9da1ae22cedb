"""Errors and remarks with a source position: `file:line:col: error: cause and remedy`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from .locations import position_of_operation
from .operations import name_of

UNKNOWN = "<unknown>"


def position_of(op: Operation) -> str:
    """Return `file:line:col` of the operation, or of the nearest operation with a position.

    Enclosing operations are tried first, then the operations that follow in the same block, then nested operations.
    Returns `<unknown>` if none of these operations has a position.
    """
    for candidate in _by_distance(op):
        if (position := position_of_operation(candidate)) is not None:
            return ":".join(str(part) for part in position)
    return UNKNOWN


def place_of(op: Operation) -> str:
    """Return the place of the operation for a message.

    The place is `file:line:col` if `position_of` returns a position. Otherwise it is the function and the operation:
    `@step (stablehlo.tanh %y)`. This happens in stock `xdsl-opt`, because it parses text without positions.

    JAX gives modules and functions no position of their own. They are named by their symbol, because the position of an
    operation inside them would point to an unrelated line.
    """
    if isinstance(op, ModuleOp | FuncOp) and position_of_operation(op) is None and (symbol := _symbol_of_whole(op)):
        return symbol
    position = position_of(op)
    function = op
    while not isinstance(function, FuncOp):
        parent = function.parent_op()
        if parent is None:
            return position
        function = parent
    if position != UNKNOWN:
        return position
    names = " ".join(f"%{result.name_hint}" for result in op.results if result.name_hint)
    inside = "" if op is function else f" ({f'{name_of(op)} {names}'.rstrip()})"
    name = function.properties.get("sym_name")
    return f"@{name.data}{inside}" if isinstance(name, StringAttr) else position


def _symbol_of_whole(op: ModuleOp | FuncOp) -> str:
    """Return the symbol of a module. `op`: the module, or its function `main`. The result is "" for any other function
    and for a module without a symbol."""
    is_main = op.properties.get("sym_name") == StringAttr("main")
    module = op.parent_op() if isinstance(op, FuncOp) and is_main else op
    return module.sym_name.data if isinstance(module, ModuleOp) and module.sym_name is not None else ""


def _by_distance(op: Operation) -> Iterator[Operation]:
    """Yield the operation and its ancestors, then the operations that follow each of these, then the nested
    operations."""
    ancestors = [op]
    while (parent := ancestors[-1].parent_op()) is not None:
        ancestors.append(parent)
    yield from ancestors
    for ancestor in ancestors:
        # The position of the next function would be misleading, so stop at operations with regions.
        following = ancestor.next_op if ancestor.parent_op() is not None else None
        while following is not None and not following.regions:
            yield following
            following = following.next_op
    yield from (inner for inner in op.walk() if inner is not op)


class Refusal(PassFailedException):
    """An error that stops a pass because the request cannot be satisfied.

    `str()` gives one line with the position, the reason and the remedy.
    """

    def __init__(self, op: Operation, reason: str):
        self.operation = op
        self.reason = reason
        super().__init__(f"{place_of(op)}: error: {reason}")


class BadRequest(Refusal):
    """A refusal caused by the request rather than by the program, such as an invalid option or an unknown name.

    Tools report it at the input file, not at a line of the model.
    """


class InvalidOperation(Refusal):
    """A refusal because the verifier rejects an operation.

    Tools report it at the line of the input that contains the operation, and add the source position in the model.
    """


class DynamicShape(Refusal):
    """A refusal because the size of a dimension is not known at compile time."""


class RemarkKind(StrEnum):
    """The kind of a remark, in LLVM's terms.

    Attributes:
        PASSED: The pass made a change.
        MISSED: The pass did not make a change.
        ANALYSIS: The remark states a fact.
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
        LOOP_LEFT: A loop is left unchanged, for a reason other than the reasons of the following topics.
        LOOP_STACKS_SMALLEST: A loop is left unchanged, because no smaller set of stacks determines the values that the
            later loop reads.
        LOOP_COLLECTIVES: Like `LOOP_STACKS_SMALLEST`, for a loop whose collectives also prevent its recomputation.
        LOOP_NOT_COUNTED: A loop is left unchanged, because it has no counter.
        LOOPS_NOT_PROVED: All loops of a step are left unchanged, because their rewrite is not proved equal.
        CHOICE: The choice between candidates.
        EAGER: The peak on an executor that starts operations early, unlike XLA.
        COLLECTIVES: Operations with collectives. They are recomputed only if the option `collectives` allows it.
        COLLECTIVES_UNEQUAL: Operations with collectives that devices may execute a different number of times.
        MARK_REFUSED: An operation that the user marks for recomputation, but that must not run twice.
        NO_EFFECT: A mark, or a part of the selection, that has no effect.
        RECOMPUTED: The recomputed operations, and the saving in the whole module. Tools print these remarks only on
            request.
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
    RECOMPUTED = "recomputed"


@dataclass(frozen=True)
class Remark:
    """A decision of the compiler and its reason, attached to the operation that it concerns.

    Attributes:
        place: The position as text, for a remark from a cache, whose operation no longer exists; if "", the place of
            the operation is printed.
        function: The symbol of the function, for an operation that a later pass may erase; if "", the function around
            the operation.
        amounts: The quantities in the reason (bytes, FLOPs or counts) by name, for tools that read remarks.
        segments: The segments that the reason names in quotes, in the order of the reason.
    """

    operation: Operation
    reason: str
    kind: RemarkKind = RemarkKind.MISSED
    topic: Topic = Topic.OTHER
    place: str = ""
    function: str = ""
    amounts: tuple[tuple[str, int], ...] = ()
    segments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.place or place_of(self.operation)}: remark: {self.reason}"


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

    A remark may be a string. A string has no place.
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
    """Report remarks to the context, or to standard error if the context does not collect them, as in stock `xdsl-opt`.

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


def strict_refusal(op: Operation, reason: str) -> Refusal:
    """Return the error that the option `strict` demands for an operation on which an option has no effect."""
    return Refusal(op, f"{reason} (strict)")


def demand_effect(remarks: Sequence[Remark], strict: bool) -> Sequence[Remark]:
    """Return the remarks on ineffective options, or raise the first remark as a `Refusal` if `strict` is true."""
    if strict and remarks:
        raise strict_refusal(remarks[0].operation, remarks[0].reason)
    return remarks
