"""Value numbering with rules for loops and conditionals: tier 2 of the proof.

In addition to the rules of `value_numbering.py`, these rules apply to both programs:

* A carry that an iteration yields unchanged is its initial value, and a carry that changes by a constant is a sum over
  the iteration number (`derived_carries.py`).
* Each result of a loop is a separate term over the carries on which it depends (`loop_terms.py`). Other carries, such
  as dead stacks, and the order of the carries are ignored.
* The effects of a loop are an additional carry: an iteration starts with the effects so far, and yields them followed
  by its own effects. Both programs must therefore have the same effects in the same order, and a carry that reads the
  result of an effect depends on it.
* A read of a stack is the stored value, and a completely written stack is an array of rows (`stack_terms.py`). A loop
  that is split into several loops equals the original loop, and two rules simplify shapes (`rules.py`).
* Sums of scalar integers, and their products with constants, have a normal form (`integers.py`).
* Each result of a conditional without effects is a separate term over the condition and the results of the regions.
  Inside one of these regions, a result of another conditional with the same condition equals the result of the
  corresponding region of that conditional.
* A loop that counts to a constant runs the same number of times on all devices that reach it, so its collectives are
  functions of their operands.
* Unused operations in a loop that must be preserved (a sharding constraint, an operation that may fail, an operation
  with a channel) are recorded for all iterations (`preserved_operations.py`).

A loop with attributes, or a loop in which the operand, argument and result of a carry have different types, is compared
literally, as in tier 1.

Each carry is represented by a fresh term, because the counters of two loops may have different ranges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation

from ...support.operations import name_of
from ..expressions.block_requirements import is_plain_terminator, refuse_symbols, single_block
from ..expressions.terms import Head, Side
from ..operations.operation_parts import attributes_of
from ..translation.head_cache import CachedHead
from ..translation.risks import close_risks, record_closure_risks
from ..translation.scope import Branch, RegionScope
from ..translation.value_numbering import Numbering, NumberingOptions
from .constraints import CONSTRAINT
from .derived_carries import DerivedCarries, NumberedLoop
from .integers import whole
from .loop_terms import WHILE, ConditionalLoop, InvariantCarries
from .preserved_operations import PreservedOperations
from .rules import LoopRules

BRANCHES = frozenset({"scf.if", "stablehlo.case", "stablehlo.if"})
"""Conditionals whose operand determines which region runs."""


class LoopNumbering(Numbering):
    """Value numbering of one program with the rules of tier 2. Both programs share one `rules` object."""

    def __init__(self, module: ModuleOp, side: Side, rules: LoopRules, options: NumberingOptions):
        super().__init__(module, side, rules.terms, options)
        self._rules = rules
        self._memory_spaces = rules.spaces
        self._invariant_carries = InvariantCarries()
        self._derived_carries = DerivedCarries(rules)
        self._preserved = PreservedOperations(rules, self._origins)
        self._state_type = self._terms.attributes.number(StringAttr("the effects so far"))

    def _apply(self, op: Operation, scope: RegionScope) -> Sequence[int]:
        if name_of(op) == WHILE and not scope.is_literal and (results := self._loop(op, scope)) is not None:
            return results
        if name_of(op) in BRANCHES and not scope.is_literal and (results := self._branches(op, scope)) is not None:
            return results
        results = super()._apply(op, scope)
        if op.regions or scope.is_literal or len(results) != 1:
            return results
        return (self._apply_rules(op, results[0]),)

    def _preserve(self, op: Operation, term: int, scope: RegionScope) -> None:
        if name_of(op) != CONSTRAINT:
            super()._preserve(op, term, scope)
            return
        normal_form = self._rules.make(self._terms.head_of(term), self._terms.operands_of(term))
        if normal_form in self._operands(op, scope):
            return
        for constraint in self._preserved.constraints_in(normal_form):
            super()._preserve(op, constraint, scope)
            self._origins.setdefault(constraint, op)

    def _apply_cached(self, op: Operation, cached: CachedHead, scope: RegionScope) -> int:
        term = super()._apply_cached(op, cached, scope)
        return term if op.regions else self._apply_rules(op, term)

    def _apply_rules(self, op: Operation, term: int) -> int:
        """Return the normal form of the term of an operation's result."""
        normal_form = self._rules.make(self._terms.head_of(term), self._terms.operands_of(term))
        self._origins.setdefault(normal_form, op)
        return normal_form

    def _operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]:
        numbers = super()._operands(op, scope)
        if not scope.chosen_branches:
            return numbers
        return tuple(self._choose_branch(number, scope.chosen_branches) for number in numbers)

    def _choose_branch(self, number: int, chosen: Mapping[int, Branch]) -> int:
        """Return the term itself, unless it is the result of a conditional whose condition is known in this scope. For
        such a conditional, return the result of the region that runs.

        The conditional must have as many regions as the enclosing one with the same condition, because the last region
        also runs for all indices that are out of range.

        Args:
            number: The term.
            chosen: The branch that runs in this scope, by the term of the condition.
        """
        while self._terms.head_of(number).kind == "branch":
            decides, *results = self._terms.operands_of(number)
            if decides not in chosen or chosen[decides].regions != len(results):
                break
            number = results[chosen[decides].region]
        return number

    def _branches(self, op: Operation, scope: RegionScope) -> Sequence[int] | None:
        """Return the results of a conditional without effects, each as a term over the results of the regions. Return
        None if the conditional must be compared literally."""
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
            inner.chosen_branches = {**scope.chosen_branches, decides: Branch(index, len(op.regions))}
            results.append(self._block(block, inner)[1])
            if inner.state != inner.entry_state or inner.preserved:
                return None
            scopes.append(inner)
        closures = [close_risks(self._terms, inner, (inner.entry_state,), ()) for inner in scopes]
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
        numbered = self._number_loop(
            _LoopOp(op=op, condition=cond, body=body, initial=initial, types=types, invariant=invariant), scope
        )
        if numbered is None:
            return None
        loop = numbered.loop
        results = list[int]()
        for index, result in enumerate(op.results):
            if loop.carries[index] == loop.initial[index] and loop.next[index] == loop.initial[index]:
                results.append(loop.initial[index])
            elif not any(result.uses):
                results.append(self._terms.fresh("variable", (loop.types[index],), 0))
            else:
                results.append(self._result(numbered, index))
                self._origins.setdefault(results[-1], op)
        if len(loop.carries) > len(op.results):
            scope.state = self._result(numbered, len(op.results))
            self._origins.setdefault(scope.state, op)
        return results

    def _keeps_types(self, op: Operation, cond: Block, body: Block) -> bool:
        """Return whether the operands, arguments, yielded values and results of a loop have the same types, and both of
        its regions end in plain terminators."""
        ends = cond.last_op, body.last_op
        for end in ends:
            if end is None or not is_plain_terminator(end) or attributes_of(end):
                return False
        assert ends[0] is not None and ends[1] is not None, "checked"
        if len(ends[0].operands) != 1:
            return False
        types = {self.heads.types(values, op) for values in (op.operands, cond.args, body.args, ends[1].operands)}
        return types == {self.heads.types(op.results, op)}

    def _result(self, numbered: NumberedLoop, index: int) -> int:
        """Return the value of carry `index` after the loop."""
        counting = numbered.counting
        if counting is None:
            return self._rules.result(numbered.loop, index)
        if (progression := counting.progressions.get(index)) is not None:
            return self._derived_carries.value_after(counting, progression)
        trips = self._rules.integers.term_of_sum(whole(counting.counter.trips), self._terms.head_of(counting.iteration))
        place = index - sum(carry < index for carry in numbered.derived)
        history = self._rules.history(numbered.counting_loop, place, trips)
        return self._rules.rows.of_history(history) if self._terms.head_of(history).kind == "history" else history

    def _number_loop(self, loop_op: _LoopOp, scope: RegionScope) -> NumberedLoop | None:
        """Return a loop translated to terms, or None if the loop must be compared literally."""
        numbered = self._with_effects(self._number_regions(loop_op, scope), scope.state)
        if numbered is None or not self._derived_carries.counts_as_assumed(numbered):
            return None
        numbered = self._derived_carries.replaced(numbered)
        if any(numbered.loop.next[index] != numbered.loop.initial[index] for index in loop_op.invariant):
            return None
        return numbered if self._preserved.record(loop_op.op, numbered, scope) else None

    def _number_regions(self, loop_op: _LoopOp, scope: RegionScope) -> NumberedLoop:
        """Translate both regions of a loop over fresh terms for its carries. An invariant carry is its initial
        value."""
        terms, depth, initial = self._terms, scope.depth + 1, loop_op.initial
        carries = [
            initial[index] if index in loop_op.invariant else argument
            for index, argument in enumerate(terms.fresh_arguments(loop_op.types, depth))
        ]
        state = terms.fresh("state", (), depth)
        condition_scope = self._scope(loop_op.condition, carries, state, scope)
        _, (condition, *_) = self._block(loop_op.condition, condition_scope)
        counting = self._derived_carries.assumed_counting(loop_op.body, tuple(carries), initial, condition, depth)
        if counting is not None:
            carries[counting.counter.index] = counting.counter_value
        body_scope = self._scope(loop_op.body, carries, state, scope)
        body_scope.is_uniform = scope.is_uniform and counting is not None
        _, following = self._block(loop_op.body, body_scope)
        loop = ConditionalLoop(
            carries=tuple(carries),
            initial=initial,
            next=following,
            types=loop_op.types,
            state=state,
            depth=depth,
            condition=condition,
        )
        return NumberedLoop(loop, counting, condition_scope, body_scope)

    def _with_effects(self, numbered: NumberedLoop, state: int) -> NumberedLoop | None:
        """Return the loop with its effects, if any, as an additional carry. Return None if the effects cannot be a
        carry.

        `state`: the term of the effects before the loop.
        """
        loop, body = numbered.loop, numbered.body
        if numbered.condition.state != loop.state:
            return None
        if body.state == loop.state:
            return numbered
        # A loop that may not terminate must stay after the effects before it. A carry does not express this.
        if any(body.executed.values()):
            return None
        with_state = replace(
            loop,
            carries=(*loop.carries, loop.state),
            initial=(*loop.initial, state),
            next=(*loop.next, body.state),
            types=(*loop.types, self._state_type),
            state=self._terms.fresh("state", (), loop.depth),
        )
        return replace(numbered, loop=with_state)

    def occurs(self, term: int, others: Collection[int]) -> bool:
        return self._preserved.occurs(term, others)

    def is_covered(self, term: int, others: Collection[int]) -> bool:
        return self._preserved.is_covered(term, others)

    def _scope(self, block: Block, arguments: Sequence[int], state: int, enclosing: RegionScope) -> RegionScope:
        """Return the scope of a region of a loop or conditional that starts with these arguments and this state."""
        scope = RegionScope(
            enclosing.depth + 1, state, state, device=enclosing.device, enclosing=enclosing, is_uniform=False
        )
        scope.chosen_branches = enclosing.chosen_branches
        scope.define(block.args, arguments)
        return scope


@dataclass(frozen=True)
class _LoopOp:
    """A loop operation, with the terms of its operands.

    Attributes:
        op: The operation.
        condition, body: The blocks of its regions.
        initial: The terms of the operands.
        types: Ids of the types of the carries.
        invariant: The indices of the carries that an iteration yields unchanged.
    """

    op: Operation
    condition: Block
    body: Block
    initial: tuple[int, ...]
    types: tuple[int, ...]
    invariant: frozenset[int]
