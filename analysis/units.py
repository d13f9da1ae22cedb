"""What recomputing a region means: which operations are copied, where the copies go, what they wait for, what it saves.

A region's operations whose values a gradient operation reads, and what those need inside the region, are copied in
front of the first such reader. The copies wait for the cotangents that have arrived by then: gradient values, defined
before that point, which lead to the readers. Program order then rules out cycles.

Source of the gate and of the bytes: jax.checkpoint, whose barrier holds the incoming cotangents and all inputs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ..dialects.recompute import Names
from ..rules.effects import why_impure
from ..rules.flops import flops
from ..rules.kinds import is_constant
from ..rules.names import name_of
from .order import read_values
from .stages import Stage, outside_values, split
from .step import Step
from .storage import value_bytes

FROM_CONSTANTS = "it is computed from constants alone, and keeping it costs nothing"
NO_GATE = "its values are needed as soon as the backward pass begins: no gradient has arrived that could gate them"


@dataclass(frozen=True)
class Unit:
    """One group of copies that wait for the same gradient values, the `gates`.

    They are put in front of `insertion`, the first of `readers`, stage by stage, each stage behind a token.
    """

    region: str
    stages: tuple[Stage, ...]
    readers: tuple[Operation, ...]
    insertion: Operation
    gates: tuple[SSAValue, ...]
    freed_bytes: int
    pinned_bytes: int
    extra_flops: int

    @property
    def originals(self) -> tuple[Operation, ...]:
        """What is copied, in the order of the copies."""
        return tuple(op for stage in self.stages for op in stage.originals)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The values from outside that the copies read."""
        return tuple(value for stage in self.stages for value in stage.inputs)

    @property
    def saved_bytes(self) -> int:
        """Bytes that need not be kept for the backward pass, less those that must be kept for the copies instead."""
        return self.freed_bytes - self.pinned_bytes


@dataclass(frozen=True)
class Kept:
    """A region, or a single operation of one, that is not recomputed, and why."""

    region: str
    operation: Operation
    reason: str


def is_copy(op: Operation) -> bool:
    return isinstance(op.attributes.get(Names.COPY), IntegerAttr)


def gradient_readers(step: Step, op: Operation) -> list[Operation]:
    """Backward operations that read a result of `op`."""
    order, phases = step.phases.order, step.phases
    found = {reader: None for result in op.results for reader in order.readers(result)}
    return [reader for reader in found if not phases.is_forward(reader)]


def why_not_recomputable(step: Step, op: Operation) -> str | None:
    """Why the operation may not run a second time, however much it would save."""
    if (reason := why_impure(op)) is not None:
        return f"{name_of(op)} is not recomputed: {reason}"
    if any(result in step.returned for result in op.results):
        return f"{name_of(op)} is not recomputed: the function returns it, so it lives to the end anyway"
    return None


def region_outputs(step: Step, region: Sequence[Operation]) -> set[Operation]:
    """Operations of the region that a forward operation outside of it reads."""
    inside = set(region)
    order, phases = step.phases.order, step.phases
    return {
        op
        for op in region
        for result in op.results
        if any(phases.is_forward(reader) and reader not in inside for reader in order.readers(result))
    }


def find_unit(step: Step, region: str, marked: Sequence[Operation]) -> Unit | Kept | None:
    """The unit that recomputes the marked operations of a region; `Kept` if it cannot be; None if nobody reads them."""
    position = step.phases.order.position
    allowed = [op for op in marked if why_not_recomputable(step, op) is None]
    readers = sorted({r for op in allowed for r in gradient_readers(step, op)}, key=position.__getitem__)
    readers = [reader for reader in readers if name_of(reader) != "func.return"]
    if not readers:
        return None
    originals = _needed(step, allowed, readers)
    insertion = readers[0]
    gates = _gates(step, readers, position[insertion])
    if not gates:
        return Kept(region, insertion, NO_GATE)
    inputs = outside_values(step, originals)
    if not inputs:
        return Kept(region, insertion, FROM_CONSTANTS)
    freed = _freed_bytes(step, originals, inputs, readers)
    return Unit(
        region=region,
        stages=split(step, originals, freed),
        readers=tuple(readers),
        insertion=insertion,
        gates=gates,
        freed_bytes=freed,
        pinned_bytes=_pinned_bytes(step, inputs, position[insertion]),
        extra_flops=sum(flops(op) for op in originals),
    )


