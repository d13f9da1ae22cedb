"""Value numbering that knows loops: tier 2 of the proof.

As `value_numbering.py`, and besides, in both programs alike:

* A carry that an iteration hands on as it got it is its initial value.
* Each result of a loop without effects is a term of its own, of the carries that it depends on (`opened.py`); so the
  others, dead stacks among them, do not count, nor does the order of the carries.
* Reading a stack is computing what was stored; and two rules of shapes (`rules.py`).
* Sums of a scalar integer and constants have one form (`integers.py`).
* Of what has to occur in a loop (a sharding constraint), one with the same attributes and type has to, in some loop.

Carries have numbers of their own, given once: of a counter it is known between which numbers it lies, and a name that
two loops shared would let the one be taken for the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..anatomy import attributes_of, name_of
from ..blocks import is_known_end, refuse_symbols, single_block
from ..scope import Scope
from ..terms import Head, Side
from ..value_numbering import Numbering
from .integers import Sum
from .opened import Counter, Opened, counter_of, sliced
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
        while (loop := self._numbered(op, cond, body, initial, scope, invariant)) is not None:
            found = frozenset(index for index, one in enumerate(loop.next) if one == loop.bound[index])
            if found <= invariant:
                return [initial[i] if i in invariant else self._result(op, loop, i) for i in range(len(initial))]
            # Only as terms they come out as they went in: what is computed from them may do so too.
            invariant |= found
        return None

    def _result(self, op: Operation, loop: Opened, index: int) -> int:
        if not any(op.results[index].uses):
            return self._terms.bound("bound", (loop.types[index],), 0)
        term = sliced(self._terms, loop, index)
        self._origins.setdefault(term, op)
        return term

    def _numbered(
        self,
        op: Operation,
        cond: Block,
        body: Block,
        initial: tuple[int, ...],
        scope: Scope,
        invariant: frozenset[int],
    ) -> Opened | None:
        """The loop as terms; None where something in it has to occur in an order. `invariant`: carries that an
        iteration hands on as it got them."""
        terms, depth = self._terms, scope.depth + 1
        types = self.heads.types(body.args, op)
        bound = tuple(
            initial[index] if index in invariant else terms.bound("bound", (type_,), depth)
            for index, type_ in enumerate(types)
        )
        state = terms.bound("state", (), depth)
        asked, done = self._scope(cond, bound, state, scope), self._scope(body, bound, state, scope)
        before, (condition, *_) = self._block(cond, asked)
        guessed = self._guess(body, bound, initial, condition, types, depth)
        after, following = self._block(body, done)
        for one in (asked, done):
            if one.state != state or one.risky:
                return None
            scope.kept.update(dict.fromkeys(map(self._kept, one.kept)))
        head = self.heads.of("operation", op, attributes_of(op))
        ending = terms.head(Head("loop", "ends", types=(before, after)))
        loop = Opened(bound, initial, following, condition, state, types, depth, head, ending)
        if guessed is not None and counter_of(terms, self._rules.integers, loop) != guessed:
            return None
        return loop

    def _scope(self, block: Block, bound: Sequence[int], state: int, around: Scope) -> Scope:
        scope = Scope(around.depth + 1, state, state, place=around.place, around=around, is_alike=False)
        scope.values.update(zip(block.args, bound, strict=True))
        return scope

    def _kept(self, number: int) -> int:
        """That something of this kind has to occur in a loop, whatever it is said of."""
        head = self._terms.head_of(number)
        return number if head.kind == "loop" else self._terms.term(head._replace(kind="loop"))

    def _guess(
        self,
        body: Block,
        bound: tuple[int, ...],
        initial: tuple[int, ...],
        condition: int,
        types: tuple[int, ...],
        depth: int,
    ) -> Counter | None:
        """The counter, and its range is noted, if the carry that the condition compares grows by one: it is read in the
        body before that is known for certain."""
        integers, last = self._rules.integers, body.last_op
        assert last is not None, "checked"
        following = list(bound)
        for index, (argument, value) in enumerate(zip(body.args, last.operands, strict=True)):
            if _adds_to(argument, value) and integers.width(self._terms.head_of(bound[index])) is not None:
                one = Sum(1, bound[index], 1)
                following[index] = integers.written(one, self._terms.head_of(bound[index]))
        loop = Opened(bound, initial, tuple(following), condition, 0, types, depth, Head("loop", ""), -1)
        counter = counter_of(self._terms, integers, loop)
        if counter is not None:
            integers.ranges[bound[counter.index]] = counter.start, counter.start + counter.trips - 1
        return counter


def _handed_on(body: Block) -> Iterator[int]:
    last = body.last_op
    assert last is not None, "checked"
    return (index for index, argument in enumerate(body.args) if last.operands[index] is argument)


def _adds_to(argument: SSAValue, value: SSAValue) -> bool:
    return isinstance(value, OpResult) and name_of(value.op) == "stablehlo.add" and argument in value.op.operands
