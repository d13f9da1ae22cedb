"""Patterns: terms for the unused operations in a loop that must be preserved (constraints, operations that may fail).

    while n < 8 { %w = sine %x; sdy.sharding_constraint %w }        pattern(n < 8: constraint(sine(history(n, x))))

A pattern represents an operation in all iterations of its loops: a term over one iteration number for each loop, with
the trip counts. A loop that computes the same values in a different order has an equivalent pattern:

    constraint(sine(history(7 - m, x))) with m < 8  is the pattern above with n = 7 - m, and covers all instances

In a loop that does not count to a constant, a pattern is a term over the carries on which the operation and the
condition of the loop depend.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice, product

from ..expressions.terms import Head, OpenRegion, RegionTerm
from .integers import Sum, whole
from .loop_terms import ConditionalLoop, CountingLoop, LoopPart, slice_of_loop
from .rules import LoopRules

MAX_CANDIDATES = 32
"""Maximum number of index expressions to try for each pattern."""
MAX_CHOICES = 256
"""Maximum number of combinations of index expressions to try. A combination has one expression for each loop of a
pattern."""


class Patterns:
    """Makes and compares patterns. Both programs share one `rules` object."""

    def __init__(self, rules: LoopRules):
        self._rules = rules
        self._terms = rules.terms
        self._no_state = rules.terms.term(Head("state", "nothing"))  # Recorded terms have no effects.

    def of_iterations(self, loop: CountingLoop, trips: int, term: int) -> int:
        """Return the pattern that represents a term of a loop body in all `trips` iterations of the loop."""
        # A carry that is the same in all iterations is already replaced with its initial value.
        places = {carry: place for place, carry in enumerate(loop.carries) if carry != loop.initial[place]}
        inside = OpenRegion((loop.iteration, *places, loop.state), (term,))
        number, captures = self._terms.close(inside, (), -1, loop.depth)
        body = self._terms.bodies[number]
        read = {position for entry in body.entries if entry is not None for position in entry[1]} | set(body.roots)
        index = self._index(self._terms.head_of(loop.iteration), loop.depth, trips)
        carried = [
            self._rules.history(loop, place, index) if position in read else carry
            for position, (carry, place) in enumerate(places.items(), 1)
        ]
        numbers = self._rules.instance(body, [index, *carried, self._no_state], captures)
        return self._over(index, trips, numbers[body.roots[0]], loop.depth)

    def of_rows(self, index: int, extent: int, term: int) -> int:
        """Return the pattern of a term for all values of a row index below `extent`, or the term itself if it does not
        depend on the index."""
        depth = self._terms.depth_of(index)
        return self._over(index, extent, term, depth) if self._terms.depth_of(term) >= depth else term

    def _over(self, index: int, extent: int, term: int, depth: int) -> int:
        """Return the pattern of a term, which may itself be a pattern, for all values of `index` below `extent`."""
        indices, extents = (index,), (extent,)
        if more := self._extents(term):
            opened, term = self._open(term, depth)
            indices, extents = (*indices, *opened), (*extents, *more)
        return self._close(indices, extents, term, depth)

    def of_constant(self, loop: CountingLoop, trips: int, term: int) -> int:
        """Return the pattern of a term that is the same in all iterations of a loop.

        The term itself would represent an operation outside the loop, or an operation whose result the loop reads.
        """
        return self._over(self._index(self._terms.head_of(loop.iteration), loop.depth, trips), trips, term, loop.depth)

    def until_it_ends(self, loop: ConditionalLoop, part: LoopPart, term: int) -> int:
        """Return the pattern that represents a term in a region (`part`) of a loop without a known trip count."""
        # The term becomes a carry: its slice contains the carries on which it and the condition depend.
        wider = replace(
            loop,
            carries=(*loop.carries, self._terms.fresh("variable", (), loop.depth)),
            initial=(*loop.initial, self._no_state),
            next=(*loop.next, term),
            types=(*loop.types, *self._terms.types_of(loop.condition)),
        )
        slice_ = slice_of_loop(self._terms, wider, len(loop.carries))
        return self._terms.term(slice_.head._replace(kind="until", name=part), slice_.operands)

    def is_repeated(self, pattern: int, others: Iterable[int]) -> bool:
        """Return whether every instance of `pattern` also occurs as an instance of one of `others`."""
        if any(other == pattern or self._indices_in(other, pattern) is not None for other in others):
            return True
        depth = 1 + self._terms.depth_of(pattern)
        return bool(self._extents(pattern)) and self._open(pattern, depth)[1] in others

    def is_covered(self, pattern: int, others: Iterable[int]) -> bool:
        """Return whether one of `others` has the same instances as `pattern`."""
        for other in others:
            if other == pattern:
                return True
            indices = self._indices_in(pattern, other)
            if indices is not None and self._are_onto(indices, self._extents(pattern)):
                return True
        return False

    def _index(self, like: Head, depth: int, trips: int) -> int:
        """Return a fresh iteration number below `trips`."""
        index = self._terms.fresh("variable", like.types, depth)
        self._rules.integers.ranges[index] = 0, trips - 1
        return index

    def _close(self, indices: Sequence[int], extents: Sequence[int], term: int, depth: int) -> int:
        integers, heads = self._rules.integers, [self._terms.head_of(index) for index in indices]
        types = tuple(head.types[0] for head in heads)
        inside = OpenRegion((*indices, self._terms.fresh("state", (), depth)), (term,))
        body, captures = self._terms.close(inside, types, -1, depth)
        trips = [integers.term_of_sum(whole(extent), head) for extent, head in zip(extents, heads, strict=True)]
        return self._terms.term(Head("pattern", "", types=types, bodies=(body,)), (*trips, *captures))

    def _extents(self, pattern: int) -> tuple[int, ...]:
        """Return the trip counts of the loops of a pattern; empty if a loop does not count to a constant."""
        head = self._terms.head_of(pattern)
        if head.kind != "pattern":
            return ()
        trips = self._terms.operands_of(pattern)[: len(head.types)]
        extents = tuple(self._rules.integers.constant(trip) for trip in trips)
        return tuple(extent for extent in extents if extent is not None) if None not in extents else ()

    def _open(self, pattern: int, depth: int) -> tuple[tuple[int, ...], int]:
        """Return fresh iteration numbers at this depth, and the instance of the pattern for these iterations."""
        head = self._terms.head_of(pattern)
        extents = self._extents(pattern)
        like = [head._replace(types=(type_,)) for type_ in head.types]
        indices = tuple(self._index(head, depth, extent) for head, extent in zip(like, extents, strict=True))
        return indices, self._instance(pattern, indices)

    def _instance(self, pattern: int, indices: Sequence[int]) -> int:
        body, captures = self._body(pattern)
        return self._rules.instance(body, [*indices, self._no_state], captures)[body.roots[0]]

    def _body(self, pattern: int) -> tuple[RegionTerm, tuple[int, ...]]:
        head = self._terms.head_of(pattern)
        return self._terms.bodies[head.bodies[0]], self._terms.operands_of(pattern)[len(head.types) :]

    def _indices_in(self, pattern: int, other: int) -> list[Sum] | None:
        """Return the iteration of `pattern` that equals a given iteration of `other`: for each loop of `pattern`, a sum
        over the iteration numbers of `other`. Return None if none is found."""
        extents = self._extents(pattern)
        if not extents or not self._extents(other) or not self._may_be_alike(pattern, other):
            return None
        depth = 1 + max(self._terms.depth_of(pattern), self._terms.depth_of(other))
        indices, term = self._open(other, depth)
        candidates = self._candidates(term, indices, depth)
        types = self._terms.head_of(pattern).types
        fitting = [
            [
                candidate
                for candidate in candidates
                if self._terms.head_of(candidate).types == (type_,) and self._is_below(candidate, extent)
            ]
            for type_, extent in zip(types, extents, strict=True)
        ]
        for place, own in enumerate(indices[: len(fitting)]):  # Try the corresponding loop first.
            fitting[place].sort(key=lambda candidate, own=own: candidate != own)
        for chosen in islice(product(*fitting), MAX_CHOICES):
            if self._instance(pattern, chosen) == term:
                return [self._rules.integers.sum_of(index) for index in chosen]
        return None

    def _is_below(self, number: int, extent: int) -> bool:
        within = self._rules.integers.interval(self._rules.integers.sum_of(number))
        return within is not None and within[0] >= 0 and within[1] < extent

    def _may_be_alike(self, pattern: int, other: int) -> bool:
        """Return whether both patterns represent the same kind of operation. Otherwise they cannot be equal."""
        names = list[tuple[object, ...]]()
        for number in (pattern, other):
            body, _ = self._body(number)
            entry = body.entries[body.roots[0] - len(body.types) - 1] if body.roots[0] > len(body.types) else None
            head = None if entry is None else self._terms.heads[entry[0]]
            names.append(() if head is None else (head.kind, head.name, head.numbers, head.attributes, head.types))
        return names[0] == names[1]

    def _candidates(self, term: int, indices: Sequence[int], depth: int) -> list[int]:
        """Return the index expressions that a term contains, as candidates for iteration numbers."""
        candidates = dict.fromkeys(indices)
        pending, visited = [term], set[int]()
        while pending and len(candidates) < MAX_CANDIDATES:
            number = pending.pop()
            if number in visited or self._terms.depth_of(number) < depth:
                continue
            visited.add(number)
            head = self._terms.head_of(number)
            operands = self._terms.operands_of(number)
            if head.kind == "history":
                candidates[operands[0]] = None
            elif head.kind == "index":
                candidates[number] = None
            pending.extend(operands)
        return list(candidates)

    def _are_onto(self, places: Sequence[Sum], extents: Sequence[int]) -> bool:
        """Return whether the sums, taken together, take on all combinations of values below the extents.

        The result is false if two sums share a base term.
        """
        bases = [base for place in places for base, _ in place.parts]
        pairs = zip(places, extents, strict=True)
        return len(set(bases)) == len(bases) and all(self._is_onto(place, extent) for place, extent in pairs)

    def _is_onto(self, place: Sum, extent: int) -> bool:
        """Return whether a sum is known to take on every value below the extent: its scales must be positional weights,
        as in a numeral system."""
        covered = 1
        for base, scale in sorted(place.parts, key=lambda part: abs(part[1])):
            interval = self._rules.integers.ranges.get(base)
            if interval is None or interval[0] != 0 or abs(scale) > covered:
                return False
            covered = abs(scale) * interval[1] + covered
        return covered >= extent
