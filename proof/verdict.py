"""Verdict of a proof, and proofs by identical text."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr

from ..mlir_io.printer import print_module
from ..support.operations import every_operation
from .first_difference import Difference


@dataclass(frozen=True)
class Proof:
    """Verdict of the comparison of two programs; true if they are proved equal.

    Attributes:
        proved: Whether the programs are proved equal.
        reason: The reason that there is no proof; empty if there is one.
        where: The compared value that differs, as in `result #3 of @main`, if the programs are comparable.
        difference: The path from that value to the first difference.
        results: Number of results that were compared.
        operations_before: Number of operations of the first program.
        operations_after: Number of operations of the second program.
        assumed_pure: Operations that the proof treats as pure only because the user declares them so.
        identical: Whether the proof rests only on identical text.
        tier: 2 if the rules for loops were applied, with or without success, otherwise 1.
        added_constraints: Number of sharding constraints that only the second program has, assumed to change no value.
        flattened_results: Number of results that are tuples in one program and their elements in the other.
        composites: Composites that one program contains and the other program has decomposed.
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
        """Unverified assumptions on which the proof rests, as sentences."""
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
    """Return whether both modules have identical generic text, resources included."""
    # Clone both: a clone does not keep the names of blocks, and one of the two may be a clone.
    texts = [print_module(module.clone(), generic=True) for module in (before, after)]
    return texts[0] == texts[1]


def proof_of_identity(module: ModuleOp) -> Proof:
    """Return the proof for two programs with identical text. It holds for any operations, known or not."""
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
