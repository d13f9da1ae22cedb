"""The `recompute.` attributes and their verification, since xDSL has no hook for discardable attributes.

Attributes that contradict each other are reported at their operation, before any pass runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Operation

from ..support.counted import counted
from ..support.diagnostics import Refusal
from ..support.phase import Phase
from ..support.suggestions import did_you_mean, suggestion
from ..support.type_guards import is_integer_attribute
from .mark_kind import MarkKind
from .names import Names
from .result_marks import has_only
from .structured import SegmentOp

_MARK_KINDS = frozenset(MarkKind)
_PHASES = frozenset(Phase)


def _is_bool(value: Attribute) -> bool:
    return is_integer_attribute(value) and value.type == i1


def _is_decision(value: Attribute) -> bool:
    """Return whether the attribute is a decision for all results, or a list with a decision for each result.

    `unit` in a list means that there is no decision for that result.
    """
    if isinstance(value, ArrayAttr):
        entries = cast(ArrayAttr[Attribute], value)
        return all(
            isinstance(entry, UnitAttr) or (not isinstance(entry, ArrayAttr) and _is_decision(entry))
            for entry in entries
        )
    return _is_bool(value) or (isinstance(value, StringAttr) and value.data in _MARK_KINDS)


def _is_number(value: Attribute) -> bool:
    return is_integer_attribute(value) and value.type == i64 and value.value.data >= 0


def _is_phase(value: Attribute) -> bool:
    return isinstance(value, StringAttr) and value.data in _PHASES


def _is_path(value: Attribute) -> bool:
    return isinstance(value, StringAttr)


def _is_name(value: Attribute) -> bool:
    """Return whether the attribute is a name or a list of names. If an inlined call returned the result of the
    operation, the operation has two names: the name of the call and its own."""
    if isinstance(value, ArrayAttr):
        return all(isinstance(name, StringAttr) for name in cast(ArrayAttr[Attribute], value))
    return isinstance(value, StringAttr)


def _is_unit(value: Attribute) -> bool:
    return isinstance(value, UnitAttr)


@dataclass(frozen=True)
class AttributeRule:
    """The rule for one attribute.

    Attributes:
        carrier: The operations that carry the attribute.
        expected: A description of the valid values.
        is_valid: A predicate that accepts the valid values.
        meaning: The meaning of the attribute for its operation.
    """

    carrier: str
    expected: str
    is_valid: Callable[[Attribute], bool]
    meaning: str


KNOWN: dict[str, AttributeRule] = {
    Names.RECOMPUTE: AttributeRule(
        "forward operation",
        f"true, false, a policy ({', '.join(MarkKind)}), or a list with one entry per result, each one of these "
        "or unit",
        _is_decision,
        "the decision to recompute or keep it; takes precedence over every policy. `true` means must_recompute, and "
        "`false` means must_save",
    ),
    Names.SEGMENT: AttributeRule(
        "forward operation, copy", 'a segment path, such as "block0"', _is_path, "the segment instance it belongs to"
    ),
    Names.NAME: AttributeRule(
        "any operation",
        "a name, or a list of names",
        _is_name,
        "the name that policies and checkpoints refer to, like `checkpoint_name` in JAX",
    ),
    Names.PHASE: AttributeRule(
        "any operation",
        "one of " + ", ".join(f'"{phase}"' for phase in Phase),
        _is_phase,
        "its phase: an input of the analysis; equal operations of different phases are not merged",
    ),
    Names.ID: AttributeRule(
        "original, copy", "a non-negative i64 integer", _is_number, "an id that an original and its copies share"
    ),
    Names.COPY: AttributeRule("copy", "a non-negative i64 integer", _is_number, "the index of the copy"),
    Names.DUPLICATED: AttributeRule("copy", "a unit attribute", _is_unit, "this operation is a copy"),
    Names.NEED_CSE: AttributeRule(
        "copy", "a unit attribute", _is_unit, "the cleanup may merge it with equal operations"
    ),
    Names.TARGET_GRAD: AttributeRule(
        "gradient operation", "a unit attribute", _is_unit, "it reads a copy (a note for readers of the program)"
    ),
    Names.CHECKPOINT: AttributeRule(
        "forward operation", "a unit attribute", _is_unit, "its results are saved (a note for readers of the program)"
    ),
    Names.OUTPUT_RECOMPUTE: AttributeRule("segment", "a unit attribute", _is_unit, "its outputs are recomputed too"),
    Names.MP_COMM_RECOMPUTE: AttributeRule(
        "segment", "true or false", _is_bool, "its collectives may be repeated, except those that gather parameters"
    ),
    Names.PARALLEL_OPTIMIZER_COMM_RECOMPUTE: AttributeRule(
        "segment", "true or false", _is_bool, "its collectives that gather parameters may be repeated"
    ),
    Names.SLICE_ACTIVATION: AttributeRule(
        "segment, or its operations",
        "true or false",
        _is_bool,
        "its saved values are sharded over the devices until the backward pass",
    ),
    Names.PRESERVE_RNG_STATE: AttributeRule(
        "segment",
        "true or false",
        _is_bool,
        "if false, copies of operations with a hidden random state may draw different numbers; the proof refuses that",
    ),
    Names.SHARDS_KEPT: AttributeRule(
        "sharding constraint", "a unit attribute", _is_unit, "a pass inserted it to shard a value saved for a copy"
    ),
    Names.REPEATABLE: AttributeRule(
        "forward operation",
        "a unit attribute",
        _is_unit,
        "it may run twice, although it is a collective, is a custom call, or draws from a hidden random state",
    ),
    Names.CHECKPOINTS: AttributeRule(
        "function",
        "a name, or a list of names",
        _is_name,
        "the segments of the step lie between the values with these names, unless an option defines other segments",
    ),
    Names.WHOLE: AttributeRule(
        "private function", "a unit attribute", _is_unit, "its calls are neither inlined nor recomputed"
    ),
    Names.OFFLOAD: AttributeRule(
        "move to or from the host",
        "a non-negative i64 integer",
        _is_number,
        "a pass inserted it for an offloaded value; the bandwidth in bytes per second, 0 if the move is free",
    ),
}


RENAMED = {"recompute.region": Names.SEGMENT}
"""The current name of each renamed attribute, by its former name."""


COMMON_PHASES = {
    "forward": Phase.PRIMAL,
    "fwd": Phase.PRIMAL,
    "backward": Phase.GRADIENT,
    "bwd": Phase.GRADIENT,
    "cotangent": Phase.GRADIENT,
    "optimizer": Phase.UPDATE,
}
"""The phase that users mean by a common name of another framework."""


def _invalid(name: str, value: Attribute) -> str:
    """Return the error for an invalid value of a known attribute, with a suggestion for a misspelt name."""
    suggested = ""
    if isinstance(value, StringAttr):
        names = {Names.PHASE: tuple(Phase), Names.RECOMPUTE: ("true", "false", *MarkKind)}.get(name, ())
        common = COMMON_PHASES.get(value.data.lower()) if name == Names.PHASE else None
        suggested = did_you_mean(value.data, names) if common is None else f"; did you mean '{common}'?"
    return f"attribute '{name}' must be {KNOWN[name].expected}, not {value}{suggested}"


def _unknown(name: str) -> str:
    if name in RENAMED:
        return f"attribute '{name}' was renamed to '{RENAMED[name]}'"
    return f"unknown attribute '{name}'{suggestion(name, sorted(KNOWN))}"


def verify_attributes(operations: Iterable[Operation]) -> None:
    """Raise `Refusal` at the first operation with an unknown or invalid `recompute.` attribute."""
    # Attributes are compared by id: operations share them, and keep them alive.
    checked = set[tuple[str, int]]()
    for op in operations:
        for name, value in op.attributes.items():
            if (name, id(value)) in checked or not name.startswith(Names.PREFIX):
                continue
            if name not in KNOWN:
                raise Refusal(op, _unknown(name))
            if not KNOWN[name].is_valid(value):
                raise Refusal(op, _invalid(name, value))
            if name == Names.RECOMPUTE and isinstance(value, ArrayAttr):
                # Whether the length of a list is valid depends on the operation, so each one is checked.
                _verify_length(op, len(cast(ArrayAttr[Attribute], value)))
            else:
                checked.add((name, id(value)))


def _verify_length(op: Operation, entries: int) -> None:
    if entries != len(op.results):
        raise Refusal(
            op,
            f"attribute '{Names.RECOMPUTE}' has {counted(entries, 'entry', 'entries')}, expected one for each of the "
            f"operation's {counted(len(op.results), 'result')}",
        )


_BACKWARD = tuple(StringAttr(phase.value) for phase in Phase if not phase.is_forward)


def _is_marked(op: Operation) -> bool:
    return has_only(op, MarkKind.MUST_RECOMPUTE)


def _is_kept(op: Operation) -> bool:
    return has_only(op, MarkKind.MUST_SAVE)


def _is_backward(op: Operation) -> bool:
    return op.attributes.get(Names.PHASE) in _BACKWARD


@dataclass(frozen=True)
class Contradiction:
    """A combination of contradictory attributes.

    Attributes:
        holds: Whether an operation has this combination.
        words: The message, with a remedy.
    """

    holds: Callable[[Operation], bool]
    words: str


CONTRADICTIONS = (
    Contradiction(
        lambda op: _is_marked(op) and Names.CHECKPOINT in op.attributes,
        f"marked both to be recomputed ({Names.RECOMPUTE} = true) and to be kept ({Names.CHECKPOINT}): remove one mark",
    ),
    Contradiction(
        lambda op: _is_marked(op) and _is_backward(op),
        f"only forward operations can be recomputed: remove {Names.RECOMPUTE}, or correct {Names.PHASE}",
    ),
    Contradiction(
        lambda op: Names.RECOMPUTE in op.attributes and Names.COPY in op.attributes,
        f"the operation is a copy ({Names.COPY}), and a copy cannot be recomputed again: remove {Names.RECOMPUTE}",
    ),
    Contradiction(
        lambda op: Names.OUTPUT_RECOMPUTE in op.attributes and not isinstance(op, SegmentOp),
        f"{Names.OUTPUT_RECOMPUTE} is valid only on recompute.segment: mark the outputs with {Names.RECOMPUTE} = true",
    ),
    Contradiction(
        lambda op: Names.OUTPUT_RECOMPUTE in op.attributes and _is_kept(op),
        f"marked to be kept ({Names.RECOMPUTE} = false), but its outputs are marked to be recomputed: remove one mark",
    ),
)

# Every contradiction involves one of these attributes.
_INVOLVED = frozenset({Names.RECOMPUTE, Names.OUTPUT_RECOMPUTE})


def verify_marks(operations: Iterable[Operation]) -> None:
    """Raise `Refusal` at the first operation with contradicting attributes."""
    for op in operations:
        if _INVOLVED.isdisjoint(op.attributes):
            continue
        for contradiction in CONTRADICTIONS:
            if contradiction.holds(op):
                raise Refusal(op, contradiction.words)
