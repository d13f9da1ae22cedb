"""recompute-clone: copy the marked operations of each region to where the gradient needs them.

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.region = "block0"}
    ...
    %9 = stablehlo.multiply %ct, %1            // gradient

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = true, recompute.region = "block0", recompute.id = 0}
    ...
    %t = recompute.token %ct
    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %x {recompute.copy = 1, recompute.duplicated, recompute.id = 0, recompute.region = "block0"}
    %9 = stablehlo.multiply %ct, %c {recompute.target_grad}

Later gradient operations read `%x` in place of `%0` too: else the value and its delayed twin would both stay alive.
The dead originals are left to `recompute-cse`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp, NameLoc, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..analysis.phases import Phases
from ..analysis.policy import explicit_mark
from ..analysis.scopes import as_backward, path_of, split_path
from ..analysis.stages import Stage
from ..analysis.step import Step
from ..analysis.units import Kept, Unit, find_unit, why_not_recomputable
from ..dialects.context import tell
from ..dialects.diagnostics import Remark
from ..dialects.recompute import DependOp, Names, TokenOp
from ..rules.names import name_of
from .phase import steps_of

FIRST_COPY = IntegerAttr(1, i64)


@dataclass(frozen=True)
class Cloned:
    """What was done: the units in the order of the backward pass, and a remark for each mark that had no effect."""

    units: tuple[Unit, ...]
    remarks: tuple[Remark, ...]


def clone(module: ModuleOp) -> Cloned:
    """Copy every marked operation that a gradient operation needs, behind a token for its region."""
    units, remarks = list[Unit](), list[Remark]()
    ids = count(_first_free_id(module))
    for _, phases in steps_of(module):
        step = Step.of(phases)
        found = [_find(step, region, marked) for region, marked in _marked(phases).items()]
        remarks.extend(_refused(step))
        remarks.extend(_left_alone(kept) for kept in found if isinstance(kept, Kept))
        ready = [unit for unit in found if isinstance(unit, Unit)]
        ready.sort(key=lambda unit: phases.order.position[unit.insertion])
        cloner = _Cloner(phases, ids, frozenset(r for unit in ready for op in unit.originals for r in op.results))
        for unit in ready:
            cloner.recompute(unit)
        units.extend(ready)
    return Cloned(tuple(units), tuple(remarks))


def _marked(phases: Phases) -> dict[str, list[Operation]]:
    """Marked forward operations by region; marks outside every region form one of their own."""
    found = dict[str, list[Operation]]()
    for op in phases.order.operations:
        if phases.is_forward(op) and explicit_mark(op):
            region = op.attributes.get(Names.REGION)
            found.setdefault(region.data if isinstance(region, StringAttr) else "", []).append(op)
    return found


def _find(step: Step, region: str, marked: Sequence[Operation]) -> Unit | Kept:
    return find_unit(step, region, marked) or Kept(region, marked[0], "no gradient operation reads a value from it")


def _first_free_id(module: ModuleOp) -> int:
    taken = (op.attributes.get(Names.ID) for op in module.walk())
    return max((number.value.data for number in taken if isinstance(number, IntegerAttr)), default=-1) + 1


def _refused(step: Step) -> Iterator[Remark]:
    """Marks on operations that must not run twice: said, and taken back."""
    for op in step.phases.order.operations:
        if explicit_mark(op) and (reason := why_not_recomputable(step, op)) is not None:
            del op.attributes[Names.RECOMPUTE]
            yield Remark(op, reason)


def _left_alone(kept: Kept) -> Remark:
    return Remark(kept.operation, f"region '{kept.region}' is not recomputed: {kept.reason}")


@dataclass
class _Cloner:
    """Copies the units of one function, in the order of the backward pass.

    `recomputed`: results of everything that is copied in any unit. `copies`: original value -> its copy.
    `undelayed`: value behind a token -> the value itself.
    """

    phases: Phases
    ids: Iterator[int]
    recomputed: frozenset[SSAValue]
    copies: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    undelayed: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def recompute(self, unit: Unit) -> None:
        # A region may read the inside of another one; where that is copied already, the copy is read.
        mapping = {value: self.copies[value] for value in unit.inputs if value in self.copies}
        for stage in unit.stages:
            new = self._copies_behind_a_token(stage, unit.gates, mapping)
            _state_phase(new, unit.insertion)
            Rewriter.insert_op(new, InsertPoint.before(unit.insertion))
        self.copies.update((result, mapping[result]) for op in unit.originals for result in op.results)
        _redirect(unit, mapping)
        self._read_delayed(unit, mapping)

    def _copies_behind_a_token(
        self, stage: Stage, gates: Iterable[SSAValue], mapping: dict[SSAValue, SSAValue]
    ) -> list[Operation]:
        """`mapping` leads from originals and inputs to their copies; the stage's are added to it."""
        inputs = [value for value in stage.inputs if value not in mapping]
        token = TokenOp([*(mapping[value] for value in stage.awaited), *gates])
        depend = DependOp(inputs, token.token)
        for value, delayed in zip(inputs, depend.delayed, strict=True):
            mapping[value] = delayed
            delayed.name_hint = value.name_hint
        for op, word in ((token, "token"), (depend, "depend")):
            op.location = _beside(stage.originals[0].location, word)
        waiting = [token, depend] if inputs else []
        return [*waiting, *(_copy(op, next(self.ids), mapping) for op in stage.originals)]

    def _read_delayed(self, unit: Unit, mapping: Mapping[SSAValue, SSAValue]) -> None:
        """Gradient operations from the insertion point on read a unit's inputs behind its token, the latest one.

        Not those that have a copy or get one: their readers are redirected to it.
        """
        delayed = [value for value in unit.inputs if value not in self.recomputed]
        newest = {value: mapping[value] for value in delayed}
        newest |= {old: newest[value] for old, value in self.undelayed.items() if value in newest}
        start = self.phases.order.position[unit.insertion]
        for value, replacement in newest.items():
            for use in list(value.uses):
                owner = self.phases.order.owner_here(use.operation)
                if owner is None or not self.phases.is_gradient(owner) or self.phases.order.position[owner] < start:
                    continue
                use.operation.operands[use.index] = replacement
        self.undelayed.update((mapping[value], value) for value in delayed)


def _copy(op: Operation, number: int, mapping: dict[SSAValue, SSAValue]) -> Operation:
    op.attributes[Names.ID] = IntegerAttr(number, i64)
    copy = op.clone(mapping)
    for name in (Names.RECOMPUTE, Names.PHASE, Names.CHECKPOINT):
        copy.attributes.pop(name, None)
    copy.attributes |= {Names.COPY: FIRST_COPY, Names.DUPLICATED: UnitAttr(), Names.NEED_CSE: UnitAttr()}
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


def _redirect(unit: Unit, mapping: Mapping[SSAValue, SSAValue]) -> None:
    """Gradient operations read the copies."""
    copied = {result for op in unit.originals for result in op.results}
    for reader in unit.readers:
        for op in reader.walk():
            for index, operand in enumerate(op.operands):
                if operand in copied:
                    op.operands[index] = mapping[operand]
                    reader.attributes[Names.TARGET_GRAD] = UnitAttr()


@dataclass(frozen=True)
class ClonePass(ModulePass):
    """Copy marked operations into the backward pass, behind dependency tokens."""

    name = "recompute-clone"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, clone(op).remarks)
