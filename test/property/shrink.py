"""Reduction of a failing program to a smaller one that fails in the same way, for a human reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.dead_code_elimination import region_dce

from recompute.analysis.step.order import single_block
from recompute.driver.verification.verified import verify_module
from recompute.transforms.inline import inline

from .checks import Checks, Problem, check
from .requests import Request, step_of

Fails = Callable[[ModuleOp], bool]
Edit = Callable[[ModuleOp], None]


def shrink(before: ModuleOp, request: Request, problem: Problem, checks: Checks) -> ModuleOp:
    """Return a smaller program with a problem of the same kind; `before` is not changed."""
    only = {name: first for name, first in checks.items() if name == problem.check}

    def fails(module: ModuleOp) -> bool:
        return any(actual.kind == problem.kind for actual in check(module, request, only).problems)

    smallest = _try(before, _flatten, fails) or before
    size = -1
    while size != _size(smallest):
        size = _size(smallest)
        for edits in (_fewer_results, _fewer_operations, _fewer_arguments):
            smallest = _greedily(smallest, edits, fails)
    return smallest


def _size(module: ModuleOp) -> int:
    function = step_of(module)
    return sum(1 for _ in module.walk()) + len(single_block(function).args) + len(function.function_type.outputs)


def _flatten(module: ModuleOp) -> None:
    inline(module)
    region_dce(step_of(module).body)


def _try(module: ModuleOp, edit: Edit, fails: Fails) -> ModuleOp | None:
    """Return the edited copy if it is smaller, verifies and still fails; otherwise None."""
    candidate = module.clone()
    try:
        edit(candidate)
        verify_module(candidate)
    except Exception:
        return None
    return candidate if fails(candidate) else None


def _greedily(module: ModuleOp, edits: Callable[[ModuleOp], Iterator[Edit]], fails: Fails) -> ModuleOp:
    """Apply every edit that keeps the failure. Positions count from the end, so that later edits stay valid."""
    for edit in edits(module):
        if (smaller := _try(module, edit, fails)) is not None and _size(smaller) < _size(module):
            module = smaller
    return module


def _fewer_results(module: ModuleOp) -> Iterator[Edit]:
    for index in reversed(range(len(step_of(module).function_type.outputs))):
        yield lambda edited, index=index: _drop_result(step_of(edited), index)


def _drop_result(function: FuncOp, index: int) -> None:
    terminator = single_block(function).last_op
    assert terminator is not None, "a function ends with a return"
    terminator.operands = [value for at, value in enumerate(terminator.operands) if at != index]
    function.arg_attrs = None
    _set_type(function)
    region_dce(function.body)


def _set_type(function: FuncOp) -> None:
    block = single_block(function)
    assert block.last_op is not None, "a function ends with a return"
    function.function_type = FunctionType.from_lists(block.arg_types, block.last_op.operand_types)


def _fewer_operations(module: ModuleOp) -> Iterator[Edit]:
    """Yield the removals of ranges of operations, longer ones first, from the last to the first."""
    count = len(single_block(step_of(module)).ops)
    for length in (16, 4, 1):
        for start in range(count - 2, -1, -length):
            yield lambda edited, start=start, length=length: _bypass(edited, max(0, start - length + 1), start)


def _bypass(module: ModuleOp, first: int, last: int) -> None:
    """Erase operations; their readers use an earlier value of the same type."""
    block = single_block(step_of(module))
    operations = list(block.ops)[:-1]
    for op in reversed(operations[first : last + 1]):
        for result in op.results:
            if result.first_use is not None:
                result.replace_all_uses_with(_stand_in(block, op, result))
        op.detach()
        op.erase()


def _stand_in(block: Block, op: Operation, result: SSAValue) -> SSAValue:
    near = (value for value in op.operands if value.type == result.type)
    if (item := next(near, None)) is not None:
        return item
    earlier = list[SSAValue](block.args)
    for other in block.ops:
        if other is op:
            break
        earlier.extend(other.results)
    matching = [value for value in earlier if value.type == result.type]
    if not matching:
        raise ValueError(f"no earlier value has the type {result.type}")
    return matching[-1]


def _fewer_arguments(module: ModuleOp) -> Iterator[Edit]:
    for index in reversed(range(len(single_block(step_of(module)).args))):
        yield lambda edited, index=index: _drop_argument(step_of(edited), index)


def _drop_argument(function: FuncOp, index: int) -> None:
    block = single_block(function)
    block.erase_arg(block.args[index])
    function.arg_attrs = None
    _set_type(function)
