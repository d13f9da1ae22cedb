"""Outline the calls that were inlined for planning.

The operations of a call become a call again if none of them was copied, moved or delayed. If a call was copied as a
whole, the copy also becomes a call.

    %5 = stablehlo.multiply %3, %c1                              %5 = call @silu(%3)
    %6 = stablehlo.tanh %5                               ->      …
    …                                                            %8 = call @silu(%7) {recompute.copy = 1}
    %8 = stablehlo.multiply %7, %c1 {recompute.copy = 1}
    %9 = stablehlo.tanh %8 {recompute.copy = 1}

There are two reasons to restore calls: XLA rounds a step with inlined calls differently from the original step
(docs/bits.md), and the text is shorter with calls. Nested calls are outlined first, so that enclosing calls treat them
as ordinary operations. A group of operations that does not match its function stays inlined, which computes the same
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...analysis.step.order import Order, functions_of
from ...dialects.dead_code import drop_dead_code
from ...dialects.names import Names
from ...rules.effects import is_constant
from ...support.operations import every_operation
from ...support.timing import part
from .bodies import InlinedBody, LeftInlined, MatchedCall
from .call_attributes import CallAttributes, foreign_attributes
from .call_groups import (
    Effects,
    Group,
    Positions,
    erase_members,
    insert_call,
    insertion_point_of,
    part_body,
    redirect_passed_arguments,
    whole_body,
)
from .origins import InlinedCall, Origin, Origins
from .output_functions import OutputFunctions
from .templates import CallTemplate, Templates

Waiting = dict[int, dict[tuple[InlinedCall, int, Block], Group]]
"""The groups that have not been outlined yet, by the depth of their calls."""


@dataclass(frozen=True)
class Restored:
    """The result of outlining calls.

    Attributes:
        calls: The number of outlined calls.
        whole: The number of outlined calls whose callee is an unmodified function.
        left: The number of groups that stay inlined, by reason.
        lost: The functions with foreign attributes and at least one call that stays inlined.
    """

    calls: int
    whole: int
    left: Mapping[str, int]
    lost: frozenset[str] = frozenset()


NOTHING_RESTORED = Restored(0, 0, {})


def restore_nothing(module: ModuleOp) -> Restored:
    """Return the result of `restore_calls` for the case that every call stays inlined.

    `module`: the module before inlining.
    """
    calls = [op for op in every_operation(module) if isinstance(op, CallOp)]
    functions = {
        op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and Names.WHOLE not in op.attributes
    }
    called = [(call, functions.get(call.callee.string_value())) for call in calls]
    lost = {
        callee.sym_name.data
        for call, callee in called
        if callee is not None and foreign_attributes(call.attributes, callee)
    }
    return replace(NOTHING_RESTORED, lost=frozenset(lost))


def restore_calls(module: ModuleOp, original: ModuleOp, origins: Origins) -> Restored:
    """Re-outline the inlined calls of a module, in place.

    Args:
        module: The inlined module.
        original: The module before inlining, which is not changed.
        origins: The origin of each operation of `module`.
    """
    with part("calls"):
        return _Restoring(module, original, origins).run()


OF_THE_WHOLE = "its attributes apply to the call as a whole, with all of its operands and results"


def _call_of(function: str, body: InlinedBody, attributes: CallAttributes) -> CallOp:
    """Return a call to the function that computes the body, with the attributes of the operations that it replaces."""
    types = [value.type for value in body.returned]
    call = CallOp.create(
        operands=body.call_operands, result_types=types, properties={"callee": SymbolRefAttr(function)}
    )
    attributes.write(call)
    return call


class _Restoring:
    def __init__(self, module: ModuleOp, original: ModuleOp, origins: Origins):
        self.module = module
        self.origins = origins
        self.templates = Templates(original)
        self.output_functions = OutputFunctions.of(original, self.templates)
        self.effects = Effects()
        self.constants = set[SSAValue]()
        self.positions = dict[Block, Positions]()
        self.replaced = dict[SSAValue, SSAValue]()

    def run(self) -> Restored:
        counts_by_reason = dict[str, int]()
        calls, whole, lost = 0, 0, set[str]()
        functions = functions_of(self.module)
        waiting = self._groups_in(functions)
        while waiting:
            # Copies may read constant expressions of their originals, so originals are outlined last.
            for group in sorted(waiting.pop(max(waiting)).values(), key=lambda group: -group.copy):
                try:
                    call = self._restore(group)
                except LeftInlined as reason:
                    counts_by_reason[str(reason)] = counts_by_reason.get(str(reason), 0) + 1
                    if self._has_foreign_attributes(group):
                        lost.add(group.instance.callee)
                    continue
                calls += 1
                whole += call.callee.string_value() == group.instance.callee
                self._add_to_group(call, waiting)
        for function in functions:
            drop_dead_code(function.body)
        self.output_functions.add_to(self.module)
        return Restored(calls, whole, counts_by_reason, frozenset(lost))

    def _groups_in(self, functions: Iterable[FuncOp]) -> Waiting:
        """Return the groups of operations to restore as calls, and collect the constants that the calls can read."""
        waiting = Waiting()
        for function in functions:
            for op in every_operation(function):
                self._add_to_group(op, waiting)
        visited = {self.module.body.block}
        for groups in waiting.values():
            for group in groups.values():
                self._find_constants(group.block, visited)
        return waiting

    def _find_constants(self, block: Block, visited: set[Block]) -> None:
        """Collect the constants that a call in the block can read: the constants of the enclosing blocks, then those of
        the block itself."""
        if block in visited:
            return
        visited.add(block)
        if (outer_block := block.parent_block()) is not None:
            self._find_constants(outer_block, visited)
        Order.of(block).add_constants(self.constants)

    def _add_to_group(self, op: Operation, waiting: Waiting) -> None:
        """Add the operation to the group of its call, if the operation was at the top level of the callee.

        Literals are skipped because they are outlined with their readers.
        """
        origin = self.origins.of.get(op)
        if origin is None or origin.instance is None or op.parent is None or is_constant(op):
            return
        template = self.templates.of(origin.instance.callee)
        if template.operations[origin.index].parent is not template.block:
            return
        key = (origin.instance, origin.copy, op.parent)
        groups = waiting.setdefault(origin.instance.depth, {})
        if key not in groups:
            groups[key] = Group(*key)
        groups[key].members[origin.index] = op

    def _restore(self, group: Group) -> CallOp:
        """Outline one group as a call.

        Raises:
            LeftInlined: The group cannot be outlined; the module is then unchanged.
        """
        template = self.templates.of(group.instance.callee)
        matched = MatchedCall(template, self.templates.parts, dict(sorted(group.members.items())), self.constants)
        matched.match_all()
        members = list(matched.members.values())
        results = group.results(template, self.templates.parts)
        body, is_whole = self._body(group, matched, results)
        if not is_whole and self._has_foreign_attributes(group):
            raise LeftInlined(OF_THE_WHOLE)
        positions = self._positions_in(group.block)
        point = insertion_point_of(members, body.call_operands, positions)
        self.effects.require_order(members, point, positions)
        name = group.instance.callee if is_whole else self.output_functions.name_of_part(template, body)
        call = _call_of(name, body, CallAttributes.of(group.instance, group.copy, members))
        insert_call(call, point, positions)
        if is_whole:
            for result, hint in zip(call.results, group.instance.names, strict=True):
                result.name_hint = hint
        self._redirect_results(call, body, group, results)
        if is_whole and any(isinstance(value, BlockArgument) for value in template.returned):
            redirect_passed_arguments(
                call,
                group,
                template=template,
                enclosing=self._enclosing_function(group),
                origins=self.origins,
                positions=positions,
            )
        if not any(map(self.effects.has_effect, members)):
            self.effects.pure.add(call)
        self.origins.of[call] = Origin(group.instance.at.instance, group.instance.at.index, group.copy)
        erase_members(members)
        return call

    def _has_foreign_attributes(self, group: Group) -> bool:
        template = self.templates.of(group.instance.callee)
        return bool(foreign_attributes(group.instance.attributes, template.function))

    def _positions_in(self, block: Block) -> Positions:
        if block not in self.positions:
            self.positions[block] = Positions(block)
        return self.positions[block]

    def _body(
        self, group: Group, matched: MatchedCall, results: Mapping[SSAValue, SSAValue]
    ) -> tuple[InlinedBody, bool]:
        """Return the body of the function to call, and whether it is the body of the unmodified function."""
        returned = matched.template.returned
        # Constant expressions that are not returned stay in place for other readers.
        read_values = {
            original for value, original in results.items() if value not in self.constants or original in returned
        }
        operands = enumerate(group.instance.operands)
        passed = {
            index: current
            for index, value in operands
            if (current := self._current_value(value, group.block)) is not None
        }
        if (whole := whole_body(group, matched, read_values, passed)) is not None:
            return whole, True
        return part_body(matched, read_values), False

    def _current_value(self, value: SSAValue, block: Block) -> SSAValue | None:
        """Return the current value of an original operand of a call; None if it is not visible from the block."""
        while value in self.replaced:
            value = self.replaced[value]
        defining_block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
        enclosing: Block | None = block
        while enclosing is not None and enclosing is not defining_block:
            enclosing = enclosing.parent_block()
        return None if enclosing is None else value

    def _redirect_results(
        self, call: CallOp, body: InlinedBody, group: Group, results: Mapping[SSAValue, SSAValue]
    ) -> None:
        """Redirect uses of the group's results to the results of the call."""
        new_results = dict(zip(reversed(body.returned), reversed(call.results), strict=True))
        for value, original in results.items():
            if original not in new_results:
                continue
            new_results[original].name_hint = new_results[original].name_hint or value.name_hint
            self.replaced[value] = new_results[original]
            if value in self.constants:
                self.constants.add(new_results[original])
            for reader, index in group.uses_by_others(value):
                reader.operands[index] = new_results[original]

    def _enclosing_function(self, group: Group) -> CallTemplate:
        """Return the unmodified function that contained the call."""
        if (enclosing := group.instance.at.instance) is not None:
            return self.templates.of(enclosing.callee)
        function = group.block.parent_op()
        while not isinstance(function, FuncOp):
            assert function is not None, "inlined operations are inside a function"
            function = function.parent_op()
        return self.templates.of(function.sym_name.data)
