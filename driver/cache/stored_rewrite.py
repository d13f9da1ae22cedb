"""The stored form of a rewrite in the disk cache.

The proof of a stored rewrite is not repeated, since the rewrite was proved before it was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from ...planning.plan_file import StepPlan, from_json
from ...proof.verdicts.verdict import Proof
from ...support.diagnostics import UNKNOWN, place_of, position_of
from ...support.remarks import Remark, RemarkKind, Topic
from ..rewrites.rewritten import Rewritten


@dataclass(frozen=True)
class RewriteRecord:
    """A rewrite without its modules. The caller stores the modules separately.

    Attributes:
        plans: The text of the plans, as in `Rewritten.plan_text`.
        remarks: The remarks of the rewrite.
        proof: The successful proof; None for a rewrite without a proof.
        copies: The number of copies of operations.
        extra_flops: The FLOPs of the copies.
        spelling: The result of `spelling_of` for the rewritten module; None without copies.
        saving: The predicted reduction of the peak, as a share of the original peak; None without copies.
    """

    plans: str
    remarks: tuple[Remark, ...]
    proof: Proof | None
    copies: int
    extra_flops: int
    spelling: Mapping[str, Any] | None
    saving: float | None

    @classmethod
    def of(cls, rewritten: Rewritten) -> RewriteRecord:
        """Return the record to store for a rewrite. The rewrite must be proved, unless its options disable the
        proof."""
        assert rewritten.proof is None or rewritten.proof.proved, "only rewrites whose proof succeeded are stored"
        return cls(
            plans=rewritten.plan_text,
            remarks=rewritten.remarks,
            proof=rewritten.proof,
            copies=rewritten.copies,
            extra_flops=rewritten.extra_flops,
            spelling=spelling_of(rewritten.module) if rewritten.copies else None,
            saving=rewritten.predicted_saving if rewritten.copies else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as values that JSON can represent."""
        return {
            "plans": self.plans,
            "remarks": [remark_to_json(remark) for remark in self.remarks],
            "proof": None if self.proof is None else _proof_to_json(self.proof),
            "copies": self.copies,
            "extra_flops": self.extra_flops,
            "spelling": self.spelling,
            "saving": self.saving,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> RewriteRecord:
        """Return the record that values from `to_json` describe."""
        return cls(
            plans=record["plans"],
            remarks=tuple([remark_from_json(remark) for remark in record["remarks"]]),
            proof=None if record["proof"] is None else _proof_from_json(record["proof"]),
            copies=record["copies"],
            extra_flops=record["extra_flops"],
            spelling=record["spelling"],
            saving=record["saving"],
        )


class StoredRewrite(Rewritten):
    """A rewrite that was read from the cache. Its modules and plans are parsed when they are first used."""

    def __init__(
        self, record: RewriteRecord, read_module: Callable[[], ModuleOp], read_original: Callable[[], ModuleOp]
    ):
        """Construct the rewrite that a cache record describes.

        Args:
            record: The record.
            read_module: Returns the rewritten module.
            read_original: Returns the module that was rewritten.
        """
        # The base class is frozen, and its constructor would also set `module`, `plans` and `_original`.
        for name, value in (
            ("remarks", record.remarks),
            ("proof", record.proof),
            ("copies", record.copies),
            ("extra_flops", record.extra_flops),
            ("_saving", record.saving),
            ("_plan_text", record.plans),
            ("_read_module", read_module),
            ("_read_original", read_original),
        ):
            object.__setattr__(self, name, value)

    _plan_text: str
    _read_module: Callable[[], ModuleOp]
    _read_original: Callable[[], ModuleOp]

    @cached_property
    def module(self) -> ModuleOp:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The rewritten module."""
        return self._read_module()

    @cached_property
    def plans(self) -> tuple[StepPlan, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The plans of the steps."""
        return from_json(self._plan_text)

    @cached_property
    def _original(self) -> ModuleOp:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._read_original()


def _proof_to_json(proof: Proof) -> dict[str, Any]:
    """Return a successful proof as values that JSON can represent. Such a proof has no difference to store."""
    return {
        "reason": proof.reason,
        "where": proof.where,
        "results": proof.results,
        "operations_before": proof.operations_before,
        "operations_after": proof.operations_after,
        "assumed_pure": list(proof.assumed_pure),
        "identical": proof.identical,
        "tier": proof.tier,
        "added_constraints": proof.added_constraints,
        "flattened_results": proof.flattened_results,
        "composites": list(proof.composites),
    }


def _proof_from_json(record: Mapping[str, Any]) -> Proof:
    return Proof(
        proved=True,
        reason=record["reason"],
        where=record["where"],
        results=record["results"],
        operations_before=record["operations_before"],
        operations_after=record["operations_after"],
        assumed_pure=tuple(record["assumed_pure"]),
        identical=record["identical"],
        tier=record["tier"],
        added_constraints=record["added_constraints"],
        flattened_results=record["flattened_results"],
        composites=tuple(record["composites"]),
    )


def spelling_of(module: ModuleOp) -> dict[str, Any]:
    """Return the details of a module's text that are lost when MLIR reads and prints it: the order of attributes, and
    the names of values.

    Both are tables of distinct entries, with an index into the table for each operation or value in program order.
    """
    orders = dict[tuple[str, ...], int]()
    names = dict[str | None, int]()
    order_of = [orders.setdefault(tuple(op.attributes), len(orders)) for op in module.walk()]
    name_of = [names.setdefault(value.name_hint, len(names)) for value in _values(module)]
    return {"orders": list(map(list, orders)), "order_of": order_of, "names": list(names), "name_of": name_of}


def respell(module: ModuleOp, spelling: Mapping[str, Any]) -> ModuleOp:
    """Restore the attribute order and the value names that `spelling_of` has recorded, and return the module."""
    for op, number in zip(module.walk(), spelling["order_of"], strict=True):
        op.attributes = {name: op.attributes[name] for name in spelling["orders"][number]}
    for value, number in zip(_values(module), spelling["name_of"], strict=True):
        value.name_hint = spelling["names"][number]
    return module


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    """Yield all values of a module: the results of each operation, and the arguments of its blocks."""
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def remark_to_json(remark: Remark) -> list[Any]:
    """Return a remark as a list: position, reason, kind, topic, place, function, amounts, segments, and
    whether recomputation would free no memory.

    If the position is unknown, the place names the function and the operation.
    """
    operation = remark.operation
    facts = position_of(operation), remark.reason, remark.kind.value, remark.topic.value, place_of(operation)
    return [*facts, remark.function, remark.amounts, remark.segments, remark.frees_nothing]


def remark_from_json(record: Sequence[Any]) -> Remark:
    """Return the remark that a list from `remark_to_json` describes. Its operation is an empty module at the stored
    position."""
    position, reason, kind, topic, place, function, amounts, segments, frees_nothing = record
    module = ModuleOp([])
    if position != UNKNOWN:
        file, line, column = position.rsplit(":", 2)
        module.location = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(int(column)))
    pairs = tuple([(name, amount) for name, amount in amounts])
    return Remark(
        operation=module,
        reason=reason,
        kind=RemarkKind(kind),
        topic=Topic(topic),
        place=place,
        function=function,
        amounts=pairs,
        segments=tuple(segments),
        frees_nothing=frees_nothing,
    )
