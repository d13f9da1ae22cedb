"""The verdict of a proof, and proofs by identical text."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr

from ..mlir_io.printer import print_module
from ..support.operations import every_operation
from .first_difference import Difference


@dataclass(frozen=True)
class Proof:
    """The verdict, the reason if there is no proof, and the sizes of the compared programs.

    `where` names the result (`result #3 of @main`) and `difference` the path from it to the first difference, if the
    programs are comparable. `believed`: operations that only the user declares to be pure. `identical`: proved by
    identical text alone. `tier`: 2 if the rules for loops were applied, with or without success. `added_constraints`:
    number of sharding constraints that only the program after has, and that are assumed not to change values.
    `flattened_results`: number of results that are tuples in one program and their elements in the other. `composites`:
    the composites of one program that the other has decomposed.
    """

    proved: bool
    reason: str
    where: str = ""
    difference: Difference | None = None
    results: int = 0
    operations_before: int = 0
    operations_after: int = 0
    believed: tuple[str, ...] = ()
    identical: bool = False
    tier: int = 1
    added_constraints: int = 0
    flattened_results: int = 0
    composites: tuple[str, ...] = ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions beside the rules of the proof, as sentences."""
        sentences = list[str]()
        if self.believed:
            sentences.append(f"assuming, unverified, that these operations are pure: {', '.join(self.believed)}")
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
    """Return whether the generic text of both modules, resources included, is identical."""
    # Clone both: a clone does not keep the names of blocks, and one of the two may be a clone.
    texts = [print_module(module.clone(), generic=True) for module in (before, after)]
    return texts[0] == texts[1]


def proof_of_identity(module: ModuleOp) -> Proof:
    """Return the proof for two programs with identical text, whatever they hold."""
    results = 0
    for op in module.ops:
        type_, visibility = op.properties.get("function_type"), op.properties.get("sym_visibility")
        if isinstance(type_, FunctionType) and visibility != StringAttr("private"):
            results += len(type_.outputs)
    return Proof(True, "", "", None, results, size(module), size(module), identical=True)


def size(module: ModuleOp) -> int:
    """Return the number of operations in a module."""
    return len(every_operation(module)) - 1
