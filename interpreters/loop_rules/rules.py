"""The rules by which terms with loops become the same: each takes a term that would be made, and says which it is.

Reading a stack is computing what was stored. A *stack* is a carry of a counted loop that writes, in every iteration, a
slice at the place of the counter (or counted from the end), covers its first dimension so, and that the loop does with
nothing else. Slice j of what such a loop returns is what the iteration that wrote it has stored, wherever j is known to
be within bounds:

    dynamic_slice(loop(… dynamic_update_slice(s, u(i, x), i) …), j)   ->   u(j, history(x, j))

`history(x, j)` is what carry x of that loop is when iteration j begins: of the loop that computes x alone, so that two
loops that compute x in the same way agree on it. Nothing is known of it but that.

Of shapes: to give a dimension of extent 1 and take it away, and to reshape twice, is to do nothing, or once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..terms import Body, Head, Terms
from .integers import Integers, Sum
from .opened import Opened, counter_of, sliced
from .stored import Stored, keeps_order, stored_by


class Rules:
    """Makes terms. `integers`: what is known of their ranges."""

    def __init__(self, terms: Terms):
        self.terms = terms
        self.integers = Integers(terms)
        self._opened = dict[int, Opened]()
        self._stored = dict[int, Stored | None]()
        self._made = dict[tuple[Head, tuple[int, ...]], int]()

    def make(self, head: Head, operands: tuple[int, ...]) -> int:
        """The term, or the one that it is equal to."""
        key = head, operands
        if (known := self._made.get(key)) is None:
            known = self._made[key] = self._apply(head, operands)
        return known

    def _apply(self, head: Head, operands: tuple[int, ...]) -> int:
        found = None
        if head.kind == "loop":
            return self._closed_again(head, operands)
        if head.kind == "operation":
            match head.name:
                case "stablehlo.add" | "stablehlo.subtract":
                    found = self.integers.added(head, operands)
                case "stablehlo.dynamic_slice":
                    found = self._read(head, operands)
                case "stablehlo.reshape":
                    found = self._reshaped(head, operands[0])
                case _:
                    pass
        elif head.kind == "index":
            scale, offset = map(int, head.name.split())
            inner = self.integers.sum_of(operands[0])
            total = Sum(scale * inner.scale, inner.base, scale * inner.offset + offset)
            found = self.integers.written(total, head)
        return self.terms.term(head, operands) if found is None else found

    def _closed_again(self, head: Head, operands: tuple[int, ...]) -> int:
        """A loop of which the captures are known better now."""
        loop = self._open(head, operands)
        return sliced(self.terms, loop, int(head.name))

    def opened(self, number: int) -> Opened:
        """The loop that a term is a result of, with carries of its own."""
        if (known := self._opened.get(number)) is None:
            known = self._open(self.terms.head_of(number), self.terms.operands_of(number))
            self._opened[number] = known
        return known

    def _open(self, head: Head, operands: tuple[int, ...]) -> Opened:
        terms, body = self.terms, self.terms.bodies[head.bodies[0]]
        depth = 1 + max(map(terms.depth_of, operands), default=0)
        bound = tuple([terms.bound("bound", (type_,), depth) for type_ in body.types])
        state = terms.bound("state", (), depth)
        initial, captures = operands[: len(bound)], operands[len(bound) :]
        self._learn(body, bound, initial, captures)
        numbers = self.instance(body, (*bound, state), captures)
        condition, *following, _ = [numbers[root] for root in body.roots]
        return Opened(bound, initial, tuple(following), condition, state, body.types, depth, head, body.ending)

    def _learn(self, body: Body, bound: Sequence[int], initial: Sequence[int], captures: Sequence[int]) -> None:
        """The range of the counter, before anything is computed from it: what it is compared with, and that it grows
        by one, stand in the body."""
        numbers = dict(enumerate(bound))
        given = iter(captures)
        for position, entry in enumerate(body.entries, len(bound) + 1):
            if entry is None:
                numbers[position] = next(given)
            elif position in (body.roots[0], *body.roots[1 : 1 + len(bound)]) and all(p in numbers for p in entry[1]):
                head = self.terms.heads[entry[0]]
                numbers[position] = self.terms.term(head, tuple([numbers[p] for p in entry[1]]))
        if body.roots[0] not in numbers:
            return
        following = [numbers.get(root, bound[index]) for index, root in enumerate(body.roots[1 : 1 + len(bound)])]
        loop = Opened(
            tuple(bound), tuple(initial), tuple(following), numbers[body.roots[0]], 0, body.types, 0, _NO_HEAD, -1
        )
        if (counter := counter_of(self.terms, self.integers, loop)) is not None:
            self.integers.ranges[bound[counter.index]] = counter.start, counter.start + counter.trips - 1

    def instance(self, body: Body, arguments: Sequence[int], captures: Sequence[int]) -> list[int]:
        """The terms at the positions of a body for these arguments, which include the state."""
        numbers, given = list(arguments), iter(captures)
        for entry in body.entries:
            if entry is None:
                numbers.append(next(given))
            else:
                head, positions = entry
                numbers.append(self.make(self.terms.heads[head], tuple([numbers[position] for position in positions])))
        return numbers

    def _read(self, head: Head, operands: tuple[int, ...]) -> int | None:
        """The slice of a stack, as it was stored; None where that is not known."""
        source, place, *others = operands
        if self.terms.head_of(source).kind != "loop":
            return None
        stored = self._stored_in(source)
        if stored is None or head.types != stored.types or {name for name, _ in head.attributes} != {"slice_sizes"}:
            return None
        if any(self.integers.constant(one) != 0 for one in others):
            return None
        read = self.integers.sum_of(place)
        within = self.integers.interval(read)
        if within is None or within[0] < 0 or within[1] >= stored.counter.trips:
            return None
        counter = self.terms.head_of(stored.loop.bound[stored.counter.index])
        if read.scale and self.terms.head_of(read.base).types != counter.types:
            return None
        return self._at(stored, self.integers.written(stored.counter_at(read), counter))

    def _at(self, stored: Stored, counter: int) -> int:
        """What is stored in the iteration in which the counter is this."""
        read = {position for entry in stored.body.entries if entry is not None for position in entry[1]}
        read.update(stored.body.roots)
        arguments = list[int]()
        for index, bound in enumerate(stored.loop.bound):
            if index not in read:
                arguments.append(bound)
            elif index == stored.counter.index:
                arguments.append(counter)
            else:
                carried = sliced(self.terms, stored.loop, index)
                head = Head("history", "", types=(stored.loop.types[index],))
                arguments.append(self.terms.term(head, (carried, counter)))
        numbers = self.instance(stored.body, [*arguments, stored.loop.state], stored.captures)
        return numbers[stored.body.roots[0]]

    def _stored_in(self, source: int) -> Stored | None:
        if source not in self._stored:
            index = int(self.terms.head_of(source).name)
            self._stored[source] = stored_by(self.terms, self.integers, self.opened(source), index)
        return self._stored[source]

    def _reshaped(self, head: Head, operand: int) -> int | None:
        """A reshape of what is a reshape, or of what has dimensions of extent 1 more."""
        inner = self.terms.head_of(operand)
        if inner.kind != "operation" or not keeps_order(self.terms, operand) or head.attributes:
            return None
        source = self.terms.operands_of(operand)[0]
        if self.terms.head_of(source).types == head.types:
            return source
        return self.make(head, (source,)) if inner.name == "stablehlo.reshape" else None


_NO_HEAD = Head("state", "")
