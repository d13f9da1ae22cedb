"""Dead code elimination in one sweep, for regions with one block, in which every use follows its definition."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation, Region
from xdsl.traits import IsTerminator, MemoryEffect, NoMemoryEffect, SymbolOpInterface
from xdsl.transforms.dead_code_elimination import region_dce, would_be_trivially_dead

from ..support.operations import every_operation, operations_in


def drop_dead_code(region: Region) -> None:
    """Erase every operation without side effects and without live uses, as xDSL's `region_dce(region)` does."""
    if _is_flat(region):
        _sweep(region)
    else:
        region_dce(region)


def erase_unread(op: Operation) -> None:
    """Erase an operation whose results have no uses. Unlike xDSL, this creates no placeholder for each result."""
    op.detach()
    op.drop_all_references()


def has_dead_code(root: Operation) -> bool:
    """Return whether `drop_dead_code` would erase an operation inside `root`.

    In that case, at least one of the operations to erase has no uses, so it suffices to look for such an operation.
    """
    return any(_is_dead(op) for op in every_operation(root)[1:])


def _is_flat(region: Region) -> bool:
    blocks = list(region.blocks)
    return len(blocks) < 2 and all(
        [_is_flat(inner) for block in blocks for op in operations_in(block) for inner in op.regions]
    )


def _sweep(region: Region) -> None:
    for block in region.blocks:
        op = block.last_op
        while op is not None:
            before = op.prev_op
            if _is_dead(op):
                erase_unread(op)
            else:
                for inner in op.regions:
                    _sweep(inner)
            op = before


def _is_dead(op: Operation) -> bool:
    for result in op.results:
        if result.first_use is not None:
            return False
    return is_erasable(op)


def is_erasable(op: Operation) -> bool:
    """Return whether the operation may be erased if its results are unread: it must have no effects and must not be a
    sharding constraint."""
    return _never_has_effects(type(op)) or would_be_trivially_dead(op)


@cache
def _never_has_effects(kind: type[Operation]) -> bool:
    """Return whether the traits of the class rule out side effects.

    The class must have memory-effect traits, all of which must be `NoMemoryEffect`, and must be neither a terminator
    nor a symbol.
    """
    effects = [trait for trait in kind.traits if isinstance(trait, MemoryEffect)]
    is_free = bool(effects) and all(isinstance(trait, NoMemoryEffect) for trait in effects)
    return is_free and not (kind.has_trait(IsTerminator) or kind.has_trait(SymbolOpInterface))
