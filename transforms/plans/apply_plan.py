"""Carry a plan out: put its copies behind tokens into the backward pass, and have them read.

    %9 = stablehlo.multiply %ct, %1

becomes, for a group that copies the `tanh` that makes `%1`,

    %t = recompute.token %ct
    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %x {recompute.copy = 1, recompute.duplicated, recompute.id = 0}
    %9 = stablehlo.multiply %ct, %c {recompute.target_grad}

Later gradient operations read `%x` in place of `%0` too: else the value and its delayed twin would both stay alive.
Nothing is decided here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.jax_paths import as_backward, path_of, split_path
from ...analysis.step.step import Step
from ...dialects.channels import take_channel
from ...dialects.every import every_operation
from ...dialects.recompute import DependOp, Names, TokenOp
from ...planning.plan import Batch, CopyGroup, Plan
from ...rules.names import name_of


@dataclass(frozen=True)
class Numbers:
    """What is not given out yet in a module: ids of originals, and channels of collectives."""

    ids: Iterator[int]
    channels: Iterator[int]


def apply_plan(step: Step, plan: Plan, numbers: Numbers) -> None:
    """Put the plan's copies into the step. The step is changed, so its numbers are those of before."""
    cloner = _Cloner(step, numbers)
    for group in plan.groups:
        cloner.add(group)
    cloner.read_delayed()


@dataclass(frozen=True)
class _Made:
    """The copy of a value for everybody who reads it later, and in front of what it was made."""

    value: SSAValue
    before: Operation


@dataclass
class _Cloner:
    """Copies the groups of one function, in the order of the backward pass.

    `made`: original value -> its copy. `delays`: value -> the places from which on it is read behind a token, and as
    what; in program order.
    """

    step: Step
    numbers: Numbers
    made: dict[SSAValue, _Made] = field(default_factory=dict[SSAValue, _Made])
    delays: dict[SSAValue, list[tuple[int, SSAValue]]] = field(
        default_factory=dict[SSAValue, list[tuple[int, SSAValue]]]
    )

    def add(self, group: CopyGroup) -> None:
        numbered = self.step.numbered
        before, inputs = self.step.operation(group.before), numbered.values_of(group.inputs)
        # What was copied for the same reader waits for the same gates already.
        mapping = {
            value: made.value
            for value in inputs
            if (made := self.made.get(value)) is not None and made.before is before
        }
        delayed = [value for value in inputs if value not in mapping]
        copy_of = dict(zip(group.operations, group.numbers, strict=True))
        gates = numbered.values_of(group.gates)
        for batch in group.batches:
            new = self._copies_behind_a_token(batch, gates, mapping, copy_of)
            _state_phase(new, before)
            Rewriter.insert_op(new, InsertPoint.before(before))
        for value in delayed:
            self.delays.setdefault(self._now(value), []).append((group.before, mapping[value]))
        self._redirect(group, before, mapping)

    def _copies_behind_a_token(
        self, batch: Batch, gates: Iterable[SSAValue], mapping: dict[SSAValue, SSAValue], copy_of: Mapping[int, int]
    ) -> list[Operation]:
        """`mapping` leads from originals and inputs to their copies; the batch's are added to it."""
        numbered = self.step.numbered
        inputs = [value for value in numbered.values_of(batch.inputs) if value not in mapping]
        token = TokenOp([*(mapping[value] for value in numbered.values_of(batch.awaited)), *gates])
        depend = DependOp([self._now(value) for value in inputs], token.token)
        for value, delayed in zip(inputs, depend.delayed, strict=True):
            mapping[value] = delayed
            delayed.name_hint = value.name_hint
        originals = numbered.operations_of(batch.operations)
        for op, word in ((token, "token"), (depend, "depend")):
            op.location = _beside(originals[0].location, word)
        waiting = [token, depend] if inputs else []
        pairs = zip(originals, batch.operations, strict=True)
        copies = [_copy(op, self._id(op), copy_of[number], mapping) for op, number in pairs]
        for copy in copies:
            take_channel(copy, self.numbers.channels)
        return [*waiting, *copies]

    def _now(self, value: SSAValue) -> SSAValue:
        """The copy of a value that has one, otherwise the value itself."""
        return self.made[value].value if value in self.made else value

    def _id(self, op: Operation) -> int:
        stated = op.attributes.get(Names.ID)
        return stated.value.data if isinstance(stated, IntegerAttr) else next(self.numbers.ids)

    def read_delayed(self) -> None:
        """Gradient operations from a group's place on read its inputs behind its token, the latest one.

        Else a value and its delayed twin would both stay alive.
        """
        for value, delays in self.delays.items():
            for use in list(value.uses):
                reader = self._gradient_reader(use)
                if reader is not None and (groups := self._groups_before(reader, delays)):
                    use.operation.operands[use.index] = delays[groups - 1][1]

    def _gradient_reader(self, use: Use) -> Operation | None:
        reader = self.step.phases.order.owner_here(use.operation)
        return reader if reader is not None and self.step.phases.is_gradient(reader) else None

    def _groups_before(self, reader: Operation, delays: Sequence[tuple[int, SSAValue]]) -> int:
        return bisect_right(delays, self.step.position(reader), key=itemgetter(0))

    def _redirect(self, group: CopyGroup, before: Operation, mapping: Mapping[SSAValue, SSAValue]) -> None:
        """Who reads what the group replaces reads the copies."""
        for value in self.step.numbered.values_of(group.replaces):
            now = self._now(value)
            self.made[value] = _Made(mapping[value], before)
            for use in list(now.uses):
                if (reader := self._later_reader(use, group.before)) is not None:
                    use.operation.operands[use.index] = mapping[value]
                    reader.attributes[Names.TARGET_GRAD] = _UNIT

    def _later_reader(self, use: Use, before: int) -> Operation | None:
        """The operation of the step that reads, from the place of a group on; forward operations read originals."""
        reader = self.step.phases.order.owner_here(use.operation)
        if reader is None or self.step.phases.is_forward(reader) or self.step.position(reader) < before:
            return None
        return reader


_UNIT = UnitAttr()


@lru_cache(maxsize=10_000)
def _number(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def _copy(op: Operation, identity: int, number: int, mapping: dict[SSAValue, SSAValue]) -> Operation:
    op.attributes[Names.ID] = _number(identity)
    copy = op.clone(mapping)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: _number(number), Names.DUPLICATED: _UNIT, Names.NEED_CSE: _UNIT}
    for inner in every_operation(copy):
        inner.location = _backward(inner.location, path_of(inner.location) or name_of(inner))
    return copy


def _beside(location: LocationAttr, word: str) -> LocationAttr:
    """The place of a token: in the same scope as the copies that wait for it."""
    return _backward(location, "/".join([*split_path(path_of(location))[:-1], word]))


def _backward(location: LocationAttr, path: str) -> LocationAttr:
    """The same place in the source, as a recomputation in the backward pass."""
    position = location.location if isinstance(location, NameLoc) else location
    return NameLoc(StringAttr(as_backward(path)), position)


def _state_phase(operations: Iterable[Operation], reader: Operation) -> None:
    """Where phases are written on operations, they are written on the new ones too."""
    if Names.PHASE in reader.attributes:
        for op in operations:
            op.attributes[Names.PHASE] = StringAttr("gradient")