def _needed(step: Step, allowed: Sequence[Operation], readers: Iterable[Operation]) -> list[Operation]:
    """The allowed operations that the readers read, and what these need among the allowed; program order."""
    inside, found = set(allowed), set[Operation]()
    stack = [owner for reader in readers for value in read_values(reader) if (owner := value.owner) in inside]
    while stack:
        op = stack.pop()
        if isinstance(op, Operation) and op not in found and not _is_free(op):
            found.add(op)
            stack.extend(owner for value in read_values(op) if (owner := value.owner) in inside)
    return sorted(found, key=step.phases.order.position.__getitem__)


def _is_free(op: Operation) -> bool:
    """Scalar constants and the like are read where they are: they keep no memory."""
    return is_constant(op)


def _gates(step: Step, readers: Iterable[Operation], insertion: int) -> tuple[SSAValue, ...]:
    """Gradient values from before the insertion point that lead to the readers through gradient operations after it."""
    order, phases = step.phases.order, step.phases
    gates = dict[SSAValue, None]()
    seen, stack = set[Operation](), list(readers)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for value in read_values(op):
            owner = value.owner
            if not isinstance(owner, Operation) or not phases.is_gradient(owner):
                continue
            if order.position[owner] >= insertion:
                stack.append(owner)
            elif value not in step.constants and not is_copy(owner) and not _delays_forward_value(step, value):
                gates[value] = None
    return tuple(sorted(gates, key=order.definition))


def _delays_forward_value(step: Step, value: SSAValue) -> bool:
    """A barrier or a depend of an earlier run stands in the backward pass, but hands on a forward value."""
    owner = step.storages.of(value).owner
    return not isinstance(owner, Operation) or step.phases.is_forward(owner)


def _last_reader(step: Step, root: SSAValue, ignored: Container[SSAValue] = (), by: Container[Operation] = ()) -> int:
    """Position of the last reader of a storage; reads of the `ignored` values by the operations `by` do not count."""
    order = step.phases.order
    return max(
        (
            order.position[reader]
            for view in step.views.get(root, (root,))
            for reader in order.readers(view)
            if not (view in ignored and reader in by)
        ),
        default=-1,
    )


def _freed_bytes(
    step: Step, originals: Sequence[Operation], inputs: Sequence[SSAValue], readers: Sequence[Operation]
) -> int:
    """Bytes of the storages that no longer live until the first reader."""
    copied = {result for op in originals for result in op.results}
    held = {step.storages.of(value) for value in inputs}
    redirected = set(readers)
    insertion = step.phases.order.position[readers[0]]
    roots = dict.fromkeys(step.storages.of(value) for value in copied)
    return sum(
        value_bytes(root)
        for root in roots
        if root in copied
        and root not in held
        and root not in step.constants
        and _last_reader(step, root) >= insertion > _last_reader(step, root, copied, redirected)
        and not step.returned.intersection(step.views[root])
    )


def _pinned_bytes(step: Step, inputs: Sequence[SSAValue], insertion: int) -> int:
    """Bytes of the inputs that would otherwise have died before the insertion point. Arguments never die."""
    roots = dict.fromkeys(step.storages.of(value) for value in inputs)
    return sum(
        value_bytes(root)
        for root in roots
        if isinstance(root.owner, Operation)
        and root not in step.constants
        and not step.returned.intersection(step.views[root])
        and _last_reader(step, root) < insertion
    )
