"""Rewrite rules for loop terms. Each rule maps a term to a normal form, which equal terms share.

The term `history(n, x)` is the value of carry x of a loop at the start of iteration n. `history(0, x)` is the initial
value. The term contains only the part of the loop that computes x, so two loops that compute x in the same way have the
same term.

*Stacks.* A read of a stack is the stored value (`stack_terms.py`).

*Shapes.* Adding and then removing a dimension of extent 1 is the identity, and two consecutive reshapes are one
reshape.

*Continuation.* A loop that continues another loop is part of that loop. Suppose that the initial carries of a loop are
the carries of another loop after `a` iterations. Suppose also that iteration n of the first loop computes the same
function of its carries as iteration `a + n` of the other loop. The carries of the first loop are the later carries of
the other loop:

    history(n, y)  with  y before the loop = history(a, x),  next y (n) = next x (a + n)    ->    history(a + n, x)

The proof is by induction on n.

*Flattening.* A loop around a loop is one loop. Suppose that each iteration q of a loop consists of k iterations of an
inner loop with the same carries. If both loops use q and the inner iteration n only in the sum `k * q + n`, they are
one loop over this sum:

    history(q, y)  with  next y (q) = history(k, x), x before the loop = y, next x (q, n) = f(k * q + n, x)
    ->  history(k * q, z)  with  next z (t) = f(t, z)

The proof is by induction on q, and on n within each q. Programs with a checkpoint every k iterations need both rules
(Griewank and Walther, Evaluating Derivatives, 2008, chapter 12). The rules check the induction step: the terms of one
body, with `a + n` as its iteration number, must equal the terms of the other body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..expressions.memory_spaces import MemorySpaces
from ..expressions.terms import Head, OpenRegion, RegionTerm, Terms
from . import constraints
from .integers import MAX_COUNTER, Integers, Interval, Sum, whole
from .loop_terms import AnyLoop, ConditionalLoop, CountingLoop, Slice, reaches, slice_of_loop
from .stack_terms import RowTermBuilder, StoredSlice, extents, keeps_order, part_of_part, stored_by


class LoopRules:
    """Makes terms in normal form.

    Args:
        terms: The table of terms.
        names_memories: Whether one of the programs names memory spaces. If so, the stack rule applies only to stacks
            whose initial values are on the device, because a stack stays in the memory of its initial value.
    """

    def __init__(self, terms: Terms, names_memories: bool = False):
        self.terms = terms
        self.spaces = MemorySpaces(terms)
        self._names_memories = names_memories
        self.integers = Integers(terms)
        self.rows = RowTermBuilder(self)
        self._opened = dict[int, CountingLoop]()
        self._stored = dict[int, StoredSlice | None]()
        self._slices = dict[int, Slice]()
        self._made = dict[tuple[Head, tuple[int, ...]], int]()
        self._histories = dict[tuple[Head, tuple[int, ...]], int]()

    def make(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return the normal form of the term with this head and these operands."""
        key = head, operands
        if (term := self._made.get(key)) is None:
            term = self._made[key] = self._apply(head, operands)
        return term

    def _apply(self, head: Head, operands: tuple[int, ...]) -> int:
        result = None
        match head.kind, head.name:
            case "loop", _:
                return self.result(self._open_conditional(head, operands), 0)
            case "history", _:
                return self.history(self._open_counting(head, operands), 0, operands[0])
            case "rows", _:
                return self.rows.with_captures(head, operands)
            case "index", _:
                result = self.integers.term_of_sum(self.integers.expand(head, operands), head)
            case "operation", "stablehlo.add" | "stablehlo.subtract" | "stablehlo.multiply":
                result = self.integers.normal_form(head, operands)
            case "operation", "stablehlo.constant":  # Use the same form as a sum with this value.
                value = self.integers.constant(self.terms.term(head))
                result = None if value is None else self.integers.term_of_sum(whole(value), head)
            case "operation", "stablehlo.compare":
                result = self.integers.decide_comparison(head, operands)
            case "operation", "stablehlo.select" if not head.attributes:
                truth = self.integers.truth(operands[0])
                result = None if truth is None else operands[1 if truth else 2]
            case "operation", "stablehlo.dynamic_slice":
                result = self._read(head, operands)
            case "operation", "stablehlo.reshape":
                result = self._simplify_reshape(head, operands[0])
            case "operation", constraints.CONSTRAINT:
                result = constraints.normal_form(self, head, operands[0])
            case _:
                pass
        return self.terms.term(head, operands) if result is None else result

    def slice(self, loop: AnyLoop, index: int) -> Slice:
        """Return the part of the loop on which carry `index` depends."""
        carry = loop.carries[index]
        if (part := self._slices.get(carry)) is None:
            part = self._slices[carry] = slice_of_loop(self.terms, loop, index)
        return part

    def result(self, loop: ConditionalLoop, index: int) -> int:
        """Return the value of carry `index` after a loop that does not count."""
        slice_ = self.slice(loop, index)
        return self.terms.term(slice_.head, slice_.operands)

    def history(self, loop: CountingLoop, index: int, at: int) -> int:
        """Return the value of carry `index` at the start of iteration `at` of a counting loop."""
        if self.integers.constant(at) == 0:
            return loop.initial[index]
        slice_ = self.slice(loop, index)
        key = slice_.head, (at, *slice_.operands)
        if (term := self._histories.get(key)) is None:
            simplified = continue_loop(self, loop, index, at)
            simplified = flatten_loop(self, loop, index, at) if simplified is None else simplified
            term = self._histories[key] = self.terms.term(*key) if simplified is None else simplified
        return term

    def _interval(self, number: int) -> Interval | None:
        return self.integers.interval(self.integers.sum_of(number))

    def open_history(self, number: int) -> CountingLoop:
        """Return the loop of a `history` term, with fresh terms for its carries. The carry of the `history` term comes
        first."""
        if (loop := self._opened.get(number)) is None:
            loop = self._open_counting(self.terms.head_of(number), self.terms.operands_of(number))
            self._opened[number] = loop
        return loop

    def _open_counting(self, head: Head, operands: tuple[int, ...]) -> CountingLoop:
        """Return the loop of a `history` term with this head and these operands."""
        body, (at, *inputs) = self.terms.bodies[head.bodies[0]], operands
        depth, (iteration, *carries), state = self._fresh_arguments(body, inputs)
        if (reached := self._interval(at)) is not None:
            self.integers.ranges[iteration] = 0, max(0, reached[1] - 1)
        initial, captures = inputs[: len(carries)], inputs[len(carries) :]
        numbers = self.instance(body, (iteration, *carries, state), captures)
        *following, _ = [numbers[root] for root in body.roots]
        return CountingLoop(
            carries=tuple(carries),
            initial=tuple(initial),
            next=tuple(following),
            types=body.types[1:],
            state=state,
            depth=depth,
            iteration=iteration,
        )

    def _open_conditional(self, head: Head, operands: tuple[int, ...]) -> ConditionalLoop:
        """Return the loop of a `loop` term with this head and these operands."""
        body = self.terms.bodies[head.bodies[0]]
        depth, carries, state = self._fresh_arguments(body, operands)
        initial, captures = operands[: len(carries)], operands[len(carries) :]
        numbers = self.instance(body, (*carries, state), captures)
        condition, *following, _ = [numbers[root] for root in body.roots]
        return ConditionalLoop(
            carries=tuple(carries),
            initial=initial,
            next=tuple(following),
            types=body.types,
            state=state,
            depth=depth,
            condition=condition,
        )

    def _fresh_arguments(self, body: RegionTerm, inputs: Sequence[int]) -> tuple[int, list[int], int]:
        """Return a nesting depth larger than the depths of all inputs, and fresh terms at this depth for the arguments
        of a body and the state at its start."""
        depth = 1 + max(map(self.terms.depth_of, inputs), default=0)
        arguments = self.terms.fresh_arguments(body.types, depth)
        return depth, arguments, self.terms.fresh("state", (), depth)

    def instance(self, body: RegionTerm, arguments: Sequence[int], captures: Sequence[int]) -> list[int]:
        """Instantiate a body: return the terms at its positions, given the terms of its arguments (including the state)
        and of its captures."""
        numbers = list(arguments)
        remaining_captures = iter(captures)
        for entry in body.entries:
            if entry is None:
                numbers.append(next(remaining_captures))
            else:
                head, positions = entry
                numbers.append(self.make(self.terms.heads[head], tuple([numbers[position] for position in positions])))
        return numbers

    def substitute(self, terms: Sequence[int], values: Mapping[int, int], depth: int) -> list[int]:
        """Return the terms with the keys of `values`, which have at least this depth, replaced with the values."""
        body, captures = self.terms.close(
            OpenRegion((*values, self.terms.fresh("state", (), depth)), tuple(terms)), (), -1, depth
        )
        numbers = self.instance(self.terms.bodies[body], [*values.values(), -1], captures)
        return [numbers[root] for root in self.terms.bodies[body].roots]

    def _read(self, head: Head, operands: tuple[int, ...]) -> int | None:
        """Return the stored value that a `dynamic_slice` reads from a stack, or None if it is unknown."""
        source, index, *others = operands
        if {name for name, _ in head.attributes} != {"slice_sizes"}:
            return None
        if any(self.integers.constant(start) != 0 for start in others):
            return None
        place = self.integers.sum_of(index)
        match self.terms.head_of(source).kind:
            case "rows":
                return self.rows.read(source, place, head.types)
            case "history":
                return self._read_stored(source, place, head.types)
            case _:
                pass
        shape = extents(self.terms, self.terms.types_of(source))
        if not shape or extents(self.terms, head.types) != (1, *shape[1:]):
            return None
        if (source_part := part_of_part(self, source, place)) is None:
            return None
        array, place = source_part
        types = self.terms.types_of(index)
        if any(self.terms.types_of(base) != types for base, _ in place.parts):
            return None
        at = self.integers.term_of_sum(place, self.terms.head_of(index))
        return self.make(head, (array, at, *others))

    def _read_stored(self, source: int, place: Sum, types: tuple[int, ...]) -> int | None:
        if (stored := self.stored_in(source)) is None or types != stored.types:
            return None
        number = stored.written_at(place)
        within = self.integers.interval(number)
        if within is None or within[0] < 0 or within[1] >= stored.trips:
            return None
        like = self.terms.head_of(stored.loop.iteration)
        if any(self.terms.head_of(base).types != like.types for base, _ in number.parts):
            return None
        return self.at(stored, self.integers.term_of_sum(number, like))

    def at(self, stored: StoredSlice, number: int) -> int:
        """Return the slice that iteration `number` stores in a stack."""
        loop, read = (
            stored.loop,
            {position for entry in stored.body.entries if entry is not None for position in entry[1]},
        )
        read.update(stored.body.roots)
        carried = [
            self.history(loop, index, number) if index + 1 in read else carry
            for index, carry in enumerate(loop.carries)
        ]
        numbers = self.instance(stored.body, [number, *carried, loop.state], stored.captures)
        return numbers[stored.body.roots[0]]

    def stored_in(self, source: int) -> StoredSlice | None:
        """Return the slices that a loop stores in a stack, or None if `source`, a `history` term, is not proved to be a
        stack."""
        if source not in self._stored:
            trips = self.integers.constant(self.terms.operands_of(source)[0])
            if trips is None or not 0 < trips <= MAX_COUNTER:
                self._stored[source] = None
            else:
                opened = self.open_history(source)
                is_moved = self._names_memories and not self.spaces.is_on_device(opened.initial[0])
                self._stored[source] = None if is_moved else stored_by(self.terms, self.integers, opened, trips)
        return self._stored[source]

    def _simplify_reshape(self, head: Head, operand: int) -> int | None:
        """Simplify the reshape of a reshape, of a broadcast that only adds dimensions of extent 1, or of a stack of
        stacks. Return None if it cannot be simplified."""
        inner = self.terms.head_of(operand)
        if inner.kind == "rows" and not head.attributes:
            return self.rows.join(operand, head.types)
        if inner.kind != "operation" or not keeps_order(self.terms, operand) or head.attributes:
            return None
        source = self.terms.operands_of(operand)[0]
        if self.terms.types_of(source) == head.types:
            return source
        return self.make(head, (source,)) if inner.name == "stablehlo.reshape" else None


