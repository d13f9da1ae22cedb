"""recompute-inline: replace calls to private functions with their bodies, also inside loops.

    %1 = call @_where(%m, %x) loc("jit(f)/jvp(block0)/jit(_where)")

becomes the body of `@_where`. The path of each inlined operation begins with the path of the call, as in
`jit(f)/jvp(block0)/jit(_where)/select_n`. JAX splits every nested jit into a forward and a backward function; the
residuals between the two become visible only after inlining. Private functions that are never called are erased.

Two kinds of calls stay unchanged: calls to functions whose names have a meaning for a consumer
(`dialects/reserved_names.py`), and calls with attributes that inlining would lose, such as the attributes of JAX's
`compute_on`. The pipeline `recompute` does inline calls of the second kind for planning, because it re-outlines them
afterwards.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..analysis.step.order import single_block
from ..dialects.cloning import Cloner
from ..dialects.names import Names
from ..dialects.reserved_names import is_reserved, reserved_name
from ..support.diagnostics import Refusal
from ..support.operations import block_of, every_operation, is_private
from ..support.remarks import Remark, tell
from .attributes.write_attributes import mark_result, propagate_names
from .calls.call_attributes import AttributePropagator, functions_with_attributes, keep_whole, location_in_call
from .calls.origins import Origins

MAX_OPERATIONS = 1_000_000
"""Maximum number of operations in a function after inlining. A limit is needed because the size doubles at each level
if each function calls the next one twice."""


def inline(module: ModuleOp, origins: Origins | None = None) -> int:
    """Inline every call to a private function, and erase private functions that are no longer referenced.

    Functions with a reserved name or the attribute `recompute.whole`, and calls to them, stay unchanged.

    Args:
        module: The module, which is changed in place.
        origins: A table that receives the origin of each operation.

    Returns:
        The number of inlined calls.

    Raises:
        Refusal: A function is recursive, or would have more than `MAX_OPERATIONS` operations.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    inliner = _Inliner(functions, _names_of_staying_functions(functions.values()), AttributePropagator(module), origins)
    order = inliner.callees_first()
    inliner.require_bounded_size(order)
    if origins is not None:
        origins.record_functions(functions.values())
    count = sum(
        inliner.inline_calls_in(function) for function in order if function.sym_name.data not in inliner.staying
    )
    _erase_unreferenced(module, inliner.staying)
    return count


def _names_of_staying_functions(functions: Iterable[FuncOp]) -> set[str]:
    return {op.sym_name.data for op in functions if Names.WHOLE in op.attributes or is_reserved(op.sym_name.data)}


