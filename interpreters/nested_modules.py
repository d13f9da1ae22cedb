"""The proof for files of several modules: `module { … } module { … }`, and modules inside of modules.

Each inner module is a program of its own: symbols are looked up in the module around them. The program before and the
program after are equal if their inner modules are equal in pairs, in order, and what is around them is equal too; there
an inner module counts with its name and its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from .operation_parts import without_ours
from .proof import Proof, proof_of_identity, same_text

Prove = Callable[[ModuleOp, ModuleOp], Proof]
_STAND_IN = "recompute_proof.inner_module"


def inner_modules(module: ModuleOp) -> list[ModuleOp]:
    """Return the modules at the top level of a module."""
    return [op for op in module.ops if isinstance(op, ModuleOp)]


def named_modules(module: ModuleOp, prefix: str = "") -> Iterator[tuple[str, ModuleOp]]:
    """Yield the modules that have functions, each with the prefix of their names: `inner::`, or `0::` without a
    name."""
    if any(isinstance(op, FuncOp) for op in module.ops):
        yield prefix, module
    for number, inner in enumerate(inner_modules(module)):
        yield from named_modules(inner, f"{prefix}{inner.sym_name.data if inner.sym_name else number}::")


def modules_with_functions(module: ModuleOp) -> list[ModuleOp]:
    """Return the module and the modules inside of it, of those the ones that have functions; the module alone if none
    has."""
    return [named for _, named in named_modules(module)] or [module]


def prove_with_inner_modules(before: ModuleOp, after: ModuleOp, prove: Prove) -> Proof:
    """Prove two programs equal, inner modules in pairs. `prove`: the proof for modules without inner ones."""
    inner_before, inner_after = inner_modules(before), inner_modules(after)
    if not inner_before and not inner_after:
        return prove(before, after)
    if len(inner_before) != len(inner_after):
        counts = f"{len(inner_before)} before, {len(inner_after)} after"
        return Proof(False, f"the number of inner modules differs: {counts}")
    proofs = list[Proof]()
    for number, (one_before, one_after) in enumerate(zip(inner_before, inner_after, strict=True)):
        proof = prove_with_inner_modules(one_before, one_after, prove)
        if not proof:
            return Proof(False, f"in {_title(one_before, number)}: {proof.reason}", proof.where, proof.difference)
        proofs.append(proof)
    outside = _prove_outside(_without_inner_modules(before), _without_inner_modules(after), prove)
    return outside if not outside else _together([outside, *proofs])


def _title(module: ModuleOp, number: int) -> str:
    return f"inner module {number + 1}" if module.sym_name is None else f"module @{module.sym_name.data}"


def _prove_outside(before: ModuleOp, after: ModuleOp, prove: Prove) -> Proof:
    if any(isinstance(op, FuncOp) for module in (before, after) for op in module.ops):
        return prove(before, after)
    if same_text(before, after):
        return proof_of_identity(before)
    return Proof(False, "a name or an attribute of a module differs, or what is around the inner modules")


def _without_inner_modules(module: ModuleOp) -> ModuleOp:
    """Return a copy with an operation in the place of each inner module, which has its name and its attributes."""
    copy = module.clone()
    for inner in inner_modules(copy):
        stand_in = UnregisteredOp.with_name(_STAND_IN).create(attributes=dict(_attributes(inner)))
        block = inner.parent
        assert block is not None, "an inner module lies in a block"
        block.insert_op_before(stand_in, inner)
        inner.detach()
        inner.erase()
    return copy


def _attributes(module: Operation) -> Iterator[tuple[str, Attribute]]:
    # Under names that have no meaning: an attribute `sym_name` would make the operation a symbol.
    yield from ((f"property.{name}", attribute) for name, attribute in module.properties.items())
    yield from ((f"attribute.{name}", attribute) for name, attribute in without_ours(module.attributes).items())


def _together(proofs: list[Proof]) -> Proof:
    return Proof(
        True,
        "",
        results=sum(proof.results for proof in proofs),
        operations_before=sum(proof.operations_before for proof in proofs),
        operations_after=sum(proof.operations_after for proof in proofs),
        believed=tuple(sorted({name for proof in proofs for name in proof.believed})),
        identical=all(proof.identical for proof in proofs),
        tier=max(proof.tier for proof in proofs),
        added_constraints=sum(proof.added_constraints for proof in proofs),
    )
