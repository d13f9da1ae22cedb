"""Operations that the proof assumes to be pure because the traits of their xDSL class say so.

The proof reports such operations as assumptions, like the operations that the caller declares with `register_pure`. The
proof shares this definition with no other package.

    traits_def(Pure()), traits_def(NoMemoryEffect())            assumed to be pure
    traits_def(NoMemoryEffect(), MemoryReadEffect())            an effect
    the same traits on an operation of xDSL or of this project  ignored: `pure_operations.py` decides
    regions, symbols, successors, enclosing operations          ignored: the traits do not describe them
    no operands, without the trait ConstantLike                 ignored: its result may depend on where it is
"""

from __future__ import annotations

from functools import cache

from xdsl import traits
from xdsl.ir import Operation

_BEYOND_OPERANDS = (
    traits.HasAncestor,
    traits.HasParent,
    traits.IsTerminator,
    traits.SymbolOpInterface,
    traits.SymbolTable,
    traits.SymbolUserOpInterface,
)
"""Traits of operations that depend on more than their operands and attributes."""


def is_pure_by_traits(op: Operation) -> bool:
    """Return whether the traits of an operation from another project declare that it is a function of its operands."""
    if not _is_free_of_effects(type(op)) or op.regions or op.successors:
        return False
    return bool(op.operands) or type(op).has_trait(traits.ConstantLike)


@cache
def _is_free_of_effects(kind: type[Operation]) -> bool:
    if kind.__module__.split(".")[0] == "xdsl" or kind.__module__.startswith("recompute.dialects."):
        return False
    effects = {type(trait) for trait in kind.traits if isinstance(trait, traits.MemoryEffect)}
    if any(map(kind.has_trait, _BEYOND_OPERANDS)):
        return False
    return bool(effects) and effects <= {traits.Pure, traits.NoMemoryEffect}