def why_calls_stay(module: ModuleOp) -> list[Remark]:
    """Return a remark for each function whose calls are not inlined. The remark is located at the first call, and gives
    the reason."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    staying = _names_of_staying_functions(functions.values())
    others_on = functions_with_attributes(module)
    first = dict[str, Remark]()
    for call in every_operation(module):
        if type(call) is not CallOp or (name := call.callee.string_value()) not in staying or name in first:
            continue
        entry = reserved_name(name)
        others = others_on.get(functions[name])
        why = "it has the attribute recompute.whole" if others is None else f"{others} would be lost"
        why = why if entry is None else f"{entry.reader}, by its name"
        first[name] = Remark(call, f"the call to '{name}' is neither inlined nor recomputed: {why}")
    return list(first.values())


@dataclass
class _Inliner:
    """Inlines the calls of a module, except calls to the functions in `staying`."""

    functions: Mapping[str, FuncOp]
    staying: Container[str]
    propagator: AttributePropagator
    origins: Origins | None

    def callees_first(self) -> list[FuncOp]:
        """Return all functions in an order in which callees precede their callers.

        Raises:
            Refusal: A function is recursive.
        """
        order, active = list[FuncOp](), dict[str, list[FuncOp]]()
        visited = set[str]()
        pending = list(self.functions.values())[::-1]
        while pending:
            name = pending[-1].sym_name.data
            if name in visited:
                pending.pop()
                continue
            if name not in active:
                calls = (op for op in every_operation(pending[-1]) if type(op) is CallOp)
                active[name] = [callee for call in calls if (callee := self._callee(call)) is not None]
            for callee in active[name]:
                if callee.sym_name.data in active:
                    raise Refusal(
                        callee, f"function '{callee.sym_name.data}' calls itself; recursive functions cannot be inlined"
                    )
            if missing := [callee for callee in active[name] if callee.sym_name.data not in visited]:
                pending.extend(missing)
                continue
            del active[name]
            visited.add(name)
            order.append(pending.pop())
        return order

    def require_bounded_size(self, order: Sequence[FuncOp]) -> None:
        """Raise `Refusal` if a function would have more than `MAX_OPERATIONS` operations after inlining.

        `order`: the functions; callees precede their callers.
        """
        sizes = dict[str, int]()
        for function in order:
            name, total = function.sym_name.data, 0
            for op in every_operation(function):
                total += 1
                if type(op) is CallOp and (callee := self._callee(op)) is not None:
                    total += sizes[callee.sym_name.data]
                if total > MAX_OPERATIONS:
                    raise Refusal(
                        op,
                        f"function '{name}' would have more than {MAX_OPERATIONS} operations after inlining; "
                        "put repeated layers into a loop (lax.scan)",
                    )
            sizes[name] = total

    def inline_calls_in(self, function: FuncOp) -> int:
        """Inline the calls in a function. Return the number of calls.

        The calls in its callees must already be inlined.
        """
        inlined = 0
        for call in [op for op in every_operation(function) if type(op) is CallOp]:
            if (callee := self._callee(call)) is not None:
                _inline_call(call, callee, self.propagator, self.origins)
                inlined += 1
        return inlined

    def _callee(self, call: CallOp) -> FuncOp | None:
        """Return the function whose body will replace the call; None if the call stays."""
        name = call.callee.string_value()
        callee = self.functions.get(name)
        if callee is None or name in self.staying or not is_private(callee) or not callee.body.blocks:
            return None
        return callee


def _inline_call(call: CallOp, callee: FuncOp, propagator: AttributePropagator, origins: Origins | None) -> None:
    block = block_of(call)
    cloner = Cloner(dict(zip(map(id, single_block(callee).args), call.operands, strict=True)))
    returned = list[SSAValue]()
    copies = list[Operation]()
    for op in single_block(callee).ops:
        if type(op) is ReturnOp:
            returned = [cloner.values[id(value)] for value in op.operands]
            break
        copies.append(copy := cloner.clone(op))
        propagator.propagate(call, copy, len(copies))
        for inner in every_operation(copy):
            inner.location = location_in_call(call.location, inner.location)
    if origins is not None:
        origins.record_inlining(call, zip(single_block(callee).ops, copies, strict=False), cloner.values)
    inlined = set(copies)
    _propagate_result_marks(call, returned, inlined)
    propagate_names(call, returned, inlined)
    for result, value in zip(call.results, returned, strict=True):
        result.replace_all_uses_with(value)
    block.insert_ops_before(copies, call)
    Rewriter.erase_op(call)


def _propagate_result_marks(call: CallOp, returned: Iterable[SSAValue], inlined: Container[Operation]) -> None:
    """Transfer a call's list of marks, one for each result, to the operations that define these results."""
    marks = call.attributes.get(Names.RECOMPUTE)
    if not isinstance(marks, ArrayAttr):
        return
    for mark, value in zip(cast(ArrayAttr[Attribute], marks), returned, strict=True):
        owner = value.owner
        if isinstance(owner, Operation) and owner in inlined and not isinstance(mark, UnitAttr):
            mark_result(value, mark)


def _erase_unreferenced(module: ModuleOp, staying: Container[str]) -> None:
    """Erase private functions that no call, decomposition or comparator refers to."""
    # Keyed by id, since operations share attribute objects and keep them alive.
    attributes = {
        id(attribute): attribute
        for op in every_operation(module)
        for held in (op.properties, op.attributes)
        for attribute in held.values()
    }
    named = set(_names_in(attributes.values()))
    for op in [op for op in module.ops if isinstance(op, FuncOp) and is_private(op) and op.body.blocks]:
        if (name := op.sym_name.data) not in named and name not in staying:
            Rewriter.erase_op(op)


def _names_in(attributes: Iterable[Attribute]) -> Iterator[str]:
    """Yield the symbols that attributes refer to."""
    waiting = list(attributes)
    while waiting:
        match waiting.pop():
            case SymbolRefAttr() as reference:
                yield reference.root_reference.data
            case ArrayAttr() as listed:
                waiting += listed.data
            case DictionaryAttr() as named:
                waiting += named.data.values()
            case _:
                pass


@dataclass(frozen=True)
class InlinePass(ModulePass):
    name = "recompute-inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with keep_whole(op):
            tell(ctx, why_calls_stay(op))
            inline(op)
