"""Seeded bugs, and the predicates on programs that decide where a bug can be planted.

A bug must change what the program computes. Therefore it is planted only where the results depend on it
(`live_operations`), and only between values whose difference can be established without the checks under test
(`differ`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from recompute.support.locations import location_text

Edit = Callable[[], object]
IDENTITIES = ("stablehlo.optimization_barrier", "recompute.depend")


def nothing(module: ModuleOp) -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Bug:
    """Error that a pass could make.

    Attributes:
        name: Name of the bug.
        edits: Returns an edit for each place in the module where the bug can be planted, always in the same order. At
            most one of them is applied.
        prepare: Applied first, to the module and to the program with which it is compared.
    """

    name: str
    edits: Callable[[ModuleOp], Iterable[Edit]]
    prepare: Callable[[ModuleOp], None] = nothing


def main_block(module: ModuleOp) -> Block:
    """Return the body of `@main`."""
    return functions(module)["main"].body.block


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def origin(value: SSAValue) -> SSAValue:
    """Return the value that barriers and depends forward."""
    while isinstance(value, OpResult) and value.op.name in IDENTITIES:
        value = value.op.operands[value.index]
    return value


def is_copy(op: Operation) -> bool:
    """Return whether the operation recomputes another one, by the attribute of a copy or by JAX's scope name."""
    return "recompute.copy" in op.attributes or "rematted_computation" in location_text(op.location)


def differ(a: SSAValue, b: SSAValue, depth: int = 4) -> bool:
    """Return whether two values are certainly different expressions over the arguments of `@main`; False if unsure."""
    a, b = origin(a), origin(b)
    kinds = _kind(a), _kind(b)
    if None in kinds or depth == 0:
        return False
    if kinds[0] != kinds[1]:
        return True
    if not isinstance(a, OpResult) or not isinstance(b, OpResult) or len(a.op.operands) != len(b.op.operands):
        return False
    return any(differ(x, y, depth - 1) for x, y in zip(a.op.operands, b.op.operands, strict=True))


def _kind(value: SSAValue) -> object:
    """Return the head of a value's expression; None if it depends on a caller or a loop."""
    if isinstance(value, OpResult):
        if value.op.name in ("func.call", "stablehlo.while"):
            return None
        return value.op.name, value.index, value.type, value.op.properties.get("value")
    assert isinstance(value, BlockArgument), "a value is a result or an argument"
    function = value.block.parent_op()
    is_main = isinstance(function, FuncOp) and function.sym_name.data == "main"
    return ("argument", value.index) if is_main else None


def live_operations(module: ModuleOp) -> list[Operation]:
    """Return the operations on which the results of `@main` depend, in textual order."""
    live = live_values(module)
    return [op for op in module.walk() if any(result in live for result in op.results)]


def live_values(module: ModuleOp) -> set[SSAValue]:
    """Return the values on which the results of `@main` depend, tracking each carry of a loop and each result of a
    call."""
    called = functions(module)
    calls: dict[str, list[Operation]] = {name: [] for name in called}
    for op in module.walk():
        if op.name == "func.call":
            calls[_callee(op)].append(op)
    live: set[SSAValue] = set()
    pending = list(_terminator(main_block(module)).operands)
    while pending:
        value = pending.pop()
        if value in live:
            continue
        live.add(value)
        if isinstance(value, OpResult):
            pending.extend(_read_by_result(value, called))
        elif isinstance(value, BlockArgument):
            pending.extend(_read_by_argument(value, calls))
    return live


def _read_by_result(value: OpResult, called: dict[str, FuncOp]) -> Iterable[SSAValue]:
    op = value.op
    if op.name == "func.call":
        return [_terminator(called[_callee(op)].body.block).operands[value.index]]
    if op.name in IDENTITIES:
        return [op.operands[value.index]]
    if op.name == "stablehlo.while":
        condition, body = (region.block for region in op.regions)
        carried = _terminator(body).operands[value.index]
        return [op.operands[value.index], carried, *_terminator(condition).operands]
    return [*op.operands, *(operand for region in op.regions for operand in _terminator(region.block).operands)]


def _read_by_argument(value: BlockArgument, calls: dict[str, list[Operation]]) -> Iterable[SSAValue]:
    parent = value.block.parent_op()
    if isinstance(parent, FuncOp):
        return [call.operands[value.index] for call in calls[parent.sym_name.data]]
    if parent is not None and parent.name == "stablehlo.while":
        return [parent.results[value.index]]
    return []


def _callee(op: Operation) -> str:
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr), "verified: a call has a callee"
    return callee.root_reference.data


def _terminator(block: Block) -> Operation:
    assert block.last_op is not None, "verified: a block has a terminator"
    return block.last_op
