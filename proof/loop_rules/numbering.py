"""Value numbering with rules for loops and conditionals: tier 2 of the proof.

The rules of `value_numbering.py` apply, and in addition, to both programs:

* A carry that an iteration yields unchanged is its initial value.
* Each result of a loop is a term of its own over the carries on which it depends (`loop_terms.py`). Other carries, such
  as dead stacks, and the order of the carries do not matter.
* The effects of a loop are one more carry: an iteration begins with the effects so far, and yields its own after them.
  Effects therefore keep their number and order, and a carry that reads the result of an effect depends on it.
* A read of a stack is the stored value, and a stack that is written completely is an array of rows (`stack_terms.py`).
  A loop split into several is one loop, and two rules simplify shapes (`rules.py`).
* Sums of scalar integers, and their products with constants, have a normal form (`integers.py`).
* Each result of a conditional without effects is a term of its own over the condition and the results of the regions.
  Inside a region, the result of another conditional with the same condition is the result of the same region there.
* A loop that counts to a constant runs equally often on all devices that reach it, so its collectives are functions.
* Unused operations of the iterations that must be preserved (a sharding constraint, an operation that may fail, an
  exchange over a channel) belong to the loop, with their operands in each iteration (`patterns.py`).

A loop with attributes, or one in which operand, argument and result of a carry have different types, is compared
literally, as in tier 1.

Each carry gets a fresh number: counters have known ranges, which a number shared by two loops would mix up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ..block_requirements import is_plain_terminator, refuse_symbols, single_block
from ..operation_parts import attributes_of, name_of
from ..risks import all_that_ran, close_risks, record_closure_risks, record_risk
from ..scope import Branch, RegionScope
from ..termination import why_endless
from ..terms import Head, Side
from ..value_numbering import Numbering, NumberingOptions, SimpleHead
from .integers import Sum, whole
from .loop_terms import (
    WHILE,
    Counter,
    InvariantCarries,
    LoopPart,
    OpenLoop,
    carries_behind,
    counter_of,
    over_iteration_number,
    reaches,
)
from .patterns import Patterns
from .rules import LoopRules

BRANCHES = frozenset({"scf.if", "stablehlo.case", "stablehlo.if"})
"""Conditionals whose operand decides which region runs."""
_PARTS: tuple[LoopPart, LoopPart] = "condition", "body"


class LoopNumbering(Numbering):
    """Value numbering of one program with the rules of tier 2. Both programs share one `rules` object."""

    def __init__(self, module: ModuleOp, side: Side, rules: LoopRules, options: NumberingOptions):
        super().__init__(module, side, rules.terms, options)
        self._rules = rules
        self._memory_spaces = rules.spaces
        self._patterns = Patterns(rules)
        self._invariant_carries = InvariantCarries()
        self._state_type = self._terms.attributes.number(StringAttr("the effects so far"))

    def _apply(self, op: Operation, scope: RegionScope) -> Sequence[int]:
        if name_of(op) == WHILE and not scope.literal and (results := self._loop(op, scope)) is not None:
            return results
        if name_of(op) in BRANCHES and not scope.literal and (results := self._branches(op, scope)) is not None:
            return results
        results = super()._apply(op, scope)
        if op.regions or scope.literal or len(results) != 1:
            return results
        term = results[0]
        made = self._rules.make(self._terms.head_of(term), self._terms.operands_of(term))
        self._origins.setdefault(made, op)
        return (made,)

    def _simple(self, op: Operation, head: SimpleHead, scope: RegionScope) -> int:
        term = super()._simple(op, head, scope)
        if op.regions:
            return term
        made = self._rules.make(self._terms.head_of(term), self._terms.operands_of(term))
        self._origins.setdefault(made, op)
        return made

    def _operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]:
        numbers = super()._operands(op, scope)
        if not scope.chosen:
            return numbers
        return tuple(self._choose_branch(number, scope.chosen) for number in numbers)

    def _choose_branch(self, number: int, chosen: Mapping[int, Branch]) -> int:
        """Replace the result of a conditional whose condition is decided here by the result of the region that runs.

        Both conditionals must have the same number of regions, since the last region runs for all indices out of range.
        """
        while self._terms.head_of(number).kind == "branch":
            decides, *results = self._terms.operands_of(number)
            if decides not in chosen or chosen[decides].regions != len(results):
                break
            number = results[chosen[decides].region]
        return number

    def _branches(self, op: Operation, scope: RegionScope) -> Sequence[int] | None:
        """Return each result of a conditional without effects as a term over the results of its regions; None if the
        conditional must be compared literally."""
        refuse_symbols(op, self.module)
        if len(op.operands) != 1 or attributes_of(op) or any(not region.blocks for region in op.regions):
            return None
        types, (decides,) = self.heads.types(op.results, op), self._operands(op, scope)
        scopes = list[RegionScope]()
        results = list[tuple[int, ...]]()
        for index, region in enumerate(op.regions):
            block = single_block(op, region)
            end = block.last_op
            if block.args or end is None or not is_plain_terminator(end) or attributes_of(end):
                return None
            if self.heads.types(end.operands, end) != types:
                return None
            inner = self._scope(block, (), self._terms.fresh("state", (), scope.depth + 1), scope)
            inner.chosen = {**scope.chosen, decides: Branch(index, len(op.regions))}
            results.append(self._block(block, inner)[1])
            if inner.state != inner.entry or inner.kept:
                return None
            scopes.append(inner)
        closures = [close_risks(self._terms, inner, (inner.entry,), ()) for inner in scopes]
        for number in record_closure_risks(self._terms, scope, name_of(op), closures, decides):
            self._origins.setdefault(number, op)
        for inner in scopes:
            scope.exchanges.extend(inner.exchanges)
        head = Head("branch", name_of(op))
        return [
            self._terms.term(head._replace(types=(type_,)), (decides, *values))
            for type_, values in zip(types, zip(*results, strict=True), strict=True)
        ]

    def _loop(self, op: Operation, scope: RegionScope) -> Sequence[int] | None:
        """Return the terms of a loop's results, or None if the loop must be compared literally."""
        refuse_symbols(op, self.module)
        if len(op.regions) != 2 or any(not region.blocks for region in op.regions) or attributes_of(op):
            return None
        cond, body = (single_block(op, region) for region in op.regions)
        if not self._keeps_types(op, cond, body):
            return None
        invariant = frozenset(self._invariant_carries.of(op))
        initial = self._operands(op, scope)
        types = self.heads.types(body.args, op)
        if (numbering := self._number_loop(_LoopOp(op, cond, body, initial, types, invariant), scope)) is None:
            return None
        loop, counted = numbering
        results = list[int]()
        for index, result in enumerate(op.results):
            if loop.bound[index] == loop.initial[index] and loop.next[index] == loop.initial[index]:
                results.append(loop.initial[index])
            elif not any(result.uses):
                results.append(self._terms.fresh("bound", (loop.types[index],), 0))
            else:
                results.append(self._result(loop, counted, index))
                self._origins.setdefault(results[-1], op)
        if len(loop.bound) > len(op.results):
            scope.state = self._result(loop, counted, len(op.results))
            self._origins.setdefault(scope.state, op)
        return results

    def _keeps_types(self, op: Operation, cond: Block, body: Block) -> bool:
        """Return whether operands, arguments, yielded values and results have the same types, and both regions end in
        plain terminators."""
        ends = cond.last_op, body.last_op
        for end in ends:
            if end is None or not is_plain_terminator(end) or attributes_of(end):
                return False
        assert ends[0] is not None and ends[1] is not None, "checked"
        if len(ends[0].operands) != 1:
            return False
        types = {self.heads.types(values, op) for values in (op.operands, cond.args, body.args, ends[1].operands)}
        return types == {self.heads.types(op.results, op)}

    def _result(self, loop: OpenLoop, counted: _Counted | None, index: int) -> int:
        if counted is None:
            return self._rules.result(loop, index)
        counter, integers = counted.counter, self._rules.integers
        like = self._terms.head_of(counted.number)
        if (progression := counted.progressions.get(index)) is not None:
            return integers.term_of_sum(progression.start.plus(whole(progression.step * counter.trips)), like)
        derived = _derived_carries(loop, counted)
        trips = integers.term_of_sum(whole(counter.trips), like)
        loop_over_number = over_iteration_number(loop, derived, counted.number)
        history = self._rules.history(loop_over_number, index - sum(carry < index for carry in derived), trips)
        return self._rules.rows.of_history(history) if self._terms.head_of(history).kind == "history" else history

    def _number_loop(self, loop_op: _LoopOp, scope: RegionScope) -> tuple[OpenLoop, _Counted | None] | None:
        """Return the loop as terms, and its counter if it counts; None if the order of its operations must be
        compared."""
        regions = self._number_regions(loop_op, scope)
        loop = self._with_effects(regions, scope.state)
        counted = regions.counted
        if loop is None or (counted is not None and not self._counts_as_assumed(regions, counted)):
            return None
        loop, counted, scopes = self._with_derived_carries(loop, counted, (regions.condition, regions.body))
        if any(loop.next[index] != loop.initial[index] for index in loop_op.invariant):
            return None
        return (loop, counted) if self._note_unread(loop_op.op, loop, counted, scopes, scope) else None

    def _number_regions(self, loop_op: _LoopOp, scope: RegionScope) -> _NumberedRegions:
        """Number both regions of a loop over fresh terms for its carries; an invariant carry is its initial value."""
        terms, depth = self._terms, scope.depth + 1
        bound = [
            loop_op.initial[index] if index in loop_op.invariant else terms.fresh("bound", (type_,), depth)
            for index, type_ in enumerate(loop_op.types)
        ]
        state = terms.fresh("state", (), depth)
        condition = self._scope(loop_op.condition, bound, state, scope)
        _, (lead, *_) = self._block(loop_op.condition, condition)
        counted = self._counter_of(loop_op.body, tuple(bound), loop_op.initial, lead, depth)
        if counted is not None:
            bound[counted.counter.index] = counted.value
        body = self._scope(loop_op.body, bound, state, scope)
        body.is_alike = scope.is_alike and counted is not None
        _, following = self._block(loop_op.body, body)
        loop = OpenLoop(tuple(bound), loop_op.initial, following, loop_op.types, False, lead, state, depth)
        return _NumberedRegions(loop, counted, condition, body)

    def _with_effects(self, regions: _NumberedRegions, state: int) -> OpenLoop | None:
        """Return the loop with its effects, if it has any, as one more carry; None if they cannot be one.

        `state`: the effects before the loop.
        """
        loop, body = regions.loop, regions.body
        if regions.condition.state != loop.state:
            return None
        if body.state == loop.state:
            return loop
        # Endless loops and effects have an order in each iteration.
        if any(body.ran.values()):
            return None
        return replace(
            loop,
            bound=(*loop.bound, loop.state),
            initial=(*loop.initial, state),
            next=(*loop.next, body.state),
            types=(*loop.types, self._state_type),
            state=self._terms.fresh("state", (), loop.depth),
        )

    def _counts_as_assumed(self, regions: _NumberedRegions, counted: _Counted) -> bool:
        """Return whether the body increases the counter by one, and the condition contains nothing to preserve."""
        following = regions.loop.next[counted.counter.index]
        condition = regions.condition
        return following == self._one_more(counted.value) and not (condition.kept or condition.ran)

    def _with_derived_carries(
        self, loop: OpenLoop, counted: _Counted | None, scopes: Sequence[RegionScope]
    ) -> tuple[OpenLoop, _Counted | None, Sequence[RegionScope]]:
        """Replace each invariant carry by its initial value, and each carry that grows by a constant by a sum over the
        iteration number.

        The terms recorded in the scopes of the regions are replaced, too.
        """
        while True:
            counted = None if counted is None else self._with_more_counters(loop, counted)
            substitution = {
                bound: loop.initial[index]
                for index, (bound, following) in enumerate(zip(loop.bound, loop.next, strict=True))
                if bound == following != loop.initial[index]
            }
            if counted is not None:
                values = {
                    loop.bound[index]: self._at(counted, progression) for index, progression in counted.others.items()
                }
                substitution |= {bound: value for bound, value in values.items() if bound != value}
            if not substitution:
                return loop, counted, scopes
            recorded = [term for scope in scopes for term in (*scope.kept, *scope.ran)]
            lead, *substituted = self._rules.substitute((loop.lead, *loop.next, *recorded), substitution, loop.depth)
            following = tuple(substituted[: len(loop.next)])
            remaining = iter(substituted[len(loop.next) :])
            scopes = [
                replace(
                    scope,
                    kept=dict.fromkeys(next(remaining) for _ in scope.kept),
                    ran={next(remaining): ordered for ordered in scope.ran.values()},
                )
                for scope in scopes
            ]
            # Carries computed from them may be unchanged now, too.
            bound = tuple(substitution.get(term, term) for term in loop.bound)
            loop = replace(loop, lead=lead, bound=bound, next=following)

    def _with_more_counters(self, loop: OpenLoop, counted: _Counted) -> _Counted:
        """Find further carries that grow by a constant in each iteration."""
        integers, like = self._rules.integers, self._terms.head_of(counted.number).types
        others = dict(counted.others)
        for index, (bound, following) in enumerate(zip(loop.bound, loop.next, strict=True)):
            head = self._terms.head_of(bound)
            if index == counted.counter.index or index in others or head.types != like:
                continue
            growth = integers.sum_of(following).minus(integers.sum_of(bound))
            if head.kind == "bound" and not growth.parts:
                others[index] = Progression(integers.sum_of(loop.initial[index]), growth.offset)
        return replace(counted, others=others)

    def _at(self, counted: _Counted, progression: Progression) -> int:
        """Return the value of a progression in the current iteration."""
        integers = self._rules.integers
        total = integers.sum_of(counted.number).times(progression.step).plus(progression.start)
        return integers.term_of_sum(total, self._terms.head_of(counted.number))

    def _note_unread(
        self, op: Operation, loop: OpenLoop, counted: _Counted | None, inside: Sequence[RegionScope], scope: RegionScope
    ) -> bool:
        """Record the unused operations of the iterations in the scope around the loop.

        Returns False if a sharding constraint cannot be separated from the loop: its operand does not depend on the
        iteration, and the loop does not read it.
        """
        loop_over_number = (
            loop if counted is None else over_iteration_number(loop, _derived_carries(loop, counted), counted.number)
        )
        parts = list(zip(_PARTS, inside, strict=True))
        kept: list[tuple[LoopPart, int]] = [(part, term) for part, region in parts for term in region.kept]
        live = [index for index, result in enumerate(op.results) if any(result.uses)]
        live.extend(range(len(op.results), len(loop.bound)))
        if any(self._terms.depth_of(term) < loop.depth and not self._reads(loop, live, term) for _, term in kept):
            return False

        def pattern(part: LoopPart, term: int) -> int:
            if counted is None:
                return self._patterns.until_it_ends(loop, part, term)
            if self._terms.depth_of(term) < loop.depth:  # There is at least one iteration.
                return term
            return self._patterns.of_iterations(loop_over_number, counted.counter.trips, term)

        for part, term in kept:
            if not self._patterns.is_repeated(number := pattern(part, term), scope.kept):
                scope.kept[number] = None
        for part, region in parts:
            for term, ordered in region.ran.items():
                if not self._patterns.is_repeated(number := pattern(part, term), all_that_ran(scope)):
                    record_risk(self._terms, scope, number, ordered=ordered)
                    self._origins.setdefault(number, self._origins.get(term, op))
            scope.exchanges.extend(region.exchanges)
        if counted is None and why_endless(op) is not None:
            number = self._patterns.until_it_ends(loop, "condition", loop.lead)
            record_risk(self._terms, scope, number, ordered=True)
            self._origins.setdefault(number, op)
        return True

    def _reads(self, loop: OpenLoop, live: Sequence[int], term: int) -> bool:
        """Return whether the condition or one of the `live` carries depends on the term."""
        behind = {carry for index in live for carry in carries_behind(self._terms, loop, index)}
        return reaches(self._terms, (loop.lead, *(loop.next[index] for index in behind)), frozenset({term}), loop.depth)

    def occurs(self, term: int, others: Collection[int]) -> bool:
        if term in others:
            return True
        if self._terms.head_of(term).kind != "endless":
            return self._patterns.is_repeated(term, others)
        pattern, state = self._terms.operands_of(term)
        endless = [other for other in others if self._terms.head_of(other).kind == "endless"]
        behind = [self._terms.operands_of(other) for other in endless]
        return self._patterns.is_repeated(pattern, [other for other, before in behind if before == state])

    def is_covered(self, term: int, others: Collection[int]) -> bool:
        return term in others or self._patterns.is_covered(term, others)

    def _scope(self, block: Block, bound: Sequence[int], state: int, around: RegionScope) -> RegionScope:
        scope = RegionScope(around.depth + 1, state, state, place=around.place, around=around, is_alike=False)
        scope.chosen = around.chosen
        scope.define(block.args, bound)
        return scope

    def _counter_of(
        self, body: Block, bound: tuple[int, ...], initial: tuple[int, ...], condition: int, depth: int
    ) -> _Counted | None:
        """Return the counter of the loop and fresh terms for it, or None if the loop does not appear to count.

        The body is numbered under the assumption that the counter grows by one, which the caller verifies afterwards.
        """
        integers, last = self._rules.integers, body.last_op
        assert last is not None, "checked"
        counter = counter_of(self._terms, integers, condition, bound, initial)
        if counter is None or not _adds_to(body.args[counter.index], last.operands[counter.index]):
            return None
        like = self._terms.head_of(bound[counter.index])
        number = self._terms.fresh("bound", like.types, depth)
        integers.ranges[number] = 0, counter.trips - 1
        value = integers.term_of_sum(integers.sum_of(number).plus(whole(counter.start)), like)
        return _Counted(counter, number, value)

    def _one_more(self, value: int) -> int:
        integers = self._rules.integers
        return integers.term_of_sum(integers.sum_of(value).plus(whole(1)), self._terms.head_of(value))


