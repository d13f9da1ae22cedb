"""Value numbering that knows loops: tier 2 of the proof.

As `value_numbering.py`, and besides, in both programs alike:

* A carry that an iteration hands on as it got it is its initial value, with what is written on the loop, if anything.
* Each result of a loop without effects is a term of its own, of the carries that it depends on (`opened.py`); so the
  others, dead stacks among them, do not count, nor does the order of the carries.
* Reading a stack is computing what was stored (`stored.py`), loops in pieces are one loop (`chunks.py`); and two rules
  of shapes (`rules.py`).
* Sums of scalar integers and their products with constants have one form (`integers.py`).
* A loop that counts to a constant runs equally often on all devices that come to it: its collectives are functions.
* Of what has to occur in a loop (a sharding constraint), one with the same attributes and type has to, in some loop,
  and on the same devices.

Carries have numbers of their own, given once: of a counter it is known between which numbers it lies, and a name that
two loops shared would let the one be taken for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..anatomy import attributes_of, name_of
from ..blocks import is_known_end, refuse_symbols, single_block
from ..scope import Scope
from ..terms import Head, Side
from ..value_numbering import Numbering
from .integers import whole
from .opened import Counter, Opened, counter_of, is_plain, numbered, written_on
from .rules import Rules

WHILE = "stablehlo.while"


class LoopNumbering(Numbering):
    """Numbers the values of one program; `rules` are shared by both."""

    def __init__(
        self,
        module: ModuleOp,
        side: Side,
        rules: Rules,
        pure: Collection[str],
        declared: Collection[str] = (),
    ):
        super().__init__(module, side, rules.terms, pure, declared)
        self._rules = rules

    def _apply(self, op: Operation, scope: Scope) -> Sequence[int]:
        if name_of(op) == WHILE and not scope.literal and (results := self._loop(op, scope)) is not None:
            return results
        results = super()._apply(op, scope)
        if op.regions or scope.literal or len(results) != 1:
            return results
        term = results[0]
        made = self._rules.make(self._terms.head_of(term), self._terms.operands_of(term))
        self._origins.setdefault(made, op)
        return (made,)

    def _loop(self, op: Operation, scope: Scope) -> Sequence[int] | None:
        """The results of a loop without effects; None for any other."""
        refuse_symbols(op, self.module)
        if len(op.regions) != 2 or any(not region.blocks for region in op.regions):
            return None
        cond, body = (single_block(op, region) for region in op.regions)
        if not len(cond.args) == len(body.args) == len(op.operands) == len(op.results):
            return None
        ends = [block.last_op for block in (cond, body)]
        if any(end is None or not is_known_end(end) for end in ends):
            return None
        if [len(end.operands) for end in ends if end is not None] != [1, len(op.operands)]:
            return None
        initial = self._operands(op, scope)
        invariant = frozenset(_handed_on(body))
        while (found := self._numbered(op, cond, body, initial, scope, invariant)) is not None:
            loop, counter = found
            unchanged = frozenset(index for index, one in enumerate(loop.next) if one == loop.bound[index])
            if unchanged <= invariant:
                return self._results(op, loop, counter, initial, invariant)
            # Only as terms they come out as they went in: what is computed from them may do so too.
            invariant |= unchanged
        return None

    def _results(
        self, op: Operation, loop: Opened, counter: _Counted | None, initial: tuple[int, ...], invariant: frozenset[int]
    ) -> list[int]:
        results = list[int]()
        for index, result in enumerate(op.results):
            if index in invariant:
                results.append(self._come_out(loop, initial[index]))
            elif not any(result.uses):
                results.append(self._terms.bound("bound", (loop.types[index],), 0))
            else:
                results.append(self._result(loop, counter, index))
                self._origins.setdefault(results[-1], op)
        return results

    def _result(self, loop: Opened, counted: _Counted | None, index: int) -> int:
        if counted is None:
            return self._rules.result(loop, index)
        counter, integers = counted.counter, self._rules.integers
        like = self._terms.head_of(counted.number)
        if index == counter.index:
            return self._come_out(loop, integers.written(whole(counter.start + counter.trips), like))
        without = numbered(loop, counter, counted.number)
        trips = integers.written(whole(counter.trips), like)
        return self._rules.history(without, index - (index > counter.index), trips)

    def _come_out(self, loop: Opened, number: int) -> int:
        """What the loop does nothing with is what it was, with all that is written on the loop."""
        if is_plain(self._terms, loop):
            return number
        return self._terms.term(Head("attributed", f"loop that ends as {loop.ending}", loop.head.attributes), (number,))

    def _numbered(
        self,
        op: Operation,
        cond: Block,
        body: Block,
        initial: tuple[int, ...],
        scope: Scope,
        invariant: frozenset[int],
    ) -> tuple[Opened, _Counted | None] | None:
        """The loop as terms, and how it counts; None where something in it has to occur in an order. `invariant`:
        carries that an iteration hands on as it got them."""
        terms, depth = self._terms, scope.depth + 1
        types = self.heads.types(body.args, op)
        bound = [
            initial[index] if index in invariant else terms.bound("bound", (type_,), depth)
            for index, type_ in enumerate(types)
        ]
        state = terms.bound("state", (), depth)
        asked = self._scope(cond, bound, state, scope)
        before, (condition, *_) = self._block(cond, asked)
        counted = self._counted(body, tuple(bound), initial, condition, depth)
        if counted is not None:
            bound[counted.counter.index] = counted.value
        done = self._scope(body, bound, state, scope)
        done.is_alike = scope.is_alike and counted is not None
        after, following = self._block(body, done)
        for one in (asked, done):
            if one.state != state or one.risky:
                return None
            scope.kept.update(dict.fromkeys(map(self._kept, one.kept)))
        if counted is not None and following[counted.counter.index] != self._one_more(counted.value):
            return None
        head = written_on(self.heads.of("operation", op, attributes_of(op)))
        ending = terms.head(Head("loop", "ends", types=(before, after)))
        loop = Opened(tuple(bound), initial, following, types, False, condition, state, depth, head, ending)
        return loop, counted

    def _scope(self, block: Block, bound: Sequence[int], state: int, around: Scope) -> Scope:
        scope = Scope(around.depth + 1, state, state, place=around.place, around=around, is_alike=False)
        scope.values.update(zip(block.args, bound, strict=True))
        return scope

    def _kept(self, number: int) -> int:
        """That something of this kind has to occur in a loop, whatever it is said of; on the same devices."""
        head = self._terms.head_of(number)
        if (head.kind, head.name) == ("place", "kept"):
            place, one = self._terms.operands_of(number)
            return self._terms.term(head, (place, self._kept(one)))
        return number if head.kind == "loop" else self._terms.term(head._replace(kind="loop"))

    def _counted(
        self, body: Block, bound: tuple[int, ...], initial: tuple[int, ...], condition: int, depth: int
    ) -> _Counted | None:
        """How the loop counts, if the carry that the condition compares seems to grow by one: it is read in the body
        before that is known for certain."""
        integers, last = self._rules.integers, body.last_op
        assert last is not None, "checked"
        counter = counter_of(self._terms, integers, condition, bound, initial)
        if counter is None or not _adds_to(body.args[counter.index], last.operands[counter.index]):
            return None
        like = self._terms.head_of(bound[counter.index])
        number = self._terms.bound("bound", like.types, depth)
        integers.ranges[number] = 0, counter.trips - 1
        value = integers.written(integers.sum_of(number).plus(whole(counter.start)), like)
        return _Counted(counter, number, value)

    def _one_more(self, value: int) -> int:
        integers = self._rules.integers
        return integers.written(integers.sum_of(value).plus(whole(1)), self._terms.head_of(value))


@dataclass(frozen=True)
class _Counted:
    """`number`: of the iteration. `value`: what the counter is then."""

    counter: Counter
    number: int
    value: int


def _handed_on(body: Block) -> Iterator[int]:
    last = body.last_op
    assert last is not None, "checked"
    return (index for index, argument in enumerate(body.args) if last.operands[index] is argument)


def _adds_to(argument: SSAValue, value: SSAValue) -> bool:
    return isinstance(value, OpResult) and name_of(value.op) == "stablehlo.add" and argument in value.op.operands
