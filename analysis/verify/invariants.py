"""Invariants of a step with copies. Copies must wait for gradient values, their *gates*: a token or barrier depends on
the gates, and the copies depend on the token or barrier.

The results of a step do not reveal a violation, because a step whose copies free no memory still computes the correct
results. Each check yields `(operation, message)`, and `recompute-verify` reports the first violation as an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects.names import Names
from ...rules.buffers import FORWARDS
from ...support.operations import name_of
from ..step.marks import asks_to_recompute, is_copy, is_to_recompute
from ..step.order import read_values
from ..step.phases import Phases
from ..step.step import Step

Violation = tuple[Operation, str]


@dataclass(frozen=True)
class RecomputedStep:
    """A function with copies, and cached facts about it for the checks."""

    step: Step

    @property
    def phases(self) -> Phases:
        return self.step.phases

    @property
    def constants(self) -> frozenset[SSAValue]:
        return self.step.constants

    @cached_property
    def originals(self) -> dict[tuple[object, ...], int]:
        """The positions of the original operations, keyed by segment and id."""
        return {
            _identity(op): index
            for index, op in enumerate(self.phases.order.operations)
            if Names.ID in op.attributes and self.phases.is_forward(op)
        }

    @cached_property
    def copies(self) -> list[Operation]:
        return [op for op in self.phases.order.operations if is_copy(op)]

    @cached_property
    def tokens_and_delays(self) -> list[Operation]:
        """The tokens, and the delays, which are operations that forward their operands, in program order."""
        operations = self.phases.order.operations
        names = {name for name in set(map(name_of, operations)) if name == "recompute.token" or name in FORWARDS}
        return [op for op in operations if name_of(op) in names]

    @cached_property
    def delayed_copies(self) -> dict[Operation, list[Operation]]:
        """For each `recompute.depend` and barrier, the copies that read one of its results, directly or in their
        regions."""
        delays = [op for op in self.tokens_and_delays if name_of(op) != "recompute.token"]
        readers_of = self.phases.order.readers
        return {
            op: [reader for result in op.results for reader in readers_of(result) if is_copy(reader)] for op in delays
        }

    def delay_of(self, value: SSAValue) -> Operation | None:
        """Return the barrier or `recompute.depend` that defines the value; None if another operation does."""
        owner = value.owner
        return owner if isinstance(owner, Operation) and name_of(owner) in FORWARDS else None


def violations(step: Step) -> Iterator[Violation]:
    """Yield all violations of a function with copies, in the order of `CHECKS`."""
    function = RecomputedStep(step)
    for check in CHECKS:
        yield from check(function)


def _incomplete_copies(function: RecomputedStep) -> Iterator[Violation]:
    """Yield copies without the attribute that keeps CSE from merging them with their originals."""
    required = (Names.DUPLICATED, Names.COPY, Names.ID)
    for op in function.phases.order.operations:
        if Names.DUPLICATED not in op.attributes and Names.COPY not in op.attributes:
            continue
        if missing := [name for name in required if name not in op.attributes]:
            yield op, f"this copy of {name_of(op)} lacks the attribute '{missing[0]}'"


def _reads_of_originals(function: RecomputedStep) -> Iterator[Violation]:
    """Yield gradient operations that read an original marked for recomputation, unless it is a constant."""
    phases = function.phases
    for op in phases.order.operations:
        if Names.ID not in op.attributes or not asks_to_recompute(op) or not phases.is_forward(op):
            continue
        originals = [result for result in op.results if result not in function.constants and is_to_recompute(result)]
        for reader in (reader for result in originals for reader in _gradient_readers(function, result)):
            yield (
                reader,
                f"{name_of(reader)} reads the original {name_of(op)} instead of a copy, although it is marked for "
                "recomputation",
            )


def _gradient_readers(function: RecomputedStep, value: SSAValue) -> Iterator[Operation]:
    """Yield the gradient operations that read the value, directly or through a token or a barrier."""
    for reader in function.phases.order.readers(value):
        if not function.phases.is_gradient(reader):
            continue
        if name_of(reader) not in FORWARDS:
            yield reader
            continue
        for operand, delayed in zip(reader.operands, reader.results, strict=False):
            if operand is value:
                yield from _gradient_readers(function, delayed)


def _duplicate_copies(function: RecomputedStep) -> Iterator[Violation]:
    """Yield every copy whose segment instance, id and copy number equal those of an earlier copy."""
    keys = set[tuple[object, ...]]()
    for op in function.copies:
        key = (*_identity(op), _data(op, Names.COPY))
        if key in keys:
            yield op, f"an earlier copy of {name_of(op)} has the same segment, id and copy number"
        keys.add(key)


def _misplaced_copies(function: RecomputedStep) -> Iterator[Violation]:
    """Yield copies that are not in the backward pass."""
    for op in function.copies:
        if not function.phases.is_gradient(op):
            yield op, f"this copy of {name_of(op)} is in phase '{function.phases.phase[op]}', not in phase 'gradient'"


def _ungated_copies(function: RecomputedStep) -> Iterator[Violation]:
    """Yield copies that read a value other than a copy, a constant, or a value that waits for a gradient."""
    for op in function.copies:
        for value in read_values(op):
            if value in function.constants or _waits(function, value):
                continue
            yield op, f"this copy of {name_of(op)} reads {_describe(value)} without waiting for a gradient"


def _waits(function: RecomputedStep, value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if is_copy(owner):
        return True
    return (delay := function.delay_of(value)) is not None and bool(gates_of(function, delay))


def gates_of(function: RecomputedStep, delay: Operation) -> list[SSAValue]:
    """Return the gates of a delay: the gradient values for which the barrier, or the token of the `recompute.depend`,
    waits."""
    if name_of(delay) == "recompute.depend":
        token = delay.operands[-1].owner
        candidates = token.operands if isinstance(token, Operation) else ()
    else:
        candidates = delay.operands
    return [value for value in candidates if is_gradient_value(function, value)]


def is_gradient_value(function: RecomputedStep, value: SSAValue) -> bool:
    """Return whether the backward pass computes the value, and it is not a copy, a constant, or a delayed forward
    value."""
    while (delay := function.delay_of(value)) is not None:
        value = delay.operands[delay.results.index(value)]
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and value not in function.constants
        and not is_copy(owner)
        and function.phases.is_gradient(owner)
    )


def _unused_gates(function: RecomputedStep) -> Iterator[Violation]:
    """Yield tokens without users or without a gate, and barriers of copies whose gradient results are all unused."""
    for op in function.tokens_and_delays:
        if name_of(op) == "recompute.token":
            if not any(is_gradient_value(function, value) for value in op.operands):
                yield (
                    op,
                    "this token waits for no gradient value, so the operations that depend on it may run in the "
                    "forward pass",
                )
            elif op.results[0].first_use is None:
                yield op, "this token has no uses"
        elif function.delayed_copies[op]:
            gates = gates_of(function, op)
            gradient_results = [op.results[i] for i, value in enumerate(op.operands) if value in gates]
            if gradient_results and all(leg.first_use is None for leg in gradient_results):
                yield (
                    op,
                    "the gradient results of this barrier have no uses, so a compiler removes them, and with them the "
                    "order of the copies",
                )


def _early_gates(function: RecomputedStep) -> Iterator[Violation]:
    """Yield the delays of copies whose gates are all available before the originals of these copies have run.

    Such copies could run in the forward pass. Cotangent arguments are exempt, because the caller determines when they
    exist.
    """
    for op, delayed in function.delayed_copies.items():
        if not delayed:
            continue
        after = max(function.originals.get(_identity(copy), -1) for copy in delayed)
        makers = [owner for value in gates_of(function, op) if isinstance(owner := value.owner, Operation)]
        graph = function.step.graph
        places = function.step.positions(makers)
        if not places or not graph.needs_cotangent.isdisjoint(places):
            continue
        if max(graph.available_after[place] for place in places) <= after:
            yield op, "the gradient values that these copies wait for are available before their originals have run"


def _identity(op: Operation) -> tuple[object, ...]:
    return _data(op, Names.SEGMENT), _data(op, Names.ID)


def _data(op: Operation, name: str) -> object:
    """Return the string or the integer in an attribute, which is used as a key because hashing attributes is slow."""
    attribute = op.attributes.get(name)
    if isinstance(attribute, StringAttr):
        return attribute.data
    return attribute.value.data if isinstance(attribute, IntegerAttr) else attribute


def _describe(value: SSAValue) -> str:
    owner = value.owner
    if not isinstance(owner, Operation):
        return (
            f"argument {owner.args.index(value)}"
            if isinstance(value, BlockArgument)
            else "a value from outside the block"
        )
    segment = owner.attributes.get(Names.SEGMENT)
    inside = f" of segment '{segment.data}'" if isinstance(segment, StringAttr) else ""
    return f"{name_of(owner)}{inside}"


CHECKS = (
    _incomplete_copies,
    _reads_of_originals,
    _duplicate_copies,
    _misplaced_copies,
    _ungated_copies,
    _unused_gates,
    _early_gates,
)
