"""Invariance of the pipeline under changes of the program that should not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from xdsl.dialects.builtin import FunctionType, LocationAttr, ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from recompute.analysis.step.direction import Direction
from recompute.analysis.step.jax_paths import path_of, scope_of, split_path
from recompute.analysis.step.order import single_block
from recompute.dialects.stablehlo.unary import TanhOp
from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.printer import print_module
from recompute.planning.objective import MIN_SAVED_SHARE
from recompute.proof.prove import prove
from recompute.search.list_schedules import Precedence

from .checks import CHECKS, Case, Checks, classified, holding, holding_of, run
from .requests import step_of


def _names_do_not_matter(case: Case) -> Iterator[str]:
    """Check that renaming values changes only names in the result. As a second run, it also detects nondeterminism."""
    renamed = case.before.clone()
    _rename(renamed, lambda index: f"other{index}")
    after = run(renamed, case.request).after
    texts = [_without_names(case.after), _without_names(after)]
    if texts[0] != texts[1]:
        yield "other names for values give another step"


def _without_names(module: ModuleOp) -> str:
    copy = module.clone()
    _rename(copy, lambda index: None)
    return print_module(copy, debuginfo=True)


def _rename(module: ModuleOp, name: Callable[[int], str | None]) -> None:
    for index, value in enumerate(_values(module)):
        value.name_hint = name(index)


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _dead_code_does_not_matter(case: Case) -> Iterator[str]:
    """Check that unused operations in the forward pass do not change the number of copies."""
    if not case.request.marks and case.recomputation.copies:
        more = case.before.clone()
        if add_dead_code(more, Random(print_module(more))):
            copies = run(more, case.request).recomputation.copies
            if copies != case.recomputation.copies:
                yield f"dead code changes the number of copies from {case.recomputation.copies} to {copies}"


def add_dead_code(module: ModuleOp, random: Random) -> int:
    """Insert unused operations after some forward operations, in their scope or outside all scopes; return how
    many."""
    readable = [op for op in single_block(step_of(module)).ops if _is_forward(op) and _is_real(op)]
    chosen = [op for op in readable if random.random() < 0.1]
    for op in chosen:
        dead = TanhOp(op.results[0])
        dead.location = _beside(op.location, "dead") if random.random() < 0.5 else _OUTSIDE
        dead.attributes |= {name: value for name, value in op.attributes.items() if name == "recompute.phase"}
        Rewriter.insert_op(dead, InsertPoint.after(op))
    return len(chosen)


_OUTSIDE = NameLoc(StringAttr("jit(step)/jvp()/dead"), UnknownLoc())


def _is_forward(op: Operation) -> bool:
    return scope_of(op.location).direction is Direction.FORWARD


def _is_real(op: Operation) -> bool:
    type_ = op.results[0].type if op.results else None
    return str(type_).endswith("xf32>")


def _beside(location: LocationAttr, name: str) -> LocationAttr:
    """Return the location with another operation name."""
    path = "/".join([*split_path(path_of(location))[:-1], name])
    return NameLoc(StringAttr(path), location.location if isinstance(location, NameLoc) else location)


def _functions_do_not_matter(case: Case) -> Iterator[str]:
    """Check the effect of moving part of a scope into a private function: the same results and the same number of
    copies.

    Inlined, the peak is the same. With the call restored, the guarantees for every step hold; in program order, the
    peak is that without calls. A call needs its operands and results at one time, and equal operations of different
    calls are not merged (docs/limits.md).
    """
    if case.request.marks or case.request.phases != "locations" or not case.recomputation.copies:
        return
    outlined = case.before.clone()
    if not _outline(outlined, Random(print_module(outlined))):
        return
    verify_module(outlined)
    again = run(outlined, case.request)
    if not (proof := prove(case.before, again.after)):
        yield f"with a private function: {proof.reason}"
    yield from (f"with a private function {words}" for words in CHECKS["peak"](again))
    inlined = [run(before, case.request, calls=False) for before in (case.before, outlined)]
    plain, without = [(item.recomputation.copies, holding_of(item).peak_bytes) for item in inlined]
    if plain != without:
        yield f"without calls a private function changes (copies, peak) from {plain} to {without}"
    if again.recomputation.copies != case.recomputation.copies:
        yield f"a private function changes copies from {case.recomputation.copies} to {again.recomputation.copies}"
    if case.request.target == "none" and holding_of(again).peak_bytes > without[1] * (1 + MIN_SAVED_SHARE):
        yield f"called again a private function takes the peak from {without[1]} to {holding_of(again).peak_bytes}"


def _outline(module: ModuleOp, random: Random) -> bool:
    """Move a few consecutive operations of a scope that is entered once into a function."""
    function = step_of(module)
    runs = [actual for actual in _runs(function) if len(actual) > 2]
    if not runs:
        return False
    chosen = random.choice(runs)
    length = random.randint(2, len(chosen))
    start = random.randint(0, len(chosen) - length)
    _move_into_function(module, chosen[start : start + length])
    return True


def _runs(function: FuncOp) -> list[list[Operation]]:
    """Return consecutive forward operations of one scope, without scopes that are entered again."""
    result, previous = list[list[Operation]](), ""
    for op in single_block(function).ops:
        path = _scope_text(op) if _is_forward(op) and scope_of(op.location).path else ""
        if path and path == previous:
            result[-1].append(op)
        elif path:
            result.append([op])
        previous = path
    places = [(op.name, op.location) for entry in result for op in entry]
    return [entry for entry in result if all(places.count((op.name, op.location)) == 1 for op in entry)]


def _scope_text(op: Operation) -> str:
    return "/".join(split_path(path_of(op.location))[:-1])


def _move_into_function(module: ModuleOp, moved: list[Operation]) -> None:
    inside = {result for op in moved for result in op.results}
    read = dict.fromkeys(value for op in moved for inner in op.walk() for value in inner.operands)
    made_inside = inside | {value for op in moved for value in _inner_values(op)}
    inputs = [value for value in read if value not in made_inside]
    outputs = [value for value in inside if any(_top(use.operation, moved) is None for use in value.uses)]
    outputs.sort(key=lambda value: [value in op.results for op in moved].index(True))
    block = Block(arg_types=[value.type for value in inputs])
    call = CallOp("outlined", inputs, [value.type for value in outputs])
    call.location = _beside(moved[0].location, "jit(outlined)")
    Rewriter.insert_op(call, InsertPoint.after(moved[-1]))
    for old, new in zip(outputs, call.results, strict=True):
        for use in [use for use in old.uses if _top(use.operation, moved) is None]:
            use.operation.operands[use.index] = new
    for op in moved:
        op.detach()
        block.add_op(op)
        for inner in op.walk():
            inner.location = _inner_location(inner.location)
            for index, operand in enumerate(inner.operands):
                if operand in inputs:
                    inner.operands[index] = block.args[inputs.index(operand)]
    block.add_op(ReturnOp(*outputs))
    type_ = FunctionType.from_lists([value.type for value in inputs], [value.type for value in outputs])
    module.body.block.add_op(FuncOp("outlined", type_, Region(block), visibility="private"))


def _inner_values(op: Operation) -> Iterator[SSAValue]:
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
            for inner in block.ops:
                yield from inner.results
                yield from _inner_values(inner)


def _top(op: Operation, among: list[Operation]) -> Operation | None:
    """Return the operation of `among` that is or contains `op`."""
    current: Operation | None = op
    while current is not None and current not in among:
        current = current.parent_op()
    return current


def _inner_location(location: LocationAttr) -> LocationAttr:
    """Return a location in a function: its path starts with the operation, and the call's path precedes it."""
    path = path_of(location)
    return NameLoc(StringAttr(split_path(path)[-1]), location.location) if isinstance(location, NameLoc) else location


