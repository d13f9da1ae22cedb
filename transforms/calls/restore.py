"""Make calls of what was inlined to decide: a function inside of which nothing was copied, moved or held back is called
again, and where a whole call was copied, the copy is a call too.

    %5 = stablehlo.multiply %3, %c1                              %5 = call @silu(%3)
    %6 = stablehlo.tanh %5                               ->      …
    …                                                            %8 = call @silu(%7) {recompute.copy = 1}
    %8 = stablehlo.multiply %7, %c1 {recompute.copy = 1}
    %9 = stablehlo.tanh %8 {recompute.copy = 1}

XLA rounds a step whose calls were inlined differently from the plain one (docs/bits.md), and the text is shorter.
Calls inside of others come first, so that those around them see an operation like any other. Whatever does not fit is
left inlined: it computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.transforms.dead_code_elimination import region_dce

from ...analysis.step.constants import constants_only
from ...analysis.step.functions import functions_of
from ...analysis.step.order import Order
from ...rules.effects import PURE_IF_BODY_IS, why_impure
from ...rules.kinds import is_constant
from ...rules.names import name_of
from .bodies import Body, LeftInlined, Reading, body_of
from .origins import Instance, Origin, Origins
from .places import Place, Positions, place_of
from .said import say
from .templates import Template, Templates, same_body
from .written import Written


@dataclass(frozen=True)
class Restored:
    """How many groups of operations are calls again, how many of these of the function as it came, and how many are
    left inlined, by reason."""

    calls: int
    whole: int
    left: Mapping[str, int]


NOTHING_RESTORED = Restored(0, 0, {})


@dataclass(frozen=True, eq=False)
class Group:
    """The operations of one call, or of one copy of it, in one block; by their index in the function."""

    instance: Instance
    copy: int
    block: Block
    members: dict[int, Operation] = field(default_factory=dict[int, Operation])


def restore_calls(module: ModuleOp, original: ModuleOp, origins: Origins) -> Restored:
    """Change the module in place. `original`: the module before anything was inlined; it is left as it is."""
    return _Restoring(module, original, origins).run()


class _Restoring:
    def __init__(self, module: ModuleOp, original: ModuleOp, origins: Origins):
        self.module = module
        self.origins = origins
        self.templates = Templates(original)
        self.written = Written.of(original, self.templates)
        self.constants = set[SSAValue]()
        self.pure = set[Operation]()
        self.positions = dict[Block, Positions]()
        self.replaced = dict[SSAValue, SSAValue]()

    def run(self) -> Restored:
        for function in functions_of(self.module):
            self._find_constants(function.body.block)
        waiting = dict[int, dict[tuple[Instance, int, Block], Group]]()
        for function in functions_of(self.module):
            for op in function.walk():
                self._sort_in(op, waiting)
        calls = whole = 0
        left = dict[str, int]()
        while waiting:
            for group in sorted(waiting.pop(max(waiting)).values(), key=lambda group: -group.copy):
                try:
                    call = self._restore(group)
                except LeftInlined as reason:
                    left[str(reason)] = left.get(str(reason), 0) + 1
                    continue
                calls += 1
                whole += call.callee.string_value() == group.instance.callee
                self._sort_in(call, waiting)
        for function in functions_of(self.module):
            region_dce(function.body)
        self.written.add_to(self.module)
        return Restored(calls, whole, left)

    def _find_constants(self, block: Block) -> None:
        order = Order.of(block)
        self.constants |= constants_only(order, self.constants)
        for op in order.operations:
            for region in op.regions:
                for inner in region.blocks:
                    self._find_constants(inner)

    def _sort_in(self, op: Operation, waiting: dict[int, dict[tuple[Instance, int, Block], Group]]) -> None:
        """Into the group of its call, if it is an operation of the body itself. Literals belong to whoever reads them."""
        origin = self.origins.of.get(op)
        if origin is None or origin.instance is None or is_constant(op) or op.parent is None:
            return
        template = self.templates.of(origin.instance.callee)
        if template.operations[origin.index].parent is not template.block:
            return
        key = (origin.instance, origin.copy, op.parent)
        groups = waiting.setdefault(origin.instance.depth, {})
        groups.setdefault(key, Group(*key)).members[origin.index] = op

    def _restore(self, group: Group) -> CallOp:
        template = self.templates.of(group.instance.callee)
        members = dict(sorted(group.members.items()))
        reading = Reading(template, members, self.origins, self.constants)
        reading.read_all()
        results = self._results(group, reading)
        body, is_whole = self._body(group, reading, results)
        if group.block not in self.positions:
            self.positions[group.block] = Positions(group.block)
        positions = self.positions[group.block]
        listed = list(members.values())
        place = place_of(listed, [value for _, value in body.arguments], positions)
        self._demand_order(listed, place, positions)
        name = template.function.sym_name.data
        if not is_whole:
            name = self.written.name_of_part(template, body)
        call = CallOp(name, [value for _, value in body.arguments], [value.type for value in body.returned])
        say(call, group.instance, group.copy, listed)
        self._put(call, place, positions)
        self._read_results(call, body, group, results)
        if is_whole:
            self._read_passed(call, template, group, positions)
        self._take_over(call, group, listed)
        return call

    def _results(self, group: Group, reading: Reading) -> dict[SSAValue, SSAValue]:
        """The values that others read, and what they were in the template."""
        inside = set(group.members.values())
        found = dict[SSAValue, SSAValue]()
        for index, op in group.members.items():
            for was, result in zip(reading.template.operations[index].results, op.results, strict=True):
                if any(group.block.find_ancestor_op_in_block(use.operation) not in inside for use in result.uses):
                    found[result] = was
        return found

    def _body(self, group: Group, reading: Reading, results: dict[SSAValue, SSAValue]) -> tuple[Body, bool]:
        """The body, and whether it is that of the function as it came."""
        template = reading.template
        wanted = {was for value, was in results.items() if value not in self.constants or was in template.returned}
        if (whole := self._whole(group, reading, wanted)) is not None:
            return whole, True
        if template.is_marked:
            raise LeftInlined("operations of the function are marked")
        arguments = {
            index: reading.stands[value] for index, value in enumerate(template.block.args) if value in reading.stands
        }
        order = {value: place for place, value in reversed(list(enumerate(template.returned)))}
        listed = sorted(wanted, key=lambda value: (order.get(value, len(order)), _rank(template, value)))
        if not listed:
            raise LeftInlined("nobody reads its results")
        return body_of(reading, arguments, tuple(listed)), False

    def _whole(self, group: Group, reading: Reading, wanted: set[SSAValue]) -> Body | None:
        template = reading.template
        operations = len(reading.members.keys() | reading.made_anew.keys())
        if operations != len(template.block.ops) - 1 or (group.copy and template.is_marked):
            return None
        if not wanted.issubset(template.returned):
            return None
        arguments = dict[int, SSAValue]()
        for index, value in enumerate(template.block.args):
            passed = reading.stands.get(value)
            if passed is None and (passed := self._passed(group.instance.operands[index], group.block)) is None:
                return None
            arguments[index] = passed
        body = body_of(reading, arguments, template.returned)
        return body if same_body(body.block, template.block) else None

    def _passed(self, value: SSAValue, block: Block) -> SSAValue | None:
        """What the call was given for an argument that nobody reads, if it is still there."""
        while value in self.replaced:
            value = self.replaced[value]
        made_in = value.owner.parent if isinstance(value.owner, Operation) else value.owner
        around: Block | None = block
        while around is not None and around is not made_in:
            around = around.parent_block()
        return None if around is None else value

    def _demand_order(self, members: Sequence[Operation], place: Place, positions: Positions) -> None:
        """Effects keep their order."""
        if not any(map(self._has_effect, (*members, *place.behind))):
            return
        inside = set(members)
        end = max(positions.of[place.before], *(positions.of[op] for op in members))
        current = min(members, key=positions.of.__getitem__)
        while current is not None and positions.of[current] <= end:
            if current not in inside and self._has_effect(current):
                raise LeftInlined("an effect stands between its operations")
            current = current.next_op

    def _has_effect(self, op: Operation) -> bool:
        return any(map(self._has_own_effect, op.walk()))

    def _has_own_effect(self, op: Operation) -> bool:
        if isinstance(op, CallOp):
            return op not in self.pure
        if op.regions and name_of(op) in PURE_IF_BODY_IS:
            return False
        return why_impure(op) is not None

    def _put(self, call: CallOp, place: Place, positions: Positions) -> None:
        block = positions.block
        block.insert_op_before(call, place.before)
        for op in place.behind:
            op.detach()
            block.insert_op_before(op, place.before)
        positions.inserted([call, *place.behind])

    def _read_results(
        self, call: CallOp, body: Body, group: Group, results: dict[SSAValue, SSAValue]
    ) -> None:
        """Whoever reads a result of the operations reads that of the call."""
        inside = set(group.members.values())
        now = dict[SSAValue, SSAValue]()
        for was, result in zip(body.returned, call.results, strict=True):
            now.setdefault(was, result)
        for value, was in results.items():
            if was in now:
                now[was].name_hint = value.name_hint
                self.replaced[value] = now[was]
                if value in self.constants:
                    self.constants.add(now[was])
                for use in list(value.uses):
                    if group.block.find_ancestor_op_in_block(use.operation) not in inside:
                        use.operation.operands[use.index] = now[was]

    def _read_passed(self, call: CallOp, template: Template, group: Group, positions: Positions) -> None:
        """Whoever read a result that is an argument as it came reads it from the call again."""
        at = group.instance.at
        around = self._function_around(group)
        called = around.operations[at.index]
        for was, result, before in zip(template.returned, call.results, called.results, strict=True):
            if not isinstance(was, BlockArgument):
                continue
            for use in list(call.operands[was.index].uses):
                origin, here = self.origins.of.get(use.operation), group.block.find_ancestor_op_in_block(use.operation)
                if origin is None or (origin.instance, origin.copy) != (at.instance, group.copy) or here is None:
                    continue
                operands = around.operations[origin.index].operands
                if positions.of[here] > positions.of[call] and before in operands[use.index : use.index + 1]:
                    use.operation.operands[use.index] = result

    def _function_around(self, group: Group) -> Template:
        if (around := group.instance.at.instance) is not None:
            return self.templates.of(around.callee)
        function = group.block.parent_op()
        while not isinstance(function, FuncOp):
            assert function is not None, "what was inlined stands in a function"
            function = function.parent_op()
        return self.templates.of(function.sym_name.data)

    def _take_over(self, call: CallOp, group: Group, members: Sequence[Operation]) -> None:
        """The call stands for the operations from now on. Of these stay those that come from constants, and are read."""
        if not any(map(self._has_effect, members)):
            self.pure.add(call)
        at = group.instance.at
        self.origins.of[call] = Origin(at.instance, at.index, group.copy)
        read = [value.owner for op in members for inner in op.walk() for value in inner.operands]
        for op in reversed(members):
            _erase_unread(op)
        for owner in dict.fromkeys(read):
            if isinstance(owner, Operation) and owner.parent is not None and is_constant(owner):
                _erase_unread(owner)


def _erase_unread(op: Operation) -> None:
    if not any(result.first_use is not None for result in op.results):
        op.detach()
        op.erase()


def _rank(template: Template, value: SSAValue) -> tuple[int, int]:
    if isinstance(value, BlockArgument):
        return -1, value.index
    assert isinstance(value, OpResult), "a value is an argument or a result"
    return template.index[value.op], value.index