class LoopTermRules(Protocol):
    """The part of the `LoopRules` interface that the rules for split loops use."""

    terms: Terms
    integers: Integers

    def open_history(self, number: int) -> CountingLoop: ...

    def slice(self, loop: AnyLoop, index: int) -> Slice: ...

    def history(self, loop: CountingLoop, index: int, at: int) -> int: ...

    def make(self, head: Head, operands: tuple[int, ...]) -> int: ...

    def instance(self, body: RegionTerm, arguments: Sequence[int], captures: Sequence[int]) -> list[int]: ...


def continue_loop(rules: LoopTermRules, loop: CountingLoop, index: int, at: int) -> int | None:
    """If `loop` continues another loop, return the value of carry `index` at the start of iteration `at` as a term of
    that loop; otherwise None."""
    first = loop.initial[index]
    if rules.terms.head_of(first).kind != "history":
        return None
    other = rules.open_history(first)
    order = rules.slice(loop, index).order
    stopped = rules.terms.operands_of(first)[0]
    if not _are_alike(rules, loop, order, other):
        return None
    number, reached = _sum(rules, loop.iteration, stopped), _sum(rules, at, stopped)
    if number is None or reached is None:
        return None
    carried = [loop.carries[carry] for carry in order]
    if _next(rules, first, (number, *carried, loop.state)) != [loop.next[carry] for carry in order]:
        return None
    initial = [rules.history(other, position, stopped) for position in range(len(order))]
    if initial != [loop.initial[carry] for carry in order]:
        return None
    # `rules.history(other, …)` would be wrong here: the ranges of `other` cover only its first iterations.
    return rules.make(rules.terms.head_of(first), (reached, *rules.terms.operands_of(first)[1:]))


