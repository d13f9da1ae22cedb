"""Apply a plan: insert its copies into the backward pass, gated by tokens, and redirect uses to them.

    %9 = stablehlo.multiply %ct, %1

becomes, for a group that copies the `tanh` that defines `%1`,

    %t = recompute.token %ct
    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %x {recompute.copy = 1, recompute.duplicated, recompute.id = 0}
    %9 = stablehlo.multiply %ct, %c {recompute.target_grad}

Later gradient operations also read `%x` instead of `%0`; otherwise both values would be live. The plan contains all
decisions; this module makes none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from operator import itemgetter

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.jax_paths import backward_path, backward_path_in_loop, path_of, split_path
from ...analysis.step.step import Step
from ...dialects.channels import free_channels, take_channels
from ...dialects.cloning import Cloner
from ...dialects.making import name_location
from ...dialects.names import Names
from ...dialects.recompute import DependOp, TokenOp
from ...planning.plan import Batch, CopyGroup, Plan
from ...support.operations import every_operation, name_of
from ...support.phase import Phase

_UNIT = UnitAttr()


@lru_cache(maxsize=10_000)
def _number(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def copy_of_original(
    op: Operation, identity: int, number: int, clone: Callable[[Operation], Operation], reader: str = ""
) -> Operation:
    """Clone an operation as a copy, with ids and backward locations. The clone is not inserted.

    Args:
        op: The original. It also gets the id.
        identity: The id that links original and copy.
        number: The number of the copy.
        clone: A function that clones an operation with the operands of the copy.
        reader: The path of the loop that runs the copy; "" outside loops.
    """
    op.attributes[Names.ID] = _number(identity)
    copy = clone(op)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: _number(number), Names.DUPLICATED: _UNIT, Names.NEED_CSE: _UNIT}
    for inner in every_operation(copy):
        path = path_of(inner.location) or name_of(inner)
        inner.location = _at(inner.location, backward_path_in_loop(path, reader) if reader else backward_path(path))
    return copy


def token_location(location: LocationAttr, word: str) -> LocationAttr:
    """Return the location of a token or a `recompute.depend`, in the scope of the copies that wait for it.

    `word`: the last component of the path.
    """
    return _at(location, backward_path("/".join([*split_path(path_of(location))[:-1], word])))


def _at(location: LocationAttr, path: str) -> LocationAttr:
    """Return a location with the same source position and the given path."""
    position = location.location if isinstance(location, NameLoc) else location
    return name_location(path, position)


@dataclass(frozen=True)
class FreeNumbers:
    """The next free ids for originals and the next free channels for collectives in a module."""

    ids: Iterator[int]
    channels: Iterator[int]

    @classmethod
    def free_in(cls, module: ModuleOp) -> FreeNumbers:
        """Return the numbers that follow the largest ids and channels in the module."""
        numbers = (op.attributes.get(Names.ID) for op in every_operation(module))
        first = max((number.value.data for number in numbers if isinstance(number, IntegerAttr)), default=-1) + 1
        return cls(count(first), free_channels(module))

    def id_of(self, op: Operation) -> int:
        """Return the id of an original; a free id if it has none."""
        stated = op.attributes.get(Names.ID)
        return stated.value.data if isinstance(stated, IntegerAttr) else next(self.ids)


def apply_plan(step: Step, plan: Plan, numbers: FreeNumbers) -> None:
    """Insert the plan's copies into the step.

    The operation indices of the step still refer to the original operations afterwards.
    """
    inserter = _CopyInserter(step, numbers)
    for group in plan.groups:
        inserter.add(group)
    inserter.redirect_to_delayed()


@dataclass(frozen=True)
class _LatestCopy:
    """The latest copy of a value, and the operation before which it was inserted. Later uses read this copy."""

    value: SSAValue
    before: Operation


@dataclass
class _CopyInserter:
    """Inserts the copy groups of one function, in the order of the backward pass.

    Attributes:
        latest: The latest copy of each original value.
        delays: For each value that was delayed, its delayed versions in program order, each with the position from
            which it is read.
    """

    step: Step
    numbers: FreeNumbers
    latest: dict[SSAValue, _LatestCopy] = field(default_factory=dict[SSAValue, _LatestCopy])
    delays: dict[SSAValue, list[tuple[int, SSAValue]]] = field(
        default_factory=dict[SSAValue, list[tuple[int, SSAValue]]]
    )

    def add(self, group: CopyGroup) -> None:
        """Insert the copies of a group before the first operation that reads them, and redirect later uses to them."""
        numbered = self.step.numbered
        before = self.step.operation(group.before)
        inputs = numbered.values_of(group.inputs)
        # Values that were copied for the same reader already wait for the same gates.
        cloner = Cloner(
            {
                id(value): latest.value
                for value in inputs
                if (latest := self.latest.get(value)) is not None and latest.before is before
            }
        )
        delayed = [value for value in inputs if id(value) not in cloner.values]
        copy_of = dict(zip(group.operations, group.numbers, strict=True))
        gates = numbered.values_of(group.gates)
        for batch in group.batches:
            new = self._token_and_copies(batch, gates, cloner, copy_of)
            _write_phase(new, before)
            Rewriter.insert_op(new, InsertPoint.before(before))
        for value in delayed:
            self.delays.setdefault(self._latest_copy_of(value), []).append((group.before, cloner.values[id(value)]))
        self._redirect(group, before, cloner.values)

    def _token_and_copies(
        self, batch: Batch, gates: Iterable[SSAValue], cloner: Cloner, copy_of: Mapping[int, int]
    ) -> list[Operation]:
        """Create a token and the copies of a batch of operations. The inputs of the copies wait for the token.

        Args:
            batch: The batch.
            gates: Values for which the token waits, in addition to the gates of the batch itself.
            cloner: The mapping from originals to their copies so far. The copies of this batch are added to it.
            copy_of: The copy number of each operation of the batch.

        Returns:
            The operations to insert, in order.
        """
        numbered, mapping = self.step.numbered, cloner.values
        inputs = [value for value in numbered.values_of(batch.inputs) if id(value) not in mapping]
        token = TokenOp([*(mapping[id(value)] for value in numbered.values_of(batch.awaited)), *gates])
        depend = DependOp([self._latest_copy_of(value) for value in inputs], token.token)
        for value, delayed in zip(inputs, depend.delayed, strict=True):
            mapping[id(value)] = delayed
            delayed.name_hint = value.name_hint
        originals = numbered.operations_of(batch.operations)
        for op, word in ((token, "token"), (depend, "depend")):
            op.location = token_location(originals[0].location, word)
        waiting = [token, depend] if inputs else []
        pairs = zip(originals, batch.operations, strict=True)
        copies = [copy_of_original(op, self.numbers.id_of(op), copy_of[number], cloner.clone) for op, number in pairs]
        take_channels(copies, self.numbers.channels)
        return [*waiting, *copies]

    def _latest_copy_of(self, value: SSAValue) -> SSAValue:
        """Return the latest copy of a value, or the value itself if it has none."""
        return self.latest[value].value if value in self.latest else value

    def redirect_to_delayed(self) -> None:
        """Redirect gradient operations to the delayed inputs of the latest copy group before them.

        Otherwise both a value and its delayed version would be live.
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

    def _redirect(self, group: CopyGroup, before: Operation, mapping: Mapping[int, SSAValue]) -> None:
        """Redirect later uses of the replaced values to the copies of the group.

        `mapping`: the copy of each value, by the id of the value.
        """
        for value in self.step.numbered.values_of(group.replaces):
            current = self._latest_copy_of(value)
            self.latest[value] = _LatestCopy(mapping[id(value)], before)
            for use in list(current.uses):
                if (reader := self._later_reader(use, group.before)) is not None:
                    use.operation.operands[use.index] = mapping[id(value)]
                    reader.attributes[Names.TARGET_GRAD] = _UNIT

    def _later_reader(self, use: Use, before: int) -> Operation | None:
        """Return the operation that contains the use if it must read the copy at position `before`, else None.

        Operations before that position read an earlier copy, and forward operations read the original.
        """
        reader = self.step.phases.order.owner_here(use.operation)
        if reader is None or self.step.phases.is_forward(reader) or self.step.position(reader) < before:
            return None
        return reader


def _write_phase(operations: Iterable[Operation], reader: Operation) -> None:
    """Write the gradient phase on new operations if their reader has a phase attribute."""
    if Names.PHASE in reader.attributes:
        for op in operations:
            op.attributes[Names.PHASE] = StringAttr(Phase.GRADIENT.value)
