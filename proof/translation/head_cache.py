"""The cache of heads, which is the fast path of value numbering. A head is a term without its operands (`terms.py`).

Most operations of a step have the same parts as an earlier operation, except for the operands. For such an operation,
the value numbering applies the recorded head of the earlier operation to the new operands:

    %1 = stablehlo.tanh %0 : tensor<4xf32>      head recorded for its key: name, attributes, types
    %3 = stablehlo.tanh %2 : tensor<4xf32>      same key: the term is the recorded head applied to #2

A head is recorded only if its operation does nothing but compute one result from its operands: the operation has no
effect and no run-time condition, and reads neither the device nor the execution of a region. The regions of the
operation capture nothing and consist of such operations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, Region

from ...support.operations import name_of
from ..expressions.block_requirements import is_plain_terminator
from ..expressions.conditions import RunTimeConditions
from ..expressions.identities import SIMPLIFIED, Identities
from ..expressions.terms import ClosedRegion, Head, OpenRegion, Side, Terms
from ..operations.operation_parts import key_of_head
from ..operations.pure_operations import CUSTOM_CALL, OF_THE_DEVICE, OF_THE_REGION, PRESERVED
from ..operations.pure_traits import is_pure_by_traits
from .per_device import COLLECTIVES, channels_of
from .termination import why_endless

_NEVER_CACHED = frozenset((*OF_THE_REGION, *OF_THE_DEVICE, *COLLECTIVES, *PRESERVED, CUSTOM_CALL))


class CachedHead(NamedTuple):
    """The head of all operations with the same parts. The term of each operation is this head applied to its operands.

    Attributes:
        number: The id of the head in the table of terms.
        may_be_simplified: Whether an identity may simplify the result, depending on the operands.
        first: The first such operation, which keeps alive the attributes and types whose ids are in the key.
        open_regions: The regions of the first operation as terms.
    """

    number: int
    may_be_simplified: bool
    first: Operation
    open_regions: tuple[OpenRegion, ...] = ()


class HeadCache:
    """Heads of the operations of one program, by the key of their parts (`key_of_head`).

    Args:
        side: Which of the two programs this is, as in `Terms.origins`.
        terms: The table of terms.
        identities: Simplifies results.
        conditions: Run-time conditions of operations.
        declared: Names of operations that are pure only by the user's declaration.
    """

    def __init__(
        self,
        side: Side,
        terms: Terms,
        identities: Identities,
        conditions: RunTimeConditions,
        declared: Collection[str],
    ):
        self._terms = terms
        self._identities = identities
        self._conditions = conditions
        self._declared = declared
        self._origins = terms.origins[side]
        self._open_regions = terms.open_regions[side]
        self._by_key = dict[tuple[object, ...] | None, CachedHead]()
        # For functions that are called more than once. An id is valid because the program keeps its operations alive.
        self._by_id = dict[int, CachedHead]()

    def find(self, op: Operation) -> CachedHead | None:
        """Return the recorded head of an operation with the same parts, or None."""
        cached = self._by_id.get(id(op))
        if cached is None and (cached := self._by_key.get(key_of_head(op))) is not None:
            self._by_id[id(op)] = cached
        return cached

    def apply(self, op: Operation, cached: CachedHead, operands: tuple[int, ...]) -> int:
        """Return the term of the result of an operation with a cached head, for the terms of its operands."""
        if cached.may_be_simplified and (value := self._identities.value(op, operands)) is not None:
            return value
        term = self._terms.apply(cached.number, operands)
        self._origins.setdefault(term, op)
        if cached.open_regions:
            self._open_regions.setdefault(term, cached.open_regions)
        return term

    def record(self, op: Operation, head: Head, regions: Sequence[ClosedRegion]) -> None:
        """Record the head of an operation without effects and conditions, if possible.

        Nothing is recorded if the term depends on more than the head and the operands, or if value numbering must
        record more than the term.
        """
        if self._is_special(op) or len(op.results) != 1 or why_endless(op) is not None or channels_of(op):
            return
        if (key := key_of_head(op)) is None or not all(map(self._is_plain, regions, op.regions)):
            return
        open_regions = tuple([region.inside for region in regions if region.inside])
        self._by_key[key] = CachedHead(self._terms.head(head), name_of(op) in SIMPLIFIED, op, open_regions)

    def _is_special(self, op: Operation) -> bool:
        name = name_of(op)
        return (
            name in _NEVER_CACHED
            or name in self._declared
            or is_pure_by_traits(op)
            or self._conditions.depends_on_operands(op)
            or "sym_name" in op.attributes
            or "sym_name" in op.properties
        )

    def _is_plain(self, closed: ClosedRegion, region: Region) -> bool:
        """Return whether a region captures nothing and consists of operations with cached heads and a plain
        terminator."""
        *operations, last = region.block.ops
        return (
            closed.inside is not None
            and not (closed.inside.preserved or closed.inside.has_effects or closed.captures or closed.risks)
            and is_plain_terminator(last)
            and all(key_of_head(op) in self._by_key for op in operations)
        )
