"""A unit: copies that are made together, in front of the first gradient operation that needs them, behind one gate.

Also which operations may be copied at all, and in which words the others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...rules.names import name_of
from ...rules.permission import NOTHING, Permission
from ..step import Step
from .stages import Stage

FROM_CONSTANTS = "it is computed from constants alone, and keeping it costs nothing"
NO_GATE = "its values are needed as soon as the backward pass begins: no gradient has arrived that could gate them"
NOT_READ = "no gradient operation reads a value from it"
ALL_KEPT = (
    "all of its values are kept: they are outputs, which the operations after it read, or marked to be saved; "
    "mark operations, or recompute outputs too"
)
SKIPPED = "it is on the list of segments to skip"
LIVES_ON = "the function returns it, so it lives to the end anyway"
UPDATE_READS = "the update reads it, so it outlives the backward pass anyway"


@dataclass(frozen=True)
class Unit:
    """One group of copies that wait for the same gradient values, the `gates`.

    They are put in front of `insertion`, stage by stage, each stage behind a token. Who reads the `served` values from
    then on reads their copies. `numbers` says which copy of its original each copy is, from 1 on.
    """

    segment: str
    stages: tuple[Stage, ...]
    served: tuple[SSAValue, ...]
    numbers: tuple[int, ...]
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
    """A segment, or a single operation of one, that is not recomputed, and why."""

    segment: str
    operation: Operation
    reason: str


def why_not_recomputable(step: Step, op: Operation, permission: Permission = NOTHING) -> str | None:
    """Why the operation may not run a second time, however much it would save."""
    if not step.phases.is_forward(op):
        return f"{name_of(op)} is not recomputed: it runs in phase '{step.phases.phase[op]}', not in the forward pass"
    if (reason := permission.why_not(op)) is not None:
        return f"{name_of(op)} is not recomputed: {reason}"
    staying = [why_stays(step, result) for result in op.results]
    if staying and None not in staying:
        return f"{name_of(op)} is not recomputed: {LIVES_ON if LIVES_ON in staying else UPDATE_READS}"
    return None


def why_stays(step: Step, value: SSAValue) -> str | None:
    """Why a value is there after the backward pass anyway; None where it need not be."""
    if step.storages.of(value) not in step.lives_on:
        return None
    return LIVES_ON if value in step.returned else UPDATE_READS


def gradient_readers(step: Step, value: SSAValue) -> list[Operation]:
    """Backward operations that read the value, in program order."""
    return [reader for reader in step.phases.order.readers(value) if step.phases.is_gradient(reader)]