def flatten_loop(rules: LoopTermRules, loop: CountingLoop, index: int, at: int) -> int | None:
    """Return the value of carry `index` at the start of iteration `at` as a term of a single loop over all inner
    iterations.

    Return None unless each iteration of the loop only runs an inner loop.
    """
    terms, integers = rules.terms, rules.integers
    if terms.head_of(loop.next[index]).kind != "history":
        return None
    runs = terms.operands_of(loop.next[index])[0]
    trips = integers.constant(runs)
    reached = integers.interval(integers.sum_of(at))
    if trips is None or trips < 1 or reached is None or reached[0] < 0 or trips * reached[1] > MAX_COUNTER:
        return None
    inner = rules.open_history(loop.next[index])
    order = _carries_of(rules, loop, index)
    if order is None or not _are_alike(rules, loop, order, inner):
        return None
    if [rules.history(inner, position, runs) for position in range(len(order))] != [
        loop.next[carry] for carry in order
    ]:
        return None
    number = terms.fresh("variable", terms.head_of(loop.iteration).types, loop.depth)
    integers.ranges[number] = 0, max(0, trips * reached[1] - 1)
    inner_number = integers.sum_of(number).minus(integers.sum_of(loop.iteration).times(trips))
    carried = tuple([terms.fresh("variable", (loop.types[carry],), loop.depth) for carry in order])
    arguments = integers.term_of_sum(inner_number, terms.head_of(number)), *carried, loop.state
    following = tuple(_next(rules, loop.next[index], arguments))
    if reaches(terms, following, frozenset((loop.iteration, *loop.carries)), loop.depth):
        return None
    initial = tuple(loop.initial[carry] for carry in order)
    types = tuple(loop.types[carry] for carry in order)
    flat = CountingLoop(
        carries=carried,
        initial=initial,
        next=following,
        types=types,
        state=loop.state,
        depth=loop.depth,
        iteration=number,
    )
    return rules.history(flat, 0, integers.term_of_sum(integers.sum_of(at).times(trips), terms.head_of(number)))


