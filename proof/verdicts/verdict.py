"""The verdict of a proof, and the proof that two programs with identical text are equal."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr

from ...mlir_io.printer import print_module
from ...support.operations import every_operation
from .first_difference import Difference


@dataclass(frozen=True)
class Proof:
    """The verdict on two programs. It is truthy if they are proved equal.

    Attributes:
        proved: Whether the programs are proved equal.
        reason: The reason that the programs are not proved equal; empty if they are.
        where: The value that differs, as in `result #3 of @main`; empty if there is none.
        difference: The first difference, with the path from `where` to it.
        results: Number of results that were compared.
        operations_before: Number of operations of the original program.
        operations_after: Number of operations of the rewritten program.
        assumed_pure: Operations that the proof treats as pure only because the user declares them pure.
        identical: Whether the proof relies only on identical text.
        tier: 2 if the proof applied the rules for loops, successfully or not, else 1.
        added_constraints: Number of sharding constraints that only the rewritten program has, assumed to change no
            value.
        flattened_results: Number of results that are tuples in one program and separate elements in the other.
        composites: Names of the composites in only one program. The other program has their decompositions.
    """

    proved: bool
    reason: str
    where: str = ""
    difference: Difference | None = None
    results: int = 0
    operations_before: int = 0
    operations_after: int = 0
    assumed_pure: tuple[str, ...] = ()
    identical: bool = False
    tier: int = 1
    added_constraints: int = 0
    flattened_results: int = 0
    composites: tuple[str, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The unverified assumptions on which the proof relies, as phrases."""
        sentences = list[str]()
        if self.assumed_pure:
            sentences.append(f"assuming, unverified, that these operations are pure: {', '.join(self.assumed_pure)}")
        if self.added_constraints:
            sentences.append(
                f"assuming, unverified, that added sharding constraints change no value: {self.added_constraints}"
            )
        if self.flattened_results:
            sentences.append(f"assuming that callers take the elements of tuples: {self.flattened_results}")
        if self.composites:
            names = ", ".join(self.composites)
            sentences.append(f"assuming, unverified, that these composites compute their decompositions: {names}")
        return tuple(sentences)

    def __bool__(self) -> bool:
        return self.proved


def same_text(before: ModuleOp, after: ModuleOp) -> bool:
    """Return whether both modules have identical generic text, including resources."""
    # Both are cloned because a clone loses the names of blocks, and one of the two may already be a clone.
    texts = [print_module(module.clone(), generic=True) for module in (before, after)]
    return texts[0] == texts[1]


def proof_of_identity(module: ModuleOp) -> Proof:
    """Return the proof that two programs with identical text are equal. The proof is valid even if the programs contain
    unknown operations.
    """
    results = 0
    for op in module.ops:
        type_, visibility = op.properties.get("function_type"), op.properties.get("sym_visibility")
        if isinstance(type_, FunctionType) and visibility != StringAttr("private"):
            results += len(type_.outputs)
    return Proof(
        proved=True,
        reason="",
        where="",
        difference=None,
        results=results,
        operations_before=size(module),
        operations_after=size(module),
        identical=True,
    )


def size(module: ModuleOp) -> int:
    """Return the number of operations in a module."""
    return len(every_operation(module)) - 1
