"""Value numbering: turns the functions of a program into terms (see `terms.py`), one operation after the other.

    %2, %3 = stablehlo.optimization_barrier %0, %1      %2 is %0 and %3 is %1: the positional identity
    %4 = recompute.depend %0 after %t                   %4 is %0: the token orders, it computes nothing
    %5 = func.call @private(%0)                         what @private returns for %0: calls are inlined here

Goes by the parts of an operation alone (`anatomy.py`), so that registered and unregistered operations are treated
alike. What is not understood raises a `Refusal`; nothing is guessed. In a region of which nobody knows what it means
(`COMPUTE_THEIR_REGIONS` names those that are known) nothing is seen through, dropped or shared: it is taken literally.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from ..dialects.diagnostics import Refusal
from ..dialects.marks import is_mark
from ..dialects.names import Names
from ..dialects.placements import is_placement
from .anatomy import attributes_of, callee_of, functions_of, name_of, public_functions, size_with_calls, without_ours
from .blocks import function_body, is_function, is_known_end, refuse_branches, refuse_symbols, single_block
from .collectives import COLLECTIVES, is_exchange, what_counts
from .per_device import per_device
from .pure_operations import COMPUTE_THEIR_REGIONS, KEPT, MAY_FAIL, OF_THE_PLACE, OF_THE_REGION, RUN_ELSEWHERE, Memory
from .risks import note_risks, where_it_runs
from .scope import Outcome, Scope
from .seen_through import SeenThrough
from .terms import NO_BLOCK, Closed, Head, Inside, Side, Terms
from .wrapping import into, without

MAX_OPERATIONS = 5_000_000
"""More operations than this, with calls inlined, are refused: calls of calls can double at each level."""

SIGNATURE = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})


class Numbering(SeenThrough):
    """Numbers the values of one program.

    `pure`: the names of the operations that have no effect. `declared`: those of them that only the user vouches for;
    `believed` are the ones that the program has.
    """

    def __init__(
        self, module: ModuleOp, side: Side, terms: Terms, pure: Collection[str], declared: Collection[str] = ()
    ):
        super().__init__(side, terms)
        self.functions = functions_of(module)
        self.module = module
        self._pure = pure
        self._memory = Memory()
        self._declared = declared
        self.believed = set[str]()
        self._insides = terms.insides[side]
        self._known = dict[Operation, tuple[Head, bool]]()  # Of those without regions: whether it is an effect.

    def demand_bounded_size(self) -> None:
        """Raises `Refusal` where calls call themselves, or make the program too large once they are inlined."""
        if size_with_calls(self.functions, public_functions(self.functions)) > MAX_OPERATIONS:
            raise Refusal(self.module, f"more than {MAX_OPERATIONS} operations once calls are inlined")

    def function(self, name: str) -> Outcome:
        """Results and effects of a function for unknown arguments. Raises `Refusal`."""
        types = self.heads.types(function_body(self.functions[name], name, self.heads).args, self.functions[name])
        parameters = [
            self._terms.term(Head("parameter", f"{index} of @{name}", types=(type_,)))
            for index, type_ in enumerate(types)
        ]
        scope = self._outermost(f"start of @{name}")
        results = self._run(name, parameters, scope)
        return Outcome(results, scope.state, frozenset(scope.kept), frozenset(scope.risky))

    def top_level(self) -> int:
        """The state after everything at the top level that is not a function, taken literally. Raises `Refusal`."""
        scope = self._outermost("start of the module")
        scope.literal = True
        for op in self.module.ops:
            if name_of(op) != "func.func":
                self._operation(op, scope)
        return scope.state

    def _outermost(self, start: str) -> Scope:
        state = self._terms.term(Head("state", start))
        return Scope(depth=0, state=state, entry=state, place=self._terms.term(Head("state", "the device")))

    def _operands(self, op: Operation, scope: Scope) -> tuple[int, ...]:
        numbers: list[int] = []
        for index, operand in enumerate(op.operands):
            if (number := scope.find(operand)) is None:
                raise Refusal(op, f"operand {index} of {name_of(op)} is used before its definition")
            numbers.append(number)
        return tuple(numbers)

    def _operation(self, op: Operation, scope: Scope) -> None:
        refuse_branches(op)
        match name_of(op):
            case "func.call":
                results = self._call(op, scope)
            case "stablehlo.optimization_barrier" if not scope.literal:
                results = self._identity(op, op.operands, scope)
            case "stablehlo.custom_call" if not scope.literal and is_mark(op) and not without_ours(op.attributes):
                results = self._operands(op, scope)[:1]
            case "stablehlo.custom_call" if not scope.literal and (moved := self._fetched(op, scope)) is not None:
                results = (moved,)
            case "sdy.sharding_constraint" if not scope.literal and Names.SHARDS_KEPT in op.attributes:
                results = self._operands(op, scope)
            case "recompute.depend" if not scope.literal:
                results = self._identity(op, op.operands[:-1], scope)
            case "recompute.segment" | "recompute.gradient" if not scope.literal:
                results = self._group(op, scope)
            case "stablehlo.reshape" if not scope.literal and (same := self._reshaped_back(op, scope)) is not None:
                results = (same,)
            case "sdy.manual_computation" if not scope.literal and (body := per_device(op)) is not None:
                results = self._on_each_device(body, scope)
            case _:
                results = self._apply(op, scope)
        scope.values.update(zip(op.results, results, strict=True))

    def _apply(self, op: Operation, scope: Scope) -> Sequence[int]:
        name = name_of(op)
        known = None if scope.literal else self._known.get(op)
        refuse_symbols(op, self.module)
        operands = self._operands(op, scope)
        if name in OF_THE_REGION and not scope.literal:
            parent = op.parent_op()
            if parent is None or not name_of(parent).startswith("linalg."):
                raise Refusal(op, f"{name} does not stand directly in the loops that it counts")
            operands = (scope.entry, *operands)
        if name in OF_THE_PLACE or name in COLLECTIVES:
            operands = (scope.place, *operands)
        regions = [self._region(op, region, scope) for region in op.regions]
        insides = [region.inside for region in regions if region.inside]
        if known is None:
            effect = scope.literal or self._has_effect(op, insides, scope)
            bodies = tuple([region.body for region in regions])
            known = self.heads.of("effect" if effect else "operation", op, what_counts(op, scope), bodies), effect
            if not op.regions and not scope.literal and name not in COLLECTIVES:
                self._known[op] = known
        head, effect = known
        if name in self._declared and not effect:
            self.believed.add(name)
        for region in regions:
            operands += region.captures
        if name in MAY_FAIL and not effect:
            operands = where_it_runs(self._terms, head, operands, scope)
        term = self._terms.term(head, (scope.state, *operands) if effect else operands)
        if effect:
            scope.state = term
        elif name in KEPT or any(inside.kept for inside in insides):
            scope.kept[term] = None
        for one in (term, *note_risks(self._terms, term, op, regions, scope)):
            self._origins.setdefault(one, op)
        if regions:
            self._insides.setdefault(term, tuple(insides))
        if len(op.results) == 1:
            return (term,)
        return [self._terms.term(Head("result", str(index)), (term,)) for index in range(len(op.results))]

    def _has_effect(self, op: Operation, insides: Sequence[Inside], scope: Scope) -> bool:
        pure = name_of(op) in self._pure or is_exchange(op, scope) or is_placement(op)
        if not pure or any(inside.has_effects for inside in insides):
            return True
        return self._memory.is_among(op.operands) or self._memory.is_among(op.results)

    def _region(self, op: Operation, region: Region, around: Scope) -> Closed:
        if not region.blocks:
            return Closed(None, self._terms.body(NO_BLOCK), ())
        name, block = name_of(op), single_block(op, region)
        computes = name in COMPUTE_THEIR_REGIONS and block.last_op is not None and is_known_end(block.last_op)
        depth = around.depth + 1
        types = self.heads.types(block.args, op)
        bound = [self._terms.bound("bound", (type_,), depth) for type_ in types]
        start = self._terms.bound("state", (), depth)
        scope = Scope(depth, start, start, place=start if name in RUN_ELSEWHERE else around.place, around=around)
        scope.literal, scope.is_alike = around.literal or not computes, around.is_alike and name in RUN_ELSEWHERE
        scope.values.update(zip(block.args, bound, strict=True))
        ending, results = self._block(block, scope)
        inside = Inside((*bound, start), (*results, scope.state), tuple(scope.kept))
        body, captures = self._terms.close(inside, types, ending, depth)
        if not scope.risky:
            return Closed(inside, body, captures)
        risks = inside._replace(kept=(*scope.kept, *scope.risky))
        return Closed(inside, body, captures, self._terms.close(risks, types, ending, depth))

    def _block(self, block: Block, scope: Scope) -> tuple[int, tuple[int, ...]]:
        """Number a block. Returns the head of its terminator and what that reads; taken literally, it has none."""
        last = block.last_op
        if last is not None and scope.literal and not (is_function(block) and is_known_end(last)):
            last = None
        for op in block.ops:
            if op is not last:
                self._operation(op, scope)
        if last is None:
            return -1, ()
        refuse_branches(last)
        ending = self._terms.head(self.heads.of("operation", last, attributes_of(last)))
        return ending, self._operands(last, scope)

    def _call(self, op: Operation, scope: Scope) -> Sequence[int]:
        name = callee_of(op, self.functions)
        block, function = function_body(self.functions[name], name, self.heads), self.functions[name]
        last = block.last_op
        assert last is not None, "checked: a function ends with func.return"
        taken, returned = self.heads.types(block.args, op), self.heads.types(last.operands, op)
        if (self.heads.types(op.operands, op), self.heads.types(op.results, op)) != (taken, returned):
            raise Refusal(op, f"func.call of @{name} with operands or results that it does not have")
        around = self._wrapping.around(
            ("call", op, without(attributes_of(op), {"callee"})),
            ("function", function, without(attributes_of(function), SIGNATURE)),
            ("return", last, attributes_of(last)),
            always=scope.literal,
        )
        state, *arguments = self._wrapping.wrapped(into(around), [scope.state, *self._operands(op, scope)])
        arguments = self._wrapping.each_wrapped("parameter", function, "arg_attrs", arguments)
        inner = scope.called(state)
        results = self._run(name, arguments, inner)
        if inner.state != state or scope.literal:
            (scope.state,) = self._wrapping.wrapped(around, [inner.state])
        return self._wrapping.wrapped(around, self._wrapping.each_wrapped("result", function, "res_attrs", results))

    def _run(self, name: str, arguments: Sequence[int], scope: Scope) -> tuple[int, ...]:
        """What the function returns for these arguments, from the scope's state on."""
        block = function_body(self.functions[name], name, self.heads)
        scope.values.update(zip(block.args, arguments, strict=True))
        _, results = self._block(block, scope)  # `_call` and the signature see to what is written on the return
        return results
