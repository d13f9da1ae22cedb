"""A training step as numbers: operations in program order, the values that they read and make, bytes and FLOPs.

Operations are 0 … n - 1; the last one is the terminator, whose operands the function returns. Values are 0 … m - 1:
first those from outside, then the results of the operations in their order. Nothing here knows IR: `analysis/step`
makes a graph of a function, planners read it, and `Plan` speaks of its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

FORWARD = frozenset({"primal", "residual"})
OUTSIDE = -1
"""In place of the operation that makes a value: an argument, or a value from around the step."""


@dataclass(frozen=True)
class Graph:
    """For each operation: `names`; `phases`, as in `recompute.phase` ("" where nothing is known); `reads`, the values
    that it and its regions read from outside of it, each once; `makes`; `flops` of one execution; `inner_bytes`, what
    its regions need beyond its results; `looks_at`, the operand that it is a view or a cast of, or None; `effects`, why
    running it twice could change a result, or None.

    For each value: `maker`, an operation or `OUTSIDE`; `root`, the value that owns its storage; `sizes`, its bytes.

    `constants`: values that come from constants alone: they cost nothing. `literals`: operations that are constants.
    `copies`: operations that are copies already, of an earlier run. `costs`: of one execution of each operation, by
    what a planner is asked to keep low; none where that is `flops`.
    """

    names: tuple[str, ...]
    phases: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
    makes: tuple[tuple[int, ...], ...]
    flops: tuple[int, ...]
    inner_bytes: tuple[int, ...]
    looks_at: tuple[int | None, ...]
    effects: tuple[str | None, ...]
    maker: tuple[int, ...]
    root: tuple[int, ...]
    sizes: tuple[int, ...]
    constants: frozenset[int]
    literals: frozenset[int]
    copies: frozenset[int]
    costs: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def cost(self) -> tuple[int, ...]:
        """What planners keep low, of one execution of each operation."""
        return self.costs or self.flops

    @cached_property
    def forward(self) -> tuple[bool, ...]:
        return tuple(phase in FORWARD for phase in self.phases)

    @cached_property
    def gradient(self) -> tuple[bool, ...]:
        return tuple(phase == "gradient" for phase in self.phases)

    @cached_property
    def update(self) -> tuple[bool, ...]:
        return tuple(phase == "update" for phase in self.phases)

    @cached_property
    def impure(self) -> frozenset[int]:
        """Operations that may run once only."""
        return frozenset([op for op, reason in enumerate(self.effects) if reason is not None])

    @cached_property
    def casts(self) -> frozenset[int]:
        """Operations that look at one of their operands."""
        return frozenset([op for op, source in enumerate(self.looks_at) if source is not None])

    @cached_property
    def showing(self) -> frozenset[int]:
        """Operations of which a result lies in the storage of another value."""
        root = self.root
        return frozenset([op for op, made in enumerate(self.makes) if any([root[value] != value for value in made])])

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the operations that read it, in program order."""
        found: list[list[int]] = [[] for _ in self.maker]
        for op, values in enumerate(self.reads):
            for value in values:
                found[value].append(op)
        return tuple(map(tuple, found))

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """For each operation those that make what it reads."""
        return tuple(tuple([maker for value in values if (maker := self.maker[value]) >= 0]) for values in self.reads)

    @cached_property
    def gradient_readers(self) -> tuple[tuple[int, ...], ...]:
        """For each value the gradient operations that read it, in program order."""
        return tuple(tuple([reader for reader in readers if self.gradient[reader]]) for readers in self.readers)

    def gradient_sources(self, value: int) -> list[int]:
        """What the operation that makes the value reads of the gradient."""
        read = (one for one in self.reads[self.maker[value]] if one not in self.constants)
        return [one for one in read if self.maker[one] >= 0 and self.gradient[self.maker[one]]]

    @cached_property
    def made_of_less(self) -> frozenset[int]:
        """Gradient values that are made of fewer bytes than they have, by operations that a compiler fuses into the one
        reader: sums of padded values, the gradients of slices."""
        found, needed = set[int](), list(self.sizes)
        for op, made in enumerate(self.makes):
            if not self.gradient[op] or len(made) != 1 or len(self.readers[made[0]]) != 1:
                continue
            value = made[0]
            sources = self.gradient_sources(value)
            less = sum(needed[source] for source in sources)
            if sources and self.flops[op] <= self.sizes[value] and less < self.sizes[value]:
                found.add(value)
                needed[value] = less
        return frozenset(found)

    @cached_property
    def returned(self) -> frozenset[int]:
        """Values that leave the function."""
        return frozenset(self.reads[-1])

    @cached_property
    def lives_on(self) -> frozenset[int]:
        """Storages that the update or the caller reads: they outlive the backward pass whatever is recomputed."""
        return frozenset(
            self.root[value]
            for op, values in enumerate(self.reads)
            if self.update[op]
            for value in values
            if self.maker[value] >= 0
        )

    @cached_property
    def known_after(self) -> tuple[int, ...]:
        """For each operation the last forward operation that it needs; -1 where it needs none.

        An executor that starts what it can runs a gradient operation right after that one, wherever it is written.
        """
        found = list[int]()
        for op, producers in enumerate(self.producers):
            found.append(op if self.forward[op] else max([found[producer] for producer in producers], default=-1))
        return tuple(found)

    @cached_property
    def needs_cotangent(self) -> frozenset[int]:
        """Gradient operations that need an argument which no forward operation reads: a cotangent from outside."""
        given = {
            value
            for value, maker in enumerate(self.maker)
            if maker == OUTSIDE and not any(self.forward[one] for one in self.readers[value])
        }
        found = set[int]()
        for op, values in enumerate(self.reads):
            if self.gradient[op] and any(value in given or self.maker[value] in found for value in values):
                found.add(op)
        return frozenset(found)

    @cached_property
    def stored_bytes(self) -> tuple[int, ...]:
        """For each operation what its results take that own their storage and cost something."""
        free, root, sizes = self.constants, self.root, self.sizes
        return tuple(
            [sum([sizes[value] for value in made if root[value] == value and value not in free]) for made in self.makes]
        )

    @cached_property
    def last_read(self) -> tuple[int, ...]:
        """For each storage its last reader, through any view; -1 where there is none, and for what owns no storage."""
        found = [-1] * len(self.maker)
        for op, values in enumerate(self.reads):
            for value in values:
                found[self.root[value]] = op
        return tuple(found)

    @cached_property
    def views(self) -> tuple[tuple[int, ...], ...]:
        """For each storage the results that look at it, its owner among them; empty for what owns none."""
        found: list[list[int]] = [[] for _ in self.maker]
        for values in self.makes:
            for value in values:
                found[self.root[value]].append(value)
        return tuple(map(tuple, found))

    def outside_of(self, operations: Iterable[int]) -> tuple[int, ...]:
        """What the operations read from outside of themselves, constants left out; in order of reading."""
        listed = list(operations)
        inside = {value for op in listed for value in self.makes[op]}
        read = dict.fromkeys([value for op in listed for value in self.reads[op]])
        return tuple([value for value in read if value not in inside and value not in self.constants])

    def results_of(self, operations: Iterable[int]) -> list[int]:
        return [value for op in operations for value in self.makes[op]]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what a plan depends on: two graphs with the same one take the same plans."""
        told: Sequence[object] = (self.names, self.phases, self.reads, self.makes, self.sizes, self.root)
        return sha256(json.dumps(told, separators=(",", ":")).encode()).hexdigest()[:32]