def _order_does_not_matter(case: Case) -> Iterator[str]:
    """Check that a permitted reordering of operations gives the same results, and no peak above that of its own
    order."""
    shuffled = case.inlined.clone()
    _shuffle(shuffled, Random(print_module(shuffled)))
    verify_module(shuffled)
    before, after = holding(shuffled), run(shuffled, case.request)
    if not (proof := prove(case.before, after.after)):
        yield f"in another order: {proof.reason}"
    if case.request.is_policy_only and holding_of(after).peak_bytes > before.peak_bytes:
        yield f"in another order the peak goes from {before.peak_bytes} to {holding_of(after).peak_bytes} bytes"


def _shuffle(module: ModuleOp, random: Random) -> None:
    """Permute the operations within their dependences, each stretch of forward or other operations separately."""
    classes = classified(module)
    precedence, operations = Precedence.of(classes.order, classes), classes.order.operations
    order = list[int]()
    for stretch in precedence.stretches:
        missing = {inner: len(precedence.needs[inner]) for inner in stretch}
        needed_by: dict[int, list[int]] = {inner: [] for inner in stretch}
        for operation in stretch:
            for needed in precedence.needs[operation]:
                needed_by[needed].append(operation)
        ready = [inner for inner in stretch if not missing[inner]]
        while ready:
            order.append(ready.pop(random.randrange(len(ready))))
            for operation in needed_by[order[-1]]:
                missing[operation] -= 1
                if not missing[operation]:
                    ready.append(operation)
    for op in operations:
        op.detach()
    classes.order.block.add_ops([*(operations[item] for item in order), operations[-1]])


RELATIONS: Checks = {
    "order": _order_does_not_matter,
    "names": _names_do_not_matter,
    "dead code": _dead_code_does_not_matter,
    "functions": _functions_do_not_matter,
}
