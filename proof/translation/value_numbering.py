"""Value numbering: translates the functions of a program to terms (`terms.py`), operation by operation.

    %2, %3 = stablehlo.optimization_barrier %0, %1      %2 is %0 and %3 is %1: result i is operand i
    %4 = recompute.depend %0 after %t                   %4 is %0: the token is ignored
    %5 = func.call @private(%0)                         the call is inlined (`call_inliner.py`)

Value numbering reads only the parts of an operation that `operation_parts.py` lists, so it treats registered and
unregistered operations in the same way. An unsupported construct raises `Refusal`. A region of unknown meaning is
compared literally: none of its operations is simplified, dropped or shared. `COMPUTE_THEIR_REGIONS` lists the
operations whose regions have a known meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from ...dialects.mark_calls import is_mark
from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..expressions.block_requirements import (
    ends_function,
    function_body,
    is_plain_terminator,
    refuse_branches,
    refuse_symbols,
    single_block,
)
from ..expressions.conditions import RunTimeConditions
from ..expressions.terms import NO_BLOCK, ClosedRegion, Head, OpenRegion, Side, Terms, result_head
from ..operations.operation_parts import (
    attributes_of,
    functions_of,
    position_attributes,
    without_ours,
)
from ..operations.pure_operations import (
    COMPUTE_THEIR_REGIONS,
    OF_THE_DEVICE,
    OF_THE_REGION,
    PRESERVED,
    RUN_ELSEWHERE,
)
from .call_inliner import CallInliner
from .head_cache import CachedHead, HeadCache
from .meshes import MESH, meshes_of, symbol_of, unused_meshes
from .operation_effects import OperationEffects
from .per_device import COLLECTIVES, channels_of, compared_attributes, per_device
from .risks import close_risks, record_region_risks, record_risk
from .scope import FunctionTerms, RegionScope
from .termination import why_endless
from .transparent_ops import TransparentOperations


@dataclass(frozen=True)
class NumberingOptions:
    """The assumptions under which a program is translated to terms.

    Attributes:
        pure: Names of the operations without effects.
        declared: The operations in `pure` that are pure only because the user declares them pure.
            `OperationEffects.assumed_pure` collects the declared operations that the program contains.
        constraints_before: The terms of the sharding constraints in the original program. If set, any other constraint
            equals its operand, and `Numbering.added_constraints` collects it.
    """

    pure: Collection[str]
    declared: frozenset[str] = frozenset()
    constraints_before: Collection[int] | None = None


class Numbering(TransparentOperations):
    """Value numbering of one program.

    Args:
        module: The program.
        side: 0 for the original program, 1 for the rewritten program.
        terms: The table of terms. Both programs share it.
        options: The assumptions.
    """

    def __init__(self, module: ModuleOp, side: Side, terms: Terms, options: NumberingOptions):
        super().__init__(side, terms)
        self.module = module
        self.functions = functions_of(module)
        self.calls = CallInliner(self.functions, terms, self.heads, self._wrapping, self._origins)
        self.effects = OperationEffects(options.pure, options.declared)
        self._open_regions = terms.open_regions[side]
        # The heads of operations without regions, and whether the operations are effects.
        self._heads_of_ops = dict[Operation, tuple[Head, bool]]()
        self._conditions = RunTimeConditions(terms)
        self._head_cache = HeadCache(side, terms, self._identities, self._conditions, options.declared)
        self.constraints = set[int]()
        self._constraints_before = options.constraints_before
        self.added_constraints = set[Operation]()

    def function(self, name: str) -> FunctionTerms:
        """Return the terms that a function computes from symbolic arguments. Raises `Refusal` if a part cannot be
        compared."""
        function = self.functions[name]
        types = self.heads.types(function_body(function, name, self.heads).args, function)
        parameters = [
            self._terms.term(Head("parameter", f"{index} of @{name}", types=(type_,)))
            for index, type_ in enumerate(types)
        ]
        for number, attributes in zip(parameters, position_attributes(function, "arg_attrs", len(types)), strict=True):
            self._memory_spaces.declare_argument(number, attributes)
        scope = self._outermost_scope(f"start of @{name}")
        results = self.calls.run(name, parameters, scope, self._block)
        return FunctionTerms(
            results, scope.state, frozenset(scope.preserved), frozenset(scope.risks), tuple(scope.exchanges)
        )

    def occurs(self, term: int, others: Collection[int]) -> bool:
        """Return whether `others` contains every operation that `term`, a risk or a constraint, represents.

        In tier 1, `others` must contain the term itself. Tier 2 overrides this and compares the iterations of loops.
        """
        return term in others

    def is_covered(self, term: int, others: Collection[int]) -> bool:
        """Return whether one of `others` represents at least the operations that `term` represents.

        In tier 1, the two must be equal. Tier 2 overrides this and compares the iterations of loops.
        """
        return term in others

    def top_level(self, other: ModuleOp) -> int:
        """Return the state after all top-level operations except functions. These operations are compared literally.

        Unused meshes that the other program does not have are skipped. Raises `Refusal` if a part cannot be compared.
        """
        scope = self._outermost_scope("start of the module")
        scope.is_literal = True
        lacking = meshes_of(self.module).keys() - meshes_of(other).keys()
        ignored = unused_meshes(self.module).keys() & lacking if lacking else lacking
        for op in self.module.ops:
            if name_of(op) != "func.func" and not (name_of(op) == MESH and symbol_of(op) in ignored):
                self._operation(op, scope)
        return scope.state

    def _outermost_scope(self, start: str) -> RegionScope:
        state = self._terms.term(Head("state", start))
        return RegionScope(
            depth=0, state=state, entry_state=state, device=self._terms.term(Head("state", "the device"))
        )

    def _operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]:
        visible = scope.values
        try:
            # This runs for every operation of both programs, and the property `operands` is slower.
            return tuple([visible[id(operand)] for operand in op._operands])  # pyright: ignore[reportPrivateUsage]
        except KeyError:
            return self._operands_from_around(op, scope)

    def _operands_from_around(self, op: Operation, scope: RegionScope) -> tuple[int, ...]:
        """Return the terms of the operands. Enclosing scopes may define some of them."""
        numbers: list[int] = []
        for index, operand in enumerate(op.operands):
            if (number := scope.find(operand)) is None:
                raise Refusal(op, f"operand {index} of {name_of(op)} is used before its definition")
            numbers.append(number)
        return tuple(numbers)

    def _operation(self, op: Operation, scope: RegionScope) -> None:
        if not scope.is_literal and (cached := self._head_cache.find(op)) is not None:
            scope.values[id(op.results[0])] = self._apply_cached(op, cached, scope)
            return
        refuse_branches(op)
        match name_of(op):
            case "func.call":
                results = self.calls.inline_call(op, self._operands(op, scope), scope, self._block)
            case "stablehlo.composite" if not scope.is_literal:
                results = self.calls.inline_composite(op, self._operands(op, scope), scope, self._block)
            case "stablehlo.optimization_barrier" if not scope.is_literal:
                results = self._identity(op, op.operands, scope)
            case "stablehlo.custom_call" if not scope.is_literal and is_mark(op) and not without_ours(op.attributes):
                results = self._operands(op, scope)[:1]
            case "stablehlo.custom_call" if (
                not scope.is_literal and (moved := self._look_through_fetch(op, scope)) is not None
            ):
                results = (moved,)
            case "recompute.depend" if not scope.is_literal:
                results = self._identity(op, op.operands[:-1], scope)
            case "recompute.segment" | "recompute.gradient" if not scope.is_literal:
                results = self._group(op, scope)
            case "sdy.manual_computation" if not scope.is_literal and (body := per_device(op)) is not None:
                results = self._on_each_device(body, scope)
            case _:
                results = self._apply(op, scope)
        scope.define(op.results, results)

    def _apply_cached(self, op: Operation, cached: CachedHead, scope: RegionScope) -> int:
        """Return the term of the result of an operation whose head is cached."""
        return self._head_cache.apply(op, cached, self._operands(op, scope))

    def _apply(self, op: Operation, scope: RegionScope) -> Sequence[int]:
        """Return the terms of the results of an operation, and record its effects and conditions in the scope.

        The first operand of an effect is the state of the scope, and the term of the effect is the state after it. The
        values that the regions capture are further operands. If an identity simplifies the result, the simpler term is
        returned.
        """
        refuse_symbols(op, self.module)
        operands = self._operands(op, scope)
        if not scope.is_literal and (value := self._simplify(op, operands, scope)) is not None:
            return (value,)
        operands = (*self._implicit_operands(op, scope), *operands)
        has_condition = not scope.is_literal and self._conditions.of(op, operands) is not None
        regions = [self._region(op, region, scope) for region in op.regions]
        head, is_effect = self._head_and_effect(op, regions, scope)
        operands += tuple([capture for region in regions for capture in region.captures])
        term = self._terms.term(head, (scope.state, *operands) if is_effect else operands)
        if name_of(op) in PRESERVED and self._is_added(term):
            self.added_constraints.add(op)
            return operands
        self._record_regions(op, scope, term, regions)
        if is_effect:
            scope.state = term
        else:
            self._record_pure(op, scope, term, regions, has_condition)
            if not has_condition:
                self._head_cache.record(op, head, regions)
        if len(op.results) == 1:
            return (term,)
        return [self._terms.term(result_head(index), (term,)) for index in range(len(op.results))]

    def _preserve(self, op: Operation, term: int, scope: RegionScope) -> None:
        """Record in the scope that the term of an operation must be preserved."""
        scope.preserved[term] = None

    def _simplify(self, op: Operation, operands: tuple[int, ...], scope: RegionScope) -> int | None:
        """Return the simpler term that equals the result of the operation, or None. Record the head in the cache if
        possible."""
        value = self._identities.value(op, operands)
        if value is None:
            return None
        if self._conditions.of(op, operands) is None and not self.effects.has_effect(op, (), scope):
            self._head_cache.record(op, self.heads.of("operation", op, attributes_of(op)), ())
        return value

    def _implicit_operands(self, op: Operation, scope: RegionScope) -> tuple[int, ...]:
        """Return the terms that an operation reads in addition to its operands: the device, and the current
        execution of the enclosing region."""
        name = name_of(op)
        device = (scope.device,) if name in OF_THE_DEVICE or name in COLLECTIVES else ()
        if name not in OF_THE_REGION or scope.is_literal:
            return device
        parent = op.parent_op()
        if parent is None or not name_of(parent).startswith("linalg."):
            raise Refusal(op, f"{name} must be directly inside a linalg operation")
        return (*device, scope.entry_state)

    def _head_and_effect(
        self,
        op: Operation,
        regions: Sequence[ClosedRegion],
        scope: RegionScope,
    ) -> tuple[Head, bool]:
        """Return the head of the term of an operation, and whether the operation is an effect."""
        if not scope.is_literal and (known := self._heads_of_ops.get(op)) is not None:
            return known
        effect = scope.is_literal or self.effects.has_effect(op, regions, scope)
        bodies = tuple([region.body for region in regions])
        head = self.heads.of("effect" if effect else "operation", op, compared_attributes(op, scope), bodies)
        if not op.regions and not scope.is_literal and name_of(op) not in COLLECTIVES:
            self._heads_of_ops[op] = head, effect
        return head, effect

    def _is_added(self, constraint: int) -> bool:
        """Record the term of a sharding constraint. Return whether the constraint is an added one, which equals its
        operand."""
        self.constraints.add(constraint)
        if self._constraints_before is None or self._terms.depth_of(constraint) > 0:
            return False
        return constraint not in self._constraints_before

    def _record_regions(self, op: Operation, scope: RegionScope, term: int, regions: Sequence[ClosedRegion]) -> None:
        """Record the exchanges of the operation and the risks of its regions in the scope. Record its open regions and
        its origin in the table of terms."""
        recorded = [term, *record_region_risks(self._terms, scope, op, regions, term)]
        exchanged_value = ("inside", self._terms.terms[term][0]) if self._terms.depth_of(term) > 0 else term
        scope.exchanges.extend((channel, exchanged_value) for channel in channels_of(op))
        for number in recorded:
            self._origins.setdefault(number, op)
        if regions:
            self._open_regions.setdefault(term, tuple([region.inside for region in regions if region.inside]))

    def _record_pure(
        self, op: Operation, scope: RegionScope, term: int, regions: Sequence[ClosedRegion], has_condition: bool
    ) -> None:
        """Record in the scope that an operation without effects must be preserved, may fail or may not terminate."""
        name = name_of(op)
        self.effects.record_assumption(op)
        if name in PRESERVED or any(region.inside and region.inside.preserved for region in regions):
            self._preserve(op, term, scope)
        if has_condition or self.effects.is_assumed(op):
            record_risk(self._terms, scope, term)
        if why_endless(op) is not None:
            record_risk(self._terms, scope, term, ordered=True)

    def _region(self, op: Operation, region: Region, enclosing: RegionScope) -> ClosedRegion:
        if not region.blocks:
            return ClosedRegion(None, self._terms.body(NO_BLOCK), ())
        name, block = name_of(op), single_block(op, region)
        computes = name in COMPUTE_THEIR_REGIONS and block.last_op is not None and is_plain_terminator(block.last_op)
        depth = enclosing.depth + 1
        types = self.heads.types(block.args, op)
        arguments = self._terms.fresh_arguments(types, depth)
        start = self._terms.fresh("state", (), depth)
        scope = RegionScope(
            depth, start, start, device=start if name in RUN_ELSEWHERE else enclosing.device, enclosing=enclosing
        )
        scope.is_literal, scope.is_uniform = (
            enclosing.is_literal or not computes,
            enclosing.is_uniform and name in RUN_ELSEWHERE,
        )
        scope.define(block.args, arguments)
        ending, results = self._block(block, scope)
        inside = OpenRegion((*arguments, start), (*results, scope.state), tuple(scope.preserved))
        body, captures = self._terms.close(inside, types, ending, depth)
        enclosing.exchanges.extend(scope.exchanges)
        return ClosedRegion(inside, body, captures, close_risks(self._terms, scope, (*arguments, start), types))

    def _block(self, block: Block, scope: RegionScope) -> tuple[int, tuple[int, ...]]:
        """Translate the operations of a block. Return the id of the terminator's head and the terms of the terminator's
        operands, or (-1, ()) if the terminator is compared like any other operation."""
        last = block.last_op
        if last is not None and scope.is_literal and not (ends_function(block) and is_plain_terminator(last)):
            last = None
        op = block.first_op
        while op is not None:
            if op is not last:
                self._operation(op, scope)
            op = op.next_op
        if last is None:
            return -1, ()
        refuse_branches(last)
        ending = self._terms.head(self.heads.of("operation", last, attributes_of(last)))
        return ending, self._operands(last, scope)