def _carries_of(rules: LoopTermRules, loop: CountingLoop, index: int) -> tuple[int, ...] | None:
    """Return, for each carry of the inner loop, the index of the outer carry that is its initial value. Return None if
    an initial value is not an outer carry, or if two inner carries have the same initial value.
    """
    index_of = {term: carry for carry, term in enumerate(loop.carries)}
    initial = rules.open_history(loop.next[index]).initial
    order = tuple([index_of[first] for first in initial if first in index_of])
    is_each = len(order) == len(initial) == len(set(order)) and order[:1] == (index,)
    return order if is_each else None


def _are_alike(rules: LoopTermRules, loop: CountingLoop, order: Sequence[int], other: CountingLoop) -> bool:
    """Return whether the iteration numbers of both loops have the same type, and `other` has as many carries as `order`
    has entries."""
    type_, other_type = (rules.terms.head_of(opened.iteration).types for opened in (loop, other))
    return type_ == other_type and len(order) == len(other.carries)


def _next(rules: LoopTermRules, history: int, arguments: Sequence[int]) -> list[int]:
    """Return the carries that the loop of a `history` term computes from these arguments: iteration number, carries,
    state."""
    terms = rules.terms
    body = terms.bodies[terms.head_of(history).bodies[0]]
    operands = terms.operands_of(history)
    carries = len(body.types) - 1
    numbers = rules.instance(body, arguments, operands[1 + carries :])
    return [numbers[root] for root in body.roots[:-1]]


def _sum(rules: LoopTermRules, number: int, other: int) -> int | None:
    """Return the term of the sum of two iteration numbers, or None if the sum may be negative or overflow."""
    integers = rules.integers
    total: Sum = integers.sum_of(number).plus(integers.sum_of(other))
    within = integers.interval(total)
    return integers.term_of_sum(total, rules.terms.head_of(number)) if within is not None and within[0] >= 0 else None