class Progression(NamedTuple):
    """Arithmetic progression `start`, `start + step`, … of a carry's values."""

    start: Sum
    step: int


@dataclass(frozen=True)
class _Counted:
    """Counting loop while its body is numbered.

    Attributes:
        counter: The carry that the condition compares.
        number: Term of the iteration number, from 0.
        value: Term of the counter in that iteration.
        others: Other carries that grow by a constant.
    """

    counter: Counter
    number: int
    value: int
    others: Mapping[int, Progression] = field(default_factory=dict[int, Progression])

    @property
    def progressions(self) -> dict[int, Progression]:
        """All carries that follow from the iteration number alone."""
        return {self.counter.index: Progression(whole(self.counter.start), 1), **self.others}


@dataclass(frozen=True)
class _LoopOp:
    """A loop as an operation, with the terms of its operands.

    Attributes:
        op: The operation.
        condition, body: The blocks of its regions.
        initial: The terms of the operands.
        types: Numbers of the types of the carries.
        invariant: The carries that an iteration yields unchanged.
    """

    op: Operation
    condition: Block
    body: Block
    initial: tuple[int, ...]
    types: tuple[int, ...]
    invariant: frozenset[int]


@dataclass(frozen=True)
class _NumberedRegions:
    """A loop whose regions are numbered under the assumption that its counter, if there is one, grows by one.

    Attributes:
        loop: The loop, with the carries of the operation.
        counted: Its counter, if it appears to count.
        condition, body: The scopes of the regions.
    """

    loop: OpenLoop
    counted: _Counted | None
    condition: RegionScope
    body: RegionScope


def _derived_carries(loop: OpenLoop, counted: _Counted) -> frozenset[int]:
    """Return the carries that are invariant or follow from the iteration number."""
    pairs = enumerate(zip(loop.bound, loop.initial, strict=True))
    return frozenset(counted.progressions) | {index for index, (bound, initial) in pairs if bound == initial}


def _adds_to(argument: SSAValue, value: SSAValue) -> bool:
    return isinstance(value, OpResult) and name_of(value.op) == "stablehlo.add" and argument in value.op.operands
