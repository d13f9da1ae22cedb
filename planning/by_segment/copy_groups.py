"""Plan the copies of the values to recompute, segment by segment. Copies are planned in groups. All copies of a group
wait for one token: a value that exists once the group's gates exist. Gates are cotangents of the backward pass.

The copies of a segment form a group before their first reader. A segment has several groups in two cases:

- A recomputed output of a segment is needed before the segment's own backward pass, for the copies of later segments.
  If all inner values of the segment were live from then on, recomputation would not reduce memory. So the outputs are
  copied first. These copies form a *spine*, and all inner values of the spine die at once. The inside is copied a
  second time when the segment's own gradient arrives (T. Chen et al., "Training deep nets with sublinear memory cost",
  2016).
- The backward pass enters the segment several times, so that there is a group for each entry (`segment_arrivals.py`).

A group is split into batches if one token for all of its copies would release too many copies at once (`batches.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise

from ..gates import can_delay, expandable_gradients, gates_for, joining_gates
from ..graph import Graph
from ..plan import Batch, CopyGroup, NotRecomputed, Plan
from ..skip_reason import SkipReason
from ..unsplit_groups import unsplit_group, with_numbers
from .batches import sequential_batches, split_into_batches
from .copy_requests import CopyRequest, copy_requests
from .plan_targets import Targets, copyable_targets, outputs_of, why_no_copies, without_early_constants


@dataclass(frozen=True)
class GroupOptions:
    """Options for the grouping of copies.

    Attributes:
        copies: The maximum number of copies of one operation.
        chain: Whether each group also waits for the preceding gradient operation. This prevents two groups from
            becoming ready at the same time.
        splits_only_concurrent: Whether a group is split only if its second batch could run concurrently with its first;
            see `split_into_batches`.
        splits_into_batches: Whether groups are split into batches at all. This changes neither the byte estimates nor
            the reasons in a plan.
        holds_joining_cotangents: Whether tokens also wait for the cotangents that are combined later with the results
            of the copies' readers (`joining_gates`). This changes neither the byte estimates nor the reasons in a plan.
    """

    copies: int = 2
    _: KW_ONLY
    chain: bool = False
    splits_only_concurrent: bool = True
    splits_into_batches: bool = True
    holds_joining_cotangents: bool = True


DEFAULT_GROUPING = GroupOptions()
"""The default options, without chained groups."""


def plan_segments(graph: Graph, targets: Targets, refused: Collection[int], options: GroupOptions) -> Plan:
    """Plan the copies of the targets.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        refused: Operations that must not run twice.
        options: The options for the grouping of copies.

    Returns:
        The copy groups, and an entry in `kept` with the reason for each segment without copies.
    """
    copyable = without_early_constants(graph, copyable_targets(graph, targets, refused))
    gated, entries = _drop_ungated(graph, copyable)
    planner = _Planner(graph, gated, options)
    planner.run()
    # A segment has one reason; outside segments, each operation has its own.
    kept = dict[str | int, NotRecomputed]()
    for entry in (*entries, *planner.kept):
        kept.setdefault(entry.segment or entry.operation, entry)
    explained = {targets.segments[op] for group in planner.groups for op in group.operations}
    explained.update(entry.segment for entry in kept.values())
    for op, segment in targets.segments.items():
        if segment not in explained and not targets.values.isdisjoint(graph.makes[op]):
            explained.add(segment)
            kept[segment] = NotRecomputed(segment, op, why_no_copies(graph, targets, segment, refused))
    return Plan(tuple(planner.groups), tuple(kept.values()))


def _drop_ungated(graph: Graph, targets: Targets) -> tuple[Targets, list[NotRecomputed]]:
    """Remove the targets that are read before any gradient value exists, because no gate could delay their copies.
    Returns the remaining targets, and for each reader of removed targets an entry with the reason."""
    values, entries = set(targets.values), list[NotRecomputed]()
    readers = dict[str, set[int]]()
    for value in targets.values:
        readers.setdefault(targets.segment_of(graph, value), set()).update(targets.gradient_readers(graph, value))
    for segment in sorted(readers):
        waiting = sorted(readers[segment])
        while waiting and not gates_for(graph, _targets_read(graph, targets, segment, waiting[0]), waiting, waiting[0]):
            reader = waiting.pop(0)
            values.difference_update(_targets_read(graph, targets, segment, reader))
            entries.append(NotRecomputed(segment, reader, SkipReason.NO_GATE))
    return Targets(targets.segments, frozenset(values), targets.own_readers), entries


def _targets_read(graph: Graph, targets: Targets, segment: str, reader: int) -> list[int]:
    """Return the targets in a segment that the operation `reader` reads as copies."""
    read = (value for value in graph.reads[reader] if value in targets.values)
    return [
        value
        for value in read
        if targets.segment_of(graph, value) == segment and reader in targets.own_readers.get(value, (reader,))
    ]


@dataclass
class _Planner:
    """A planner that serves the copy requests in the order of the backward pass.

    Attributes:
        groups, kept: The entries of the plan so far, as in `Plan`.
        copied: The values that have a copy. All later readers read the copy.
        copy_counts: The number of copies of each operation so far.
        next_place: For each position with copy requests, the next position with copy requests.
    """

    graph: Graph
    targets: Targets
    options: GroupOptions
    groups: list[CopyGroup] = field(default_factory=list[CopyGroup])
    kept: list[NotRecomputed] = field(default_factory=list[NotRecomputed])
    copied: set[int] = field(default_factory=set[int])
    copy_counts: dict[int, int] = field(default_factory=dict[int, int])
    next_place: dict[int, int] = field(default_factory=dict[int, int])

    @cached_property
    def _expandable_gradients(self) -> frozenset[int]:
        return expandable_gradients(self.graph)

    def run(self) -> None:
        """Serve all copy requests."""
        outputs = outputs_of(self.graph, self.targets)
        requests = copy_requests(self.graph, self.targets, outputs, self.options.copies)
        places = sorted({request.before for request in requests})
        self.next_place = dict(pairwise([*places, len(self.graph)]))
        for request in requests:
            if request.reads_outputs:
                self._copy_outputs(request, outputs)
            else:
                self._copy_inside(request, outputs)

    def _copy_outputs(self, request: CopyRequest, outputs: Collection[int]) -> None:
        """Copy the outputs that the operation `request.before` reads."""
        reader = request.before
        read = [value for value in self.graph.reads[reader] if value in outputs and value not in self.copied]
        if not read:
            return
        gates = gates_for(self.graph, read, [reader], reader, self.options.chain)
        if gates:
            self._copy_spine(request, read, outputs, gates)
        else:
            self.kept.append(NotRecomputed(request.segment, reader, SkipReason.NO_GATE))

    def _copy_inside(self, request: CopyRequest, outputs: Collection[int]) -> None:
        """Copy the inside of a segment. The outputs of other segments that these copies read are copied first."""
        self._drop_saved_targets(request.operations, request.before)
        operations = [op for op in request.operations if not self._is_copied(op)]
        inputs = self.graph.outside_of(operations)
        if not inputs and operations:
            self.kept.append(NotRecomputed(request.segment, operations[0], SkipReason.FROM_CONSTANTS))
        elif operations:
            replaced = self._targets_of(operations)
            outside = set(inputs)
            reading = [op for op in operations if not outside.isdisjoint(self.graph.reads[op])]
            gates = self._gates(request, replaced, self._targets_of(reading))
            if not gates:
                self.kept.append(NotRecomputed(request.segment, request.before, SkipReason.NO_GATE))
                return
            self._copy_spine(request, inputs, outputs, gates)
            self._append_group(request, operations, replaced, gates)

    def _gates(self, request: CopyRequest, replaced: Sequence[int], released: Sequence[int]) -> tuple[int, ...]:
        """Return gates that delay the copies of a request: both the copies that the first reader reads, and the copies
        of the `released` values, which read values from outside the group.

        With the option `holds_joining_cotangents`, the gates include the cotangents that are combined later with
        results of the readers, so that these cotangents are stored.
        """
        graph, before = self.graph, request.before
        readers = {before, *(reader for value in replaced for reader in self.targets.gradient_readers(graph, value))}
        first = [value for value in replaced if before in self.targets.readers(graph, value)] or replaced
        gates = gates_for(graph, first, readers, before, self.options.chain)
        if gates and not can_delay(graph, gates, released):
            gates = gates_for(graph, [*first, *released], readers, before, self.options.chain)
        if not gates or not self.options.holds_joining_cotangents:
            return gates
        after = max(graph.maker[value] for value in replaced)
        later = joining_gates(graph, readers, after, before, self.next_place[before], self._expandable_gradients)
        return tuple(dict.fromkeys([*gates, *later]))

    def _copy_spine(
        self, request: CopyRequest, values: Iterable[int], outputs: Collection[int], gates: tuple[int, ...]
    ) -> None:
        """Copy the outputs among `values`, and all outputs that they depend on.

        All other results of these copies are dead as soon as the outputs exist.
        """
        values = list(values)
        self._drop_saved_targets(self._uncopied_makers(values), request.before)
        operations = self._uncopied_makers(values)
        if operations and self.graph.outside_of(operations):
            replaced = [value for value in self._targets_of(operations) if value in outputs]
            self._append_group(request, operations, replaced, gates)

    def _uncopied_makers(self, values: Iterable[int]) -> list[int]:
        """Return the operations to copy for these values: the makers of the targets among the values that have no copy
        yet and, recursively, the makers of such targets among the operands of these operations."""
        operations, stack = set[int](), list(values)
        while stack:
            value = stack.pop()
            if value not in self.targets.values or value in self.targets.own_readers or value in self.copied:
                continue
            if (op := self.graph.maker[value]) not in operations:
                operations.add(op)
                stack.extend(self.graph.reads[op])
        return sorted(operations)

    def _drop_saved_targets(self, operations: Iterable[int], before: int) -> None:
        """Drop the targets that a gradient operation before `before` reads without a copy. They are saved for this
        operation, so a later copy would free no memory."""
        saved = {
            value
            for value in self._targets_of(operations)
            if value not in self.copied
            and any(reader < before for reader in self.targets.gradient_readers(self.graph, value))
        }
        if saved:
            self.targets = self.targets.without(saved)

    def _is_copied(self, op: int) -> bool:
        """Return whether all targets that the operation makes have a copy."""
        return all(value in self.copied for value in self.graph.makes[op] if value in self.targets.values)

    def _targets_of(self, operations: Iterable[int]) -> list[int]:
        """Return the targets that the operations make."""
        return [value for op in operations for value in self.graph.makes[op] if value in self.targets.values]

    def _append_group(
        self, request: CopyRequest, operations: Sequence[int], replaced: Sequence[int], gates: tuple[int, ...]
    ) -> None:
        self.copied.update(replaced)
        group = unsplit_group(
            self.graph, request.segment, before=request.before, operations=operations, replaced=replaced, gates=gates
        )
        if self.options.splits_into_batches:
            group = replace(group, batches=self._batches(group))
        self.groups.append(with_numbers(group, self.copy_counts))

    def _batches(self, group: CopyGroup) -> tuple[Batch, ...]:
        """Split a group into batches. If the group copies operations of several segments, the copies of each segment
        form a batch, in forward order."""
        operations = group.operations
        by_segment = [tuple(copies) for _, copies in groupby(operations, key=self.targets.segments.__getitem__)]
        if len(by_segment) == 1:
            return split_into_batches(self.graph, operations, group.freed_bytes, self.options.splits_only_concurrent)
        return sequential_batches(self.graph, by_segment, set(group.replaces))
