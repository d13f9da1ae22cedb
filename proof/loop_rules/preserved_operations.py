"""Record the unused operations of loops that must be preserved. The scope that contains a loop gets a pattern for each
of these operations."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.ir import Operation

from ..translation.risks import executed_operations, record_risk
from ..translation.scope import RegionScope
from ..translation.termination import why_endless
from .constraints import CONSTRAINT
from .derived_carries import NumberedLoop
from .loop_terms import LoopPart, carries_behind, reaches
from .patterns import Patterns
from .rules import LoopRules
from .stack_terms import keeps_order


class PreservedOperations:
    """Records the unused operations that must be preserved in the loops of one program.

    Args:
        rules: The rules, which both programs share.
        origins: The first operation of each term. `record` adds the patterns.
    """

    def __init__(self, rules: LoopRules, origins: dict[int, Operation]):
        self._rules = rules
        self._terms = rules.terms
        self._patterns = Patterns(rules)
        self._origins = origins

    def record(self, op: Operation, numbered: NumberedLoop, scope: RegionScope) -> bool:
        """Record a loop's unused operations, over all its iterations, in the scope that contains the loop.

        Return False and record nothing if a sharding constraint cannot be separated from a loop that does not count.
        """
        patterns = list[int]()
        for part, region in numbered.regions:
            for term in region.preserved:
                if self._is_separable(op, numbered, term):
                    patterns.append(self._pattern(numbered, part, term))
                elif numbered.counting is not None:
                    patterns.append(
                        self._patterns.of_constant(numbered.counting_loop, numbered.counting.counter.trips, term)
                    )
                else:
                    return False
        for pattern in patterns:
            if not self._patterns.is_repeated(pattern, scope.preserved):
                scope.preserved[pattern] = None
        for part, region in numbered.regions:
            for term, ordered in region.executed.items():
                pattern = self._pattern(numbered, part, term)
                if not self._patterns.is_repeated(pattern, executed_operations(scope)):
                    self._record_risk(pattern, self._origins.get(term, op), scope, ordered)
            scope.exchanges.extend(region.exchanges)
        if numbered.counting is None and why_endless(op) is not None:
            pattern = self._patterns.until_it_ends(numbered.loop, "condition", numbered.loop.condition)
            self._record_risk(pattern, op, scope, ordered=True)
        return True

    def constraints_in(self, term: int) -> Iterator[int]:
        """Yield the constraints in the normal form of a sharding constraint: the constraint itself, or constraints on
        slices."""
        head = self._terms.head_of(term)
        if (head.kind, head.name) == ("operation", CONSTRAINT):
            yield term
        elif head.kind == "rows":
            index, row = self._rules.rows.open_row(term)
            extent = self._rules.integers.ranges[index][1] + 1
            yield from [self._patterns.of_rows(index, extent, inner) for inner in self.constraints_in(row)]
        elif (head.kind, head.name) == ("operation", "stablehlo.dynamic_update_slice"):
            yield from self.constraints_in(self._terms.operands_of(term)[1])
        elif keeps_order(self._terms, term):
            yield from self.constraints_in(self._terms.operands_of(term)[0])

    def occurs(self, term: int, others: Collection[int]) -> bool:
        """Return whether every instance of `term`, a risk or a constraint, also occurs as an instance of one of
        `others`."""
        if term in others:
            return True
        if self._terms.head_of(term).kind != "endless":
            return self._patterns.is_repeated(term, others)
        pattern, state = self._terms.operands_of(term)
        endless = [self._terms.operands_of(other) for other in others if self._terms.head_of(other).kind == "endless"]
        return self._patterns.is_repeated(pattern, [other for other, before in endless if before == state])

    def is_covered(self, term: int, others: Collection[int]) -> bool:
        """Return whether one of `others` represents every instance of `term`."""
        return term in others or self._patterns.is_covered(term, others)

    def _is_separable(self, op: Operation, numbered: NumberedLoop, constraint: int) -> bool:
        """Return whether a sharding constraint depends on the iteration or the loop uses the result of the
        constraint."""
        loop = numbered.loop
        if self._terms.depth_of(constraint) >= loop.depth:
            return True
        used = [index for index, result in enumerate(op.results) if any(result.uses)]
        effects = range(len(op.results), len(loop.carries))
        behind = {carry for index in (*used, *effects) for carry in carries_behind(self._terms, loop, index)}
        roots = loop.condition, *(loop.next[index] for index in behind)
        return reaches(self._terms, roots, frozenset({constraint}), loop.depth)

    def _pattern(self, numbered: NumberedLoop, part: LoopPart, term: int) -> int:
        """Return the pattern of a term in a region of the loop, over all iterations."""
        if numbered.counting is None:
            return self._patterns.until_it_ends(numbered.loop, part, term)
        if self._terms.depth_of(term) < numbered.loop.depth:  # There is at least one iteration.
            return term
        return self._patterns.of_iterations(numbered.counting_loop, numbered.counting.counter.trips, term)

    def _record_risk(self, pattern: int, origin: Operation, scope: RegionScope, ordered: bool) -> None:
        record_risk(self._terms, scope, pattern, ordered=ordered)
        self._origins.setdefault(pattern, origin)
