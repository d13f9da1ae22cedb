"""Terms for collectives and for `sdy.manual_computation`. A collective is a function of its operands on all devices. A
manual computation operates on the parts of its operands that each device holds.

Two collectives on the same values therefore have the same results. In a branch or a loop, this is not guaranteed,
because only some of the devices may enter the region. There, a collective is an effect, like every operation without a
rule.

    %1 = sdy.manual_computation(%0) {                 %y is part(%0), the part on the device
      (%y) { %z = tanh %y; sdy.return %z }            %z is tanh(part(%0))
    }                                                 %1 is whole(tanh(part(%0))), assembled from all devices

A term inside the body represents one value per device and depends on outside values only through their parts.
Therefore, two bodies on the same devices (mesh, axes and devices of the enclosing body) are equal if they compute the
same results from the same parts. It does not matter how a program divides the computation among bodies. A part of a
whole that was assembled with the same sharding is the original part: `part(whole(t)) = t`. A sharding that omits an
axis of the mesh asserts that all devices along this axis hold the same value. The proof trusts this assertion, as the
partitioner does.

The operations in `PRESERVED` must occur in the bodies of both programs. Effects in a body are ordered separately from
the effects outside it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation

from ...dialects.sdy.shardings import ManualAxesAttr, ShardingPerValueAttr, layout_of
from ...support.operations import name_of
from ..expressions.block_requirements import is_plain_terminator
from ..expressions.terms import Head, Heads, Terms
from ..operations.operation_parts import attributes_of
from .scope import Exchange, RegionScope

_NAMES = "all_gather all_reduce all_to_all collective_broadcast collective_permute collective_reduce reduce_scatter"
COLLECTIVES = frozenset(f"stablehlo.{name}" for name in _NAMES.split())
CHANNEL = "channel_handle"
"""The attribute with the channel id of a collective. Which devices take part depends on whether the id is positive; its
value has no further meaning."""
_NUMBER = re.compile(r"(handle\s*=\s*)[1-9]\d*\b")
_POSITIVE = re.compile(r"\bhandle\s*=\s*([1-9]\d*)\b")


def is_exchange(op: Operation, scope: RegionScope) -> bool:
    """Return whether the operation is a collective that all devices run the same number of times and in the same
    order."""
    return scope.is_uniform and not scope.is_literal and name_of(op) in COLLECTIVES


def compared_attributes(op: Operation, scope: RegionScope) -> dict[str, Attribute]:
    """Return the attributes on which the results depend. A placeholder replaces the channel id of a collective."""
    attributes = attributes_of(op)
    if not is_exchange(op, scope) or CHANNEL not in attributes:
        return attributes
    return attributes | {CHANNEL: StringAttr(_NUMBER.sub(r"\1some", str(attributes[CHANNEL])))}


def channels_of(op: Operation) -> list[int]:
    """Return a list with the channel id of an operation, or an empty list if it has no positive channel id."""
    match = _POSITIVE.search(str(op.properties.get(CHANNEL, op.attributes.get(CHANNEL, ""))))
    return [int(match[1])] if match else []


def newly_shared(before: Iterable[Exchange], after: Iterable[Exchange]) -> int | None:
    """Return a channel of the rewritten program whose operations do not share a channel in the original program, or
    None.

    The operations of a channel are a multiset, because a function that is called twice runs its collective twice.
    """
    groups = _operations_by_channel(before)
    for channel, operations in _operations_by_channel(after).items():
        if operations.total() > 1 and not any(operations <= other for other in groups.values()):
            return channel
    return None


def _operations_by_channel(exchanges: Iterable[Exchange]) -> dict[int, Counter[object]]:
    groups = defaultdict[int, Counter[object]](Counter[object])
    for channel, operation in exchanges:
        groups[channel][operation] += 1
    return groups


MANUAL = "sdy.manual_computation"
_ATTRIBUTES = {"in_shardings", "out_shardings", "manual_axes"}


@dataclass(frozen=True)
class PerDevice:
    """An `sdy.manual_computation` whose meaning is known to the proof.

    Attributes:
        op: The operation.
        block: The body of the operation, which runs on each device.
        axes: The manual axes.
        into: The shardings of the operands.
        out: The shardings of the results.
        mesh: The name of the mesh.
    """

    op: Operation
    block: Block
    axes: tuple[str, ...]
    into: tuple[str, ...]
    out: tuple[str, ...]
    mesh: str

    def devices(self, terms: Terms, enclosing: int) -> int:
        """Return the term that represents the devices that run the body.

        `enclosing`: the term that represents the devices of the enclosing body.
        """
        return terms.term(Head("devices", f"@{self.mesh} {list(self.axes)}"), (enclosing,))

    def parts(self, terms: Terms, heads: Heads, devices: int, wholes: Sequence[int]) -> list[int]:
        """Return, for each operand, the term of the part that one device holds."""
        types = heads.types(self.block.args, self.op)
        return [
            self._part(terms, Head("part", sharding, types=(type_,)), devices, whole)
            for sharding, type_, whole in zip(self.into, types, wholes, strict=True)
        ]

    def wholes(self, terms: Terms, heads: Heads, devices: int, parts: Sequence[int]) -> list[int]:
        """Return, for each result, the term of the value assembled from the parts on all devices."""
        last = self.block.last_op
        assert last is not None, "checked: the body has a terminator"
        types = zip(heads.types(self.op.results, self.op), heads.types(last.operands, last), strict=True)
        return [
            terms.term(Head("whole", sharding, types=pair), (devices, part))
            for sharding, pair, part in zip(self.out, types, parts, strict=True)
        ]

    def _part(self, terms: Terms, head: Head, devices: int, whole: int) -> int:
        whole_head = terms.head_of(whole)
        if (whole_head.kind, whole_head.name, whole_head.types[1:]) == ("whole", head.name, head.types):
            whole_devices, part = terms.operands_of(whole)
            if whole_devices == devices:
                return part
        return terms.term(head, (devices, whole))


def per_device(op: Operation) -> PerDevice | None:
    """Return an `sdy.manual_computation` as a `PerDevice`, or None if its shardings are inconsistent or it has further
    attributes."""
    if name_of(op) != MANUAL or len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return None
    attributes = attributes_of(op)
    block = op.regions[0].blocks[0]
    last = block.last_op
    if attributes.keys() != _ATTRIBUTES or last is None or not is_plain_terminator(last) or attributes_of(last):
        return None
    into, out, axes = attributes["in_shardings"], attributes["out_shardings"], attributes["manual_axes"]
    if not (isinstance(into, ShardingPerValueAttr) and isinstance(out, ShardingPerValueAttr)):
        return None
    counts = [(len(into.data), len(op.operands), len(block.args)), (len(out.data), len(op.results), len(last.operands))]
    layouts = [layout_of(sharding) for sharding in (*into.data, *out.data)]
    meshes = {None if layout is None else layout.mesh for layout in layouts}
    if any(len(set(count)) != 1 for count in counts) or len(meshes) != 1 or not isinstance(axes, ManualAxesAttr):
        return None
    (mesh,) = meshes
    return (
        None if mesh is None else PerDevice(op=op, block=block, axes=axes.data, into=into.data, out=out.data, mesh=mesh)
    )
