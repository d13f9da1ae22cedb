"""The graph of a training step, as integers: its operations in program order, the values that they read and make, their
bytes and their FLOPs.

Operations are 0 … n - 1; the last one is the terminator, whose operands the function returns. Values are 0 … m - 1:
first arguments and captured values, then the results of the operations in their order. This module is independent of
IR: `analysis/step` builds the graph of a function, planners read it, and a `Plan` refers to operations and values by
their indices.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import repeat
from typing import NamedTuple

from ..support.phase import FORWARD_PHASES, Phase

NO_MAKER = -1
"""The maker of arguments and captured values, in place of an operation index."""
BARRIER_ORIGIN = -1
"""The origin of a barrier, in place of an operation index."""

# Lookups in sets are faster than comparisons with a member.
_GRADIENT, _UPDATE = frozenset({Phase.GRADIENT}), frozenset({Phase.UPDATE})


class Instruction(NamedTuple):
    """An operation of the program that a plan produces from the graph.

    Attributes:
        origin: The graph index of the operation itself, or of the operation that it copies; `BARRIER_ORIGIN` for a
            barrier.
        phase: Its phase.
        is_new: Whether it is a copy or a barrier.
        reads: The values that it reads, in the order of the original.
        makes: Its results; the results of a barrier correspond to the values that it reads.
    """

    origin: int
    phase: str
    is_new: bool
    reads: tuple[int, ...]
    makes: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """A training step as a graph of integer indices.

    The attributes from `names` to `effects`, and `costs`, have an entry for each operation; `maker`, `root` and `sizes`
    have one for each value.

    Attributes:
        names: The name, such as `stablehlo.tanh`.
        phases: The phase, as in `recompute.phase`; "" if unknown.
        reads: The values that the operation and its regions read from outside it, without duplicates.
        makes: The results.
        flops: The FLOPs of one execution.
        inner_bytes: The bytes that the regions need beyond the results.
        viewed: The operand that the result views or casts; None for other operations.
        effects: The reason that the operation must not run twice; None if it may run twice.
        costs: The cost of one execution, which planners minimize; an empty tuple if the cost is `flops`.
        maker: The operation that makes the value, or `NO_MAKER`.
        root: The value that owns the storage of the value.
        sizes: The size of the value in bytes.
        constants: Values computed only from constants, which take no memory.
        literals: Operations that are constants.
        copies: Operations that an earlier run of the passes has inserted as copies.
        counts_returned: Whether returned values are part of the peak, as in PyTorch, which allocates them while the
            step runs.
    """

    names: tuple[str, ...]
    phases: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    flops: tuple[int, ...]
    inner_bytes: tuple[int, ...]
    viewed: tuple[int | None, ...]
    effects: tuple[str | None, ...]
    maker: tuple[int, ...]
    root: tuple[int, ...]
    sizes: tuple[int, ...]
    constants: frozenset[int]
    literals: frozenset[int]
    copies: frozenset[int]
    costs: tuple[int, ...] = ()
    counts_returned: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @property
    def cost(self) -> tuple[int, ...]:
        """For each operation, the cost of one execution. Planners minimize the sum over all copies."""
        return self.costs or self.flops

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The operations, as instructions of a program without copies."""
        columns = zip(range(len(self)), self.phases, repeat(False), self.reads, self.makes, strict=False)
        return tuple(map(Instruction._make, columns))

    @cached_property
    def forward(self) -> tuple[bool, ...]:
        """For each operation, whether it belongs to the forward pass."""
        return tuple(map(FORWARD_PHASES.__contains__, self.phases))

    @cached_property
    def gradient(self) -> tuple[bool, ...]:
        """For each operation, whether it belongs to the backward pass."""
        return tuple(map(_GRADIENT.__contains__, self.phases))

    @cached_property
    def update(self) -> tuple[bool, ...]:
        """For each operation, whether it belongs to the update of the parameters."""
        return tuple(map(_UPDATE.__contains__, self.phases))

    @cached_property
    def impure(self) -> frozenset[int]:
        """Operations that must not run twice."""
        return frozenset([op for op, reason in enumerate(self.effects) if reason is not None])

    @cached_property
    def casts(self) -> frozenset[int]:
        """Operations whose result is a view or a cast of an operand."""
        return frozenset([op for op, source in enumerate(self.viewed) if source is not None])

    @cached_property
    def aliasing(self) -> frozenset[int]:
        """Operations with a result that shares the storage of another value."""
        root = self.root
        return frozenset(
            [op for op, values in enumerate(self.makes) if any([root[value] != value for value in values])]
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each value, the operations that read it, in program order."""
        operations: list[list[int]] = [[] for _ in self.maker]
        for op, values in enumerate(self.reads):
            for value in values:
                operations[value].append(op)
        return tuple(map(tuple, operations))

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation, the operations that make its operands."""
        makers = self.maker
        return tuple([tuple([maker for value in values if (maker := makers[value]) >= 0]) for values in self.reads])

    @cached_property
    def gradient_readers(self) -> tuple[tuple[int, ...], ...]:
        """For each value, the gradient operations that read it, in program order."""
        gradient = self.gradient
        return tuple([tuple([reader for reader in readers if gradient[reader]]) for readers in self.readers])

    @cached_property
    def returned(self) -> frozenset[int]:
        """Values that the function returns."""
        return frozenset(self.reads[-1])

    @cached_property
    def returned_forward(self) -> frozenset[int]:
        """Storages of returned forward values, if returned values count towards the peak. They are live to the end and
        never recomputed, because the caller receives them before the backward pass begins."""
        if not self.counts_returned:
            return frozenset()
        owners = {self.root[value] for value in self.returned}
        return frozenset(owner for owner in owners if self.maker[owner] >= 0 and self.forward[self.maker[owner]])

    @cached_property
    def live_after_backward(self) -> frozenset[int]:
        """Storages that the update or the caller reads, so that they are live after the backward pass in every plan."""
        return frozenset(
            self.root[value]
            for op, values in enumerate(self.reads)
            if self.update[op]
            for value in values
            if self.maker[value] >= 0
        )

    @cached_property
    def available_after(self) -> tuple[int, ...]:
        """For each operation, the last forward operation that it depends on; -1 if it depends on none.

        An eager executor may run a gradient operation right after that operation, independently of its position in
        program order.
        """
        last_forward = list[int]()
        for op, producers in enumerate(self.producers):
            latest = max([last_forward[producer] for producer in producers], default=-1)
            last_forward.append(op if self.forward[op] else latest)
        return tuple(last_forward)

    @cached_property
    def needs_cotangent(self) -> frozenset[int]:
        """The gradient operations that depend, directly or indirectly, on a cotangent that the step takes as an
        argument.

        An argument that no forward operation reads is taken to be a cotangent.
        """
        cotangents = {
            value
            for value, maker in enumerate(self.maker)
            if maker == NO_MAKER and not any(self.forward[reader] for reader in self.readers[value])
        }
        dependents = set[int]()
        for op, values in enumerate(self.reads):
            if self.gradient[op] and any(value in cotangents or self.maker[value] in dependents for value in values):
                dependents.add(op)
        return frozenset(dependents)

    @cached_property
    def stored_bytes(self) -> tuple[int, ...]:
        """For each operation, the bytes of its results that own their storage, without constants."""
        free, root, sizes = self.constants, self.root, self.sizes
        return tuple(
            [
                sum([sizes[value] for value in values if root[value] == value and value not in free])
                for values in self.makes
            ]
        )

    @cached_property
    def last_read(self) -> tuple[int, ...]:
        """For each storage, the last operation that reads it through any view; -1 for a storage without readers, and
        for values that own no storage."""
        last_reader = [-1] * len(self.maker)
        for op, values in enumerate(self.reads):
            for value in values:
                last_reader[self.root[value]] = op
        return tuple(last_reader)

    @cached_property
    def views(self) -> tuple[tuple[int, ...], ...]:
        """For each storage, the results that share it, including its owner; empty for values that own no storage."""
        views: list[list[int]] = [[] for _ in self.maker]
        for values in self.makes:
            for value in values:
                views[self.root[value]].append(value)
        return tuple(map(tuple, views))

    def outside_of(self, operations: Iterable[int]) -> tuple[int, ...]:
        """Return the values that the operations read but do not make, in order of use.

        Constants are left out, unless an operation that is not a constant depends only on them, such as a loop that
        draws random numbers from a constant key. Nothing else could delay a copy of such an operation.
        """
        members = list(operations)
        inside = {value for op in members for value in self.makes[op]}
        read = dict.fromkeys([value for op in members for value in self.reads[op]])
        delaying = self._constant_inputs(members)
        return tuple(
            [value for value in read if value not in inside and (value not in self.constants or value in delaying)]
        )

    def _constant_inputs(self, members: Sequence[int]) -> Set[int]:
        """Return the constants read by those members that depend only on constants but are not constants themselves."""
        constants, inputs = self.constants, set[int]()
        pending = [
            value
            for op in members
            if self.reads[op] and constants.issuperset(self.reads[op]) and not constants.issuperset(self.makes[op])
            for value in self.reads[op]
        ]
        visited = set[int]()
        inside = set(members) if pending else set[int]()
        while pending:
            value = pending.pop()
            if value in visited:
                continue
            visited.add(value)
            if self.maker[value] in inside:
                pending.extend(self.reads[self.maker[value]])
            else:
                inputs.add(value)
        return inputs

    def results_of(self, operations: Iterable[int]) -> list[int]:
        """Return the results of the operations, in order."""
        return [value for op in operations for value in self.makes[op]]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the fields that plans depend on. A plan for one graph is valid for every graph with the same
        fingerprint."""
        key: Sequence[object] = (self.names, self.phases, self.reads, self.makes, self.sizes, self.root)
        return sha256(json.dumps(key, separators=(",", ":")).encode()).hexdigest()[:32]
