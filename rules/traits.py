"""Operations whose xDSL class declares, by its traits, that they have no effects.

    @irdl_op_definition
    class Act(IRDLOperation):
        name = "acme.act"
        traits = traits_def(Pure())         the same as register("acme.act", pure())

Traits are used only for operations of other projects. For the dialects of xDSL and of this project, the tables of this
package apply instead, because the traits describe whether an operation may be erased rather than repeated:
`shard.all_reduce`, for example, is `Pure`.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import (
    ConstantLike,
    HasAncestor,
    HasParent,
    IsTerminator,
    MemoryEffect,
    NoMemoryEffect,
    SymbolOpInterface,
    SymbolTable,
    SymbolUserOpInterface,
)

_OWN = ("xdsl.", "recompute.dialects.")
_SYMBOLS = (SymbolOpInterface, SymbolTable, SymbolUserOpInterface)


def is_declared_pure(op: Operation) -> bool:
    """Return whether the traits of the operation's class declare it to be a function of its operands."""
    return _has_no_effects(type(op)) and why_trait_ignored(op) is None


def why_trait_ignored(op: Operation) -> str | None:
    """Return the reason why `Pure` or `NoMemoryEffect` does not suffice for the operation. Return None if it suffices,
    or if the operation has neither trait."""
    kind = type(op)
    if not _has_no_effects(kind):
        return None
    if op.regions:
        return "it has regions, whose effects the trait does not describe"
    if any(kind.has_trait(trait) for trait in _SYMBOLS):
        return "it defines or uses a symbol"
    if kind.has_trait(IsTerminator) or op.successors:
        return "it is a terminator"
    if kind.has_trait(HasParent) or kind.has_trait(HasAncestor):
        return "it may depend on the operation that contains it"
    if not op.operands and not kind.has_trait(ConstantLike):
        return "it has no operands, but its class lacks the trait ConstantLike"
    return None


@cache
def _has_no_effects(kind: type[Operation]) -> bool:
    """Return whether the class belongs to another project and has memory-effect traits, all of which exclude
    effects."""
    if kind.__module__.startswith(_OWN):
        return False
    effects = [trait for trait in kind.traits if isinstance(trait, MemoryEffect)]
    return bool(effects) and all(isinstance(trait, NoMemoryEffect) for trait in effects)
