"""Prove the equality of programs that contain modules inside modules.

Each inner module is a program of its own, because a symbol is looked up in the module that encloses it. Two programs
are equal if their inner modules are equal pairwise, in order, and all operations outside the inner modules are equal.
In this second comparison, the name and attributes of an inner module represent it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from ..support.nested_modules import inner_modules
from .operations.operation_parts import without_ours
from .verdicts.verdict import Proof, proof_of_identity, same_text

Prove = Callable[[ModuleOp, ModuleOp], Proof]
_STAND_IN = "recompute_proof.inner_module"


def prove_with_inner_modules(before: ModuleOp, after: ModuleOp, prove: Prove) -> Proof:
    """Prove that two programs are equal. Their inner modules are compared in pairs.

    `prove`: proves that two modules without inner modules are equal.
    """
    inner_before, inner_after = inner_modules(before), inner_modules(after)
    if not inner_before and not inner_after:
        return prove(before, after)
    if len(inner_before) != len(inner_after):
        counts = f"{len(inner_before)} before, {len(inner_after)} after"
        return Proof(proved=False, reason=f"the programs have different numbers of inner modules: {counts}")
    proofs = list[Proof]()
    for number, (module_before, module_after) in enumerate(zip(inner_before, inner_after, strict=True)):
        proof = prove_with_inner_modules(module_before, module_after, prove)
        if not proof:
            return Proof(
                proved=False,
                reason=f"in {_description(module_before, number)}: {proof.reason}",
                where=proof.where,
                difference=proof.difference,
            )
        proofs.append(proof)
    outside = _prove_outside(_without_inner_modules(before), _without_inner_modules(after), prove)
    return outside if not outside else _combined_proof([outside, *proofs])


def _description(module: ModuleOp, number: int) -> str:
    return f"inner module {number + 1}" if module.sym_name is None else f"module @{module.sym_name.data}"


def _prove_outside(before: ModuleOp, after: ModuleOp, prove: Prove) -> Proof:
    if any(isinstance(op, FuncOp) for module in (before, after) for op in module.ops):
        return prove(before, after)
    if same_text(before, after):
        return proof_of_identity(before)
    return Proof(
        proved=False,
        reason="the name or an attribute of a module differs, or an operation outside the inner modules",
    )


def _without_inner_modules(module: ModuleOp) -> ModuleOp:
    """Return a copy of the module in which a placeholder operation with the same name and attributes replaces each
    inner module."""
    copy = module.clone()
    for inner in inner_modules(copy):
        stand_in = UnregisteredOp.with_name(_STAND_IN).create(attributes=dict(_attributes(inner)))
        block = inner.parent
        assert block is not None, "an inner module is in a block"
        block.insert_op_before(stand_in, inner)
        inner.detach()
        inner.erase()
    return copy


def _attributes(module: Operation) -> Iterator[tuple[str, Attribute]]:
    # The names get a prefix, because an attribute `sym_name` would make the placeholder a symbol.
    yield from ((f"property.{name}", attribute) for name, attribute in module.properties.items())
    yield from ((f"attribute.{name}", attribute) for name, attribute in without_ours(module.attributes).items())


def _combined_proof(proofs: list[Proof]) -> Proof:
    return Proof(
        proved=True,
        reason="",
        results=sum(proof.results for proof in proofs),
        operations_before=sum(proof.operations_before for proof in proofs),
        operations_after=sum(proof.operations_after for proof in proofs),
        assumed_pure=tuple(sorted({name for proof in proofs for name in proof.assumed_pure})),
        identical=all(proof.identical for proof in proofs),
        tier=max(proof.tier for proof in proofs),
        added_constraints=sum(proof.added_constraints for proof in proofs),
    )
