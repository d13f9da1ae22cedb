"""recompute-clone: copy the marked operations of each segment to where the gradient needs them.

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.segment = "block0"}
    ...
    %9 = stablehlo.multiply %ct, %1            // gradient

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.segment = "block0", recompute.id = 0}
    ...
    %t = recompute.token %ct
    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %x {recompute.copy = 1, recompute.duplicated, recompute.id = 0, recompute.segment = "block0"}
    %9 = stablehlo.multiply %ct, %c {recompute.target_grad}

Later gradient operations read `%x` in place of `%0` too: else the value and its delayed twin would both stay alive.
The dead originals are left to `recompute-cse`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.copies.copying import DEFAULT, Copying
from ..analysis.copies.plan import Plan, plan_copies
from ..analysis.copies.stages import Stage
from ..analysis.copies.units import NO_GATE, Kept, Unit, gradient_readers, why_not_recomputable, why_stays
from ..analysis.copies.wanted import Wanted, with_views
from ..analysis.marks import asks_to_recompute, is_to_recompute, with_kept
from ..analysis.phases import Phases
from ..analysis.scopes import as_backward, path_of, split_path
from ..analysis.step import Step
from ..dialects.channels import free_channels, take_channel
from ..dialects.context import demand_effect, tell
from ..dialects.diagnostics import Remark
from ..dialects.recompute import DependOp, Names, TokenOp
from ..rules.names import name_of
from .phase import steps_of


@dataclass(frozen=True)
class Cloned:
    """What was done: the units in the order of the backward pass, and a remark for each mark that had no effect."""

    units: tuple[Unit, ...]
    remarks: tuple[Remark, ...]


def clone(module: ModuleOp, how: Copying = DEFAULT) -> Cloned:
    """Copy every marked value that the backward pass needs, behind a token for its unit."""
    units, remarks = list[Unit](), list[Remark]()
    ids, channels = count(_first_free_id(module)), free_channels(module)
    for _, phases in steps_of(module):
        step = Step.of(phases)
        remarks.extend(_refused(step, how))
        plan = plan_copies(step, with_views(step, _wanted(phases)), how)
        remarks.extend(_left_alone(kept) for kept in plan.kept)
        remarks.extend(_taken_back(step, plan))
        cloner = _Cloner(phases, ids, channels)
        for unit in plan.units:
            cloner.recompute(unit)
        cloner.read_delayed()
        units.extend(plan.units)
    return Cloned(tuple(units), tuple(remarks))


def _wanted(phases: Phases) -> Wanted:
    """Marked forward values; marks outside every segment form one of their own."""
    segments = dict[Operation, str]()
    values = set[SSAValue]()
    for op in phases.order.operations:
        segment = op.attributes.get(Names.SEGMENT)
        if phases.is_forward(op) and isinstance(segment, StringAttr):
            segments[op] = segment.data
        if phases.is_forward(op) and asks_to_recompute(op):
            segments.setdefault(op, "")
            values.update(filter(is_to_recompute, op.results))
    return Wanted(segments, frozenset(values))


def _first_free_id(module: ModuleOp) -> int:
    taken = (op.attributes.get(Names.ID) for op in module.walk())
    return max((number.value.data for number in taken if isinstance(number, IntegerAttr)), default=-1) + 1


def _refused(step: Step, how: Copying) -> Iterator[Remark]:
    """Marks on operations that must not run twice: said, and taken back."""
    for op in step.phases.order.operations:
        if Names.RECOMPUTE in op.attributes and not op.results:
            del op.attributes[Names.RECOMPUTE]
            yield Remark(op, f"{name_of(op)} is not recomputed: it has no result that could be needed again")
        if asks_to_recompute(op) and (reason := why_not_recomputable(step, op, how.permission)) is not None:
            del op.attributes[Names.RECOMPUTE]
            yield Remark(op, reason)


def _left_alone(kept: Kept) -> Remark:
    what = f"segment '{kept.segment}'" if kept.segment else "the marked operation"
    return Remark(kept.operation, f"{what} is not recomputed: {kept.reason}")


def _taken_back(step: Step, plan: Plan) -> Iterator[Remark]:
    """Marks on results that stay, while the operation is copied for the sake of another result."""
    served = {value for unit in plan.units for value in unit.served}
    for op in dict.fromkeys(op for unit in plan.units for op in unit.originals):
        marked = [value for value in op.results if value not in served and is_to_recompute(value)]
        staying = [value for value in marked if gradient_readers(step, value)]
        if staying:
            op.attributes[Names.RECOMPUTE] = with_kept(op, staying)
        for value in staying:
            reason = why_stays(step, value) or NO_GATE
            yield Remark(op, f"result {op.results.index(value)} of {name_of(op)} is kept: {reason}")


@dataclass(frozen=True)
class _Held:
    """The copy of a value for everybody who reads it later, and in front of what it was made."""

    value: SSAValue
    insertion: Operation


@dataclass
class _Cloner:
    """Copies the units of one function, in the order of the backward pass.

    `held`: original value -> its copy. `delays`: value -> the places from which on it is read behind a token, and as
    what; in program order.
    """

    phases: Phases
    ids: Iterator[int]
    channels: Iterator[int]
    held: dict[SSAValue, _Held] = field(default_factory=dict[SSAValue, _Held])
    delays: dict[SSAValue, list[tuple[int, SSAValue]]] = field(
        default_factory=dict[SSAValue, list[tuple[int, SSAValue]]]
    )

    def recompute(self, unit: Unit) -> None:
        # What was copied for the same reader waits for the same gates already.
        mapping = {
            value: held.value
            for value in unit.inputs
            if (held := self.held.get(value)) is not None and held.insertion is unit.insertion
        }
        delayed = [value for value in unit.inputs if value not in mapping]
        numbers = dict(zip(unit.originals, unit.numbers, strict=True))
        for stage in unit.stages:
            new = self._copies_behind_a_token(stage, unit.gates, mapping, numbers)
            _state_phase(new, unit.insertion)
            Rewriter.insert_op(new, InsertPoint.before(unit.insertion))
        start = self.phases.order.position[unit.insertion]
        for value in delayed:
            self.delays.setdefault(self._now(value), []).append((start, mapping[value]))
        self._redirect(unit, mapping)

    def _copies_behind_a_token(
        self,
        stage: Stage,
        gates: Iterable[SSAValue],
        mapping: dict[SSAValue, SSAValue],
        numbers: Mapping[Operation, int],
    ) -> list[Operation]:
        """`mapping` leads from originals and inputs to their copies; the stage's are added to it."""
        inputs = [value for value in stage.inputs if value not in mapping]
        token = TokenOp([*(mapping[value] for value in stage.awaited), *gates])
        depend = DependOp([self._now(value) for value in inputs], token.token)
        for value, delayed in zip(inputs, depend.delayed, strict=True):
            mapping[value] = delayed
            delayed.name_hint = value.name_hint
        for op, word in ((token, "token"), (depend, "depend")):
            op.location = _beside(stage.originals[0].location, word)
        waiting = [token, depend] if inputs else []
        copies = [_copy(op, self._id(op), numbers[op], mapping) for op in stage.originals]
        for copy in copies:
            take_channel(copy, self.channels)
        return [*waiting, *copies]

    def _now(self, value: SSAValue) -> SSAValue:
        """The copy of a value that has one, otherwise the value itself."""
        return self.held[value].value if value in self.held else value

    def _id(self, op: Operation) -> int:
        stated = op.attributes.get(Names.ID)
        return stated.value.data if isinstance(stated, IntegerAttr) else next(self.ids)

    def read_delayed(self) -> None:
        """Gradient operations from a unit's place on read its inputs behind its token, the latest one.

        Else a value and its delayed twin would both stay alive.
        """
        for value, delays in self.delays.items():
            for use in list(value.uses):
                reader = self._gradient_reader(use)
                if reader is not None and (units := self._units_before(reader, delays)):
                    use.operation.operands[use.index] = delays[units - 1][1]

    def _gradient_reader(self, use: Use) -> Operation | None:
        reader = self.phases.order.owner_here(use.operation)
        return reader if reader is not None and self.phases.is_gradient(reader) else None

    def _units_before(self, reader: Operation, delays: list[tuple[int, SSAValue]]) -> int:
        return bisect_right(delays, self.phases.order.position[reader], key=itemgetter(0))

    def _redirect(self, unit: Unit, mapping: Mapping[SSAValue, SSAValue]) -> None:
        """Gradient operations read the copies of what the unit serves."""
        for value in unit.served:
            self.held[value] = _Held(mapping[value], unit.insertion)
            delays = self.delays.get(value, [])
            for use in list(value.uses):
                reader = self._gradient_reader(use)
                if reader is not None and not self._units_before(reader, delays):
                    use.operation.operands[use.index] = mapping[value]
                    reader.attributes[Names.TARGET_GRAD] = UnitAttr()


def _copy(op: Operation, identity: int, number: int, mapping: dict[SSAValue, SSAValue]) -> Operation:
    op.attributes[Names.ID] = IntegerAttr(identity, i64)
    copy = op.clone(mapping)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: IntegerAttr(number, i64), Names.DUPLICATED: UnitAttr(), Names.NEED_CSE: UnitAttr()}
    for inner in copy.walk():
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


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """Copy marked operations into the backward pass, behind dependency tokens.

    `copies`: at most so many copies of one operation. `chain`: each unit waits for the gradient operation before it.
    `collectives`: they may be repeated. `preserve_rng_state=false`: unseeded random operations may draw again. With
    `strict` a mark that has no effect is an error.
    """

    name = "recompute-clone"

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        how = Copying(self.copies, self.chain, self.collectives, self.preserve_rng_state)
        tell(ctx, demand_effect(clone(op, how).remarks, self.strict))
