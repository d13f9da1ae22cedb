"""Verify a module before and after each change, and prove that the changed module computes the same results.

Passes and pipelines run through `change_in_place`. Searches (`proved_rewrite.py`) call `verify_module` and
`prove_equal` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from ...dialects.cloning import clone_of
from ...dialects.names import Names
from ...mlir_io.repeated_operations import VerifiedOperations
from ...proof.operations.declarations import registered_pure
from ...proof.operations.pure_traits import is_pure_by_traits
from ...proof.prove import Proof, prove
from ...rules.effects import HIDDEN_STATE
from ...rules.registry import BUILT_IN
from ...support.diagnostics import InvalidOperation, Refusal
from ...support.garbage import no_collection
from ...support.interface import interface_wording, option
from ...support.operations import name_of
from ...support.remarks import Remark, RemarkKind
from ...support.timing import part
from ...transforms.verify import verify_input
from .assumptions import NO_ASSUMPTIONS, Assumptions


@part("verify")
def verify_module(module: ModuleOp, verified: VerifiedOperations | None = None) -> None:
    """Run xDSL's verifier, and check dominance and the `recompute.` attributes. Raises `Refusal` at the first invalid
    operation.

    `verified`: operations that have been verified before. An operation that equals one of them is skipped; all further
        operations of this module are verified and added.
    """
    # Dominance is checked first, because xDSL's own verifier assumes it.
    try:
        verify_input(module)
    except Refusal as error:
        raise InvalidOperation(error.operation, error.reason) from error
    try:
        (verified or VerifiedOperations()).verify(module)
    except Exception:
        # Some xDSL operations raise exceptions other than `VerifyException`; all of them mean an invalid module.
        _raise_at_operation(module)
        raise


def _raise_at_operation(module: ModuleOp) -> None:
    """Raise `Refusal` at the invalid operation, whose position xDSL's error does not contain."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except Exception as error:
            cause = error.__cause__ or error
            raise InvalidOperation(op, f"{name_of(op)}: {' '.join(str(cause).split())}") from error


Change = Callable[[ModuleOp], None]


class NotProved(DiagnosticException):
    """The error for a rewrite that is not proved equal to its input; `proof.reason` names the first difference."""

    def __init__(self, proof: Proof, message: str):
        self.proof = proof
        super().__init__(message)


@no_collection()
def change_in_place(
    module: ModuleOp,
    changes: Iterable[Change],
    verify: bool = True,
    proof: bool = True,
    original: ModuleOp | None = None,
    assumptions: Assumptions = NO_ASSUMPTIONS,
) -> Proof | None:
    """Change the module in place, and prove that it still computes the same results.

    Args:
        module: The module to change.
        changes: The functions that change it, in execution order.
        verify: Whether to verify the module before and after each change.
        proof: Whether to prove that the result equals the original.
        original: A copy of the current module for the proof; if None, a copy is made.
        assumptions: The assumptions that the user's options request.

    Returns:
        The proof; None if there are no changes, or if `proof` is false.

    Raises:
        Refusal: If the module does not verify, before or after a change.
        NotProved: If the result is not proved equal.
    """
    verified = VerifiedOperations()
    if verify:
        verify_module(module, verified)
    listed = list(changes)
    before = (original or clone_of(module)) if listed and proof else None
    for change in listed:
        change(module)
        if verify:
            verify_module(module, verified)
    return None if before is None else prove_equal(before, module, assumptions)


def assumption_remarks(proof: Proof, module: ModuleOp) -> list[Remark]:
    """Return remarks on the assumptions on which the proof depends."""
    return [Remark(module, assumption, RemarkKind.ANALYSIS) for assumption in proof.assumptions]


@no_collection()
@part("prove")
def prove_equal(before: ModuleOp, after: ModuleOp, assumptions: Assumptions = NO_ASSUMPTIONS) -> Proof:
    """Prove that a rewritten module computes the same results as the original one.

    Args:
        before, after: The modules.
        assumptions: The assumptions that the user's options request. Assumptions that `before` declares are added.

    Raises:
        NotProved: If the result is not proved equal.
    """
    proof = prove(before, after, assumptions.proof_options(before))
    if not proof.proved:
        consequence = interface_wording("nothing is written", "nothing is returned")
        remedy = interface_wording("--no-proof writes it anyway", "proof=False returns it anyway")
        raise NotProved(
            proof,
            f"{consequence}: the result is not proved equal to the input: {proof.reason} "
            f"{_undeclared_purity_hint(after)}{_redrawn_numbers_hint(after)}({remedy})",
        )
    return proof


def _redrawn_numbers_hint(module: ModuleOp) -> str:
    """Return a hint that names the copied random operations; "" if there are none. They draw different numbers from
    their originals.
    """
    copied = {name_of(op) for op in module.walk() if Names.COPY in op.attributes}
    names = ", ".join(sorted(copied & HIDDEN_STATE))
    return f"({option('preserve-rng-state')} is false: copies of {names} draw different numbers) " if names else ""


def _undeclared_purity_hint(module: ModuleOp) -> str:
    """Return a hint that names the copied operations that are declared pure for the passes but not for the proof; "" if
    there are none."""
    copied = {name_of(op) for op in module.walk() if Names.COPY in op.attributes and not is_pure_by_traits(op)}
    names = ", ".join(sorted(copied - BUILT_IN.keys() - registered_pure()))
    if not names:
        return ""
    return f"(the proof assumes effects of {names}: declare it pure with recompute.proof.register_pure) "
