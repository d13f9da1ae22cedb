"""Rules on pure code: where it stands, how often, in which order, and whether anybody reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..tree import Block, Operation, Program, Value
from ..writing import dictionary_text
from .pure import ENDS, KEPT_WHEN_UNREAD, MAY_FAIL, NAMES, OF_THE_DEVICE, OF_THE_REGION, is_pure

KNOWN_REGIONS = frozenset(name for name in NAMES) | frozenset(
    f"stablehlo.{name}" for name in "all_reduce reduce_scatter".split()
)
"""What is known to run its regions here and for nothing but their results."""


_ENDS = ENDS | frozenset("func.return sdy.return recompute.yield".split())


def is_open(around: Operation, block: Block) -> bool:
    """A block that ends without an end, in an operation that nobody knows: any of its operations may count."""
    last = block.operations[-1] if block.operations else None
    known = around.name in KNOWN_REGIONS or around.name == "func.func"
    return not known and (last is None or (last.name not in _ENDS and bool(last.results)))


def out_of_known_regions(program: Program) -> None:
    for op in program.body.operations:
        _hoist_below(op, known=True)


def out_of_unknown_regions(program: Program) -> None:
    """Out of regions of operations that nobody knows too, as what these regions capture."""
    for op in program.body.operations:
        _hoist_below(op, known=False)


def _hoist_below(around: Operation, known: bool) -> None:
    for block in around.blocks():
        listed: list[Operation] = []
        for op in block.operations:
            _hoist_below(op, known)
            stays = op.name == "builtin.module" or (known and op.name not in KNOWN_REGIONS)
            listed += [] if stays else _hoisted(op, known)
            listed.append(op)
        block.operations = listed


def _hoisted(op: Operation, known: bool) -> list[Operation]:
    """What leaves the regions of the operation."""
    found: list[Operation] = []
    for region in op.regions:
        if len(region) != 1 or is_open(op, region[0]):
            continue
        block = region[0]
        inside = set(block.arguments) | {value for inner in block.operations for value in inner.results}
        kept: list[Operation] = []
        for inner in block.operations:
            if _may_leave(inner, op, inside, known):
                inside.difference_update(inner.results)
                found.append(inner)
            else:
                kept.append(inner)
        block.operations = kept
    return found


def _may_leave(op: Operation, around: Operation, inside: set[Value], known: bool) -> bool:
    names = {inner.name for inner in op.walk()}
    stays = OF_THE_REGION | MAY_FAIL | KEPT_WHEN_UNREAD
    if around.name not in KNOWN_REGIONS:
        stays |= OF_THE_DEVICE
    if not is_pure(op) or names & stays:
        return False
    return not any(value in inside for value in free_values(op))


def free_values(op: Operation) -> Iterator[Value]:
    """What the operation and its regions read from outside."""
    own = {value for inner in op.walk() for value in inner.results if inner is not op}
    own |= {value for inner in op.walk() for block in inner.blocks() for value in block.arguments}
    return (value for inner in op.walk() for value in inner.operands if value not in own)


def without_doubles(program: Program) -> None:
    """Of pure operations that are the same, the first one counts."""
    for op in program.body.operations:
        _merge_below(op, {}, {})


def _merge_below(around: Operation, known: dict[str, Operation], same: dict[Value, Value]) -> None:
    for block in around.blocks():
        seen, kept = dict(known), list[Operation]()
        for op in block.operations:
            for inner in op.walk():
                inner.operands = [same.get(value, value) for value in inner.operands]
            _merge_below(op, {} if op.name in ("func.func", "builtin.module") else seen, same)
            if not is_pure(op) or is_open(around, block):
                kept.append(op)
                continue
            first = seen.setdefault(_key(op), op)
            if first is op:
                kept.append(op)
            else:
                same.update(zip(op.results, first.results, strict=True))
        block.operations = kept


def _key(op: Operation) -> str:
    """The operation as text; what it reads from outside by identity."""
    names: dict[Value, str] = {}

    def spelt(one: Operation) -> Iterator[str]:
        yield one.name
        yield ",".join(names.get(value, f"outside {id(value)}") for value in one.operands)
        yield dictionary_text(dict(sorted(one.properties.items())))
        yield dictionary_text(dict(sorted(one.attributes.items())))
        yield ",".join(value.type for value in one.results)
        for region in one.regions:
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
    for op in program.module.walk():
        for block in op.blocks():
            if op is not program.module and not is_open(op, block):
                kept = [one for one in block.operations if not _is_unread(one, read)]
                dropped = dropped or len(kept) < len(block.operations)
                block.operations = kept
    return dropped


def _is_unread(op: Operation, read: set[Value]) -> bool:
    if not is_pure(op) or any(inner.name in KEPT_WHEN_UNREAD for inner in op.walk()):
        return False
    return not any(value in read for value in op.results)


def in_order_of_need(program: Program) -> None:
    """Pure operations right before the first effect, end or other pure operation that needs them, depth first."""
    # Inside first: what a region reads from outside is needed in the order in which it reads it.
    for op in reversed(list(program.module.walk())):
        for block in op.blocks():
            if op is not program.module and not is_open(op, block):
                block.operations = list(_ordered(block))


def _ordered(block: Block) -> Iterable[Operation]:
    makers = {value: op for op in block.operations for value in op.results}
    read = {value for op in block.operations for inner in op.walk() for value in inner.operands}
    effects = [op for op in block.operations[:-1] if not is_pure(op)]
    unread = [op for op in block.operations[:-1] if not any(value in read for value in op.results)]
    done: dict[Operation, None] = {}
    active: set[Operation] = set()

    def visit(op: Operation) -> None:
        for value in free_values(op):
            maker = makers.get(value)
            if maker is not None and maker not in active and is_pure(maker):
                active.add(maker)
                visit(maker)
        done.setdefault(op)

    # The rest, if any, goes round in circles, as unknown operations may allow.
    for op in (*effects, *unread, *block.operations[-1:], *block.operations):
        if op not in active:
            active.add(op)
            visit(op)
    return done
