"""Rules for pure code: its position, its number, its order, and whether it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..tree import Block, Operation, Program, Value
from ..writing import dictionary_text
from .pure import KEPT_WHEN_UNREAD, MAY_FAIL, OF_THE_DEVICE, OF_THE_REGION, as_they_stand, blocks_run, is_pure


def out_of_regions(program: Program) -> None:
    """Hoist out of regions what depends only on values from outside."""
    for op in program.body.operations:
        _hoist_below(op)


def _hoist_below(around: Operation) -> None:
    for block in blocks_run(around):
        listed: list[Operation] = []
        for op in block.operations:
            _hoist_below(op)
            listed += _hoisted(op)
            listed.append(op)
        block.operations = listed


def _hoisted(op: Operation) -> list[Operation]:
    """Return the operations that leave the regions of the operation."""
    matches: list[Operation] = []
    for block in blocks_run(op):
        inside = set(block.arguments) | {value for inner in block.operations for value in inner.results}
        kept: list[Operation] = []
        for inner in block.operations:
            if _may_leave(inner, op, inside):
                inside.difference_update(inner.results)
                matches.append(inner)
            else:
                kept.append(inner)
        block.operations = kept
    return matches


def _may_leave(op: Operation, around: Operation, inside: set[Value]) -> bool:
    names = {inner.name for inner in op.walk()}
    stays = OF_THE_REGION | MAY_FAIL | KEPT_WHEN_UNREAD
    if around.name == "sdy.manual_computation":
        stays |= OF_THE_DEVICE
    if not is_pure(op) or names & stays:
        return False
    return not any(value in inside for value in free_values(op))


def free_values(op: Operation) -> Iterator[Value]:
    """Return the values that the operation and its regions read from outside."""
    own = {value for inner in op.walk() for value in inner.results if inner is not op}
    own |= {value for inner in op.walk() for block in inner.blocks() for value in block.arguments}
    return (value for inner in op.walk() for value in inner.operands if value not in own)


def without_doubles(program: Program) -> None:
    """Merge equal pure operations into the first one."""
    for op in program.body.operations:
        _merge_below(op, {}, {})


def _merge_below(around: Operation, known: dict[str, Operation], same: dict[Value, Value]) -> None:
    for block in blocks_run(around):
        seen, kept = dict(known), list[Operation]()
        for op in block.operations:
            for inner in op.walk():
                inner.operands = [same.get(value, value) for value in inner.operands]
            _merge_below(op, seen, same)
            first = seen.setdefault(_key(op), op) if is_pure(op) else op
            if first is op:
                kept.append(op)
            else:
                same.update(zip(op.results, first.results, strict=True))
        block.operations = kept


def _key(op: Operation) -> str:
    """Return the operation as text, with outside values by identity."""
    names: dict[Value, str] = {}

    def spelt(op: Operation) -> Iterator[str]:
        yield op.name
        yield ",".join(names.get(value, f"outside {id(value)}") for value in op.operands)
        yield dictionary_text(dict(sorted(op.properties.items())))
        yield dictionary_text(dict(sorted(op.attributes.items())))
        yield ",".join(value.type for value in op.results)
        for region in op.regions:
            yield "region"
            for block in region:
                yield "block"
                for value in block.arguments:
                    names[value] = f"inside {len(names)}"
                    yield value.type
                for inner in block.operations:
                    yield from spelt(inner)
                    names.update((value, f"inside {len(names)} {i}") for i, value in enumerate(inner.results))

    return "\n".join(spelt(op))


def without_unread(program: Program) -> None:
    while _drop_unread(program):
        pass


def _drop_unread(program: Program) -> bool:
    read = {value for op in program.module.walk() for value in op.operands}
    dropped = False
    literal = set(as_they_stand(program.module))
    for op in program.module.walk():
        for block in blocks_run(op):
            if op not in literal:
                kept = [operation for operation in block.operations if not _is_unread(operation, read)]
                dropped = dropped or len(kept) < len(block.operations)
                block.operations = kept
    return dropped


def _is_unread(op: Operation, read: set[Value]) -> bool:
    if not is_pure(op) or any(inner.name in KEPT_WHEN_UNREAD for inner in op.walk()):
        return False
    return not any(value in read for value in op.results)


def in_order_of_need(program: Program) -> None:
    """Move pure operations to before the first operation that needs them, depth first."""
    # Inside first: what a region reads from outside is needed in the order in which it reads it.
    literal = set(as_they_stand(program.module))
    for op in reversed(list(program.module.walk())):
        for block in blocks_run(op):
            if op not in literal:
                block.operations = list(_ordered(block))


def _ordered(block: Block) -> Iterable[Operation]:
    makers = {value: op for op in block.operations for value in op.results}
    read = {value for op in block.operations for inner in op.walk() for value in inner.operands}
    effects = [op for op in block.operations[:-1] if not is_pure(op)]
    unread = [op for op in block.operations[:-1] if not any(value in read for value in op.results)]
    entries: dict[Operation, None] = {}
    active: set[Operation] = set()

    def visit(op: Operation) -> None:
        for value in free_values(op):
            maker = makers.get(value)
            if maker is not None and maker not in active and is_pure(maker):
                active.add(maker)
                visit(maker)
        entries.setdefault(op)

    # The rest, if any, goes round in circles, as unknown operations may allow.
    for op in (*effects, *unread, *block.operations[-1:], *block.operations):
        if op not in active:
            active.add(op)
            visit(op)
    return entries
