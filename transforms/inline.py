"""recompute-inline: put the bodies of private functions in the place of their calls, inside loops too.

    %1 = call @_where(%m, %x) loc("jit(f)/jvp(block0)/jit(_where)")

becomes the body of `@_where`, each operation with the call's path in front of its own:
`jit(f)/jvp(block0)/jit(_where)/select_n`. JAX splits every nested jit into a forward and a backward function; only
after inlining do the values that cross from one to the other show. Private functions without calls are dropped.
Functions whose name a consumer looks for (`dialects/reserved_names.py`) stay as they are, and so do their calls.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..analysis.request.names import hand_on_names
from ..analysis.step.functions import single_block
from ..analysis.step.marks import say
from ..dialects.context import tell
from ..dialects.diagnostics import Refusal, Remark
from ..dialects.every import every_operation
from ..dialects.recompute import Names
from ..dialects.reserved_names import is_reserved, reserved_name
from .calls.origins import Origins
from .calls.said import Inherited, called_from

MAX_OPERATIONS = 1_000_000
"""A function with more operations than this is refused: functions that call each other twice double at each level."""


def inline(module: ModuleOp, origins: Origins | None = None) -> int:
    """Inline every call of a private function; returns how many. Raises `Refusal` for recursion, or for too many.

    `origins`: a table to fill with where each operation comes from.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    sizes: dict[str, int] = {}
    for function in functions.values():
        _size(function, functions, sizes)
    inlined = 0
    done, inherited = set[str](), Inherited(module)
    if origins is not None:
        origins.number(functions.values())
    for function in list(functions.values()):
        inlined += _inline_calls_of(function, functions, done, (), inherited, origins)
    _drop_uncalled(module)
    return inlined


def _size(function: FuncOp, functions: dict[str, FuncOp], sizes: dict[str, int]) -> int:
    """How many operations the function will have, by `sizes` where it is known. Raises `Refusal` for too many."""
    name = function.sym_name.data
    if name in sizes:
        return sizes[name]
    sizes[name] = 0  # a function that calls itself is refused when it is inlined
    total = 0
    for op in every_operation(function):
        total += 1
        if isinstance(op, CallOp) and (callee := functions.get(op.callee.string_value())) and _can_be_inlined(callee):
            total += _size(callee, functions, sizes)
        if total > MAX_OPERATIONS:
            raise Refusal(op, f"function '{name}' has more than {MAX_OPERATIONS} operations once calls are inlined")
    sizes[name] = total
    return total


def _inline_calls_of(
    function: FuncOp,
    functions: dict[str, FuncOp],
    done: set[str],
    callers: tuple[str, ...],
    inherited: Inherited,
    origins: Origins | None,
) -> int:
    """Callees first, so that each body is copied only once it holds no more calls."""
    name = function.sym_name.data
    if name in done:
        return 0
    if name in callers:
        raise Refusal(function, f"function '{name}' calls itself; recursive functions cannot be inlined")
    inlined = 0
    if is_reserved(name):
        done.add(name)
        return 0
    for call in [op for op in every_operation(function) if isinstance(op, CallOp)]:
        callee = functions.get(call.callee.string_value())
        if callee is None or not _can_be_inlined(callee):
            continue
        inlined += _inline_calls_of(callee, functions, done, (*callers, name), inherited, origins)
        _inline_call(call, callee, inherited, origins)
        inlined += 1
    done.add(name)
    return inlined


def _can_be_inlined(callee: FuncOp) -> bool:
    is_private = callee.sym_visibility is not None and callee.sym_visibility.data == "private"
    return is_private and bool(callee.body.blocks) and not is_reserved(callee.sym_name.data)


def why_calls_stay(module: ModuleOp) -> list[Remark]:
    """A remark at the first call of each function that is not inlined because a consumer looks for its name."""
    first = dict[str, Remark]()
    for call in every_operation(module):
        if isinstance(call, CallOp) and (entry := reserved_name(name := call.callee.string_value())) is not None:
            reason = f"the call of '{name}' is neither inlined nor recomputed: {entry.reader}, by its name"
            first.setdefault(name, Remark(call, reason))
    return list(first.values())


def _inline_call(call: CallOp, callee: FuncOp, inherited: Inherited, origins: Origins | None) -> None:
    block = call.parent
    assert block is not None, "a call stands in a block"
    mapping: dict[SSAValue, SSAValue] = dict(zip(single_block(callee).args, call.operands, strict=True))
    returned = list[SSAValue]()
    copies = list[Operation]()
    for op in single_block(callee).ops:
        if isinstance(op, ReturnOp):
            returned = [mapping[value] for value in op.operands]
            break
        copies.append(copy := op.clone(mapping))
        inherited.hand_on(call, copy, len(copies))
        for inner in every_operation(copy):
            inner.location = called_from(call.location, inner.location)
    if origins is not None:
        origins.inlined(call, zip(single_block(callee).ops, copies, strict=False), mapping)
    inlined = set(copies)
    _inherit_by_result(call, returned, inlined)
    hand_on_names(call, returned, inlined)
    for result, value in zip(call.results, returned, strict=True):
        result.replace_all_uses_with(value)
    block.insert_ops_before(copies, call)
    call.detach()
    call.erase()


def _inherit_by_result(call: CallOp, returned: Iterable[SSAValue], inlined: Container[Operation]) -> None:
    """A list of decisions, one for each result of the call, belongs to the operations that make these results."""
    marks = call.attributes.get(Names.RECOMPUTE)
    if not isinstance(marks, ArrayAttr):
        return
    for mark, value in zip(cast(ArrayAttr[Attribute], marks), returned, strict=True):
        owner = value.owner
        if isinstance(owner, Operation) and owner in inlined and not isinstance(mark, UnitAttr):
            say(value, mark)


def _drop_uncalled(module: ModuleOp) -> None:
    called = {call.callee.string_value() for call in every_operation(module) if isinstance(call, CallOp)}
    for op in list(module.ops):
        if isinstance(op, FuncOp) and _can_be_inlined(op) and op.sym_name.data not in called:
            op.detach()
            op.erase()


@dataclass(frozen=True)
class InlinePass(ModulePass):
    """Inline private functions, prefixing locations with the call's path."""

    name = "recompute-inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, why_calls_stay(op))
        inline(op)
