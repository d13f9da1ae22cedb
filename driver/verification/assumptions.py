"""The assumptions of the proofs that the driver runs. Only the user's options and the original program can request
assumptions.

Assumptions that the rewritten program declares are ignored: otherwise a faulty rewrite could mark an operation as
repeatable, repeat it, and still be proved equal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.request.slice_activation import shards_saved_values
from ...options.selection import Selection
from ...proof.prove import ProofOptions
from ...support.operations import every_operation
from ...transforms.flatten_tuples import FlattenTuplesPass
from ...transforms.shard_kept import ShardKeptPass


@runtime_checkable
class _HasRepeatable(Protocol):
    """A pass with the option `repeatable`."""

    @property
    def repeatable(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Assumptions:
    """Assumptions that the user's options request.

    Attributes:
        repeatable: Patterns of the targets of custom calls that are functions of their operands.
        added_constraints: Whether added sharding constraints are assumed to change no value, even where the original
            program does not request them by `recompute.recompute_slice_activation`.
        flattened_results: Whether a function may return the elements of a tuple instead of the tuple.
    """

    repeatable: tuple[str, ...] = ()
    added_constraints: bool = False
    flattened_results: bool = False

    @classmethod
    def of_selection(cls, selection: Selection) -> Assumptions:
        """Return the assumptions that the options of a rewrite request."""
        return cls(repeatable=selection.repeatable)

    @classmethod
    def of_passes(cls, passes: Iterable[ModulePass], own_names: Container[str]) -> Assumptions:
        """Return the assumptions that a pipeline requests.

        Three features of this project's passes request assumptions: the option `repeatable`, the pass
        `recompute-shard-kept`, which adds sharding constraints, and the pass `recompute-flatten-tuples`, which flattens
        results. Other passes request nothing.

        `own_names`: the names of this project's passes.
        """
        ours = [each for each in passes if each.name in own_names]
        patterns = chain.from_iterable(each.repeatable for each in ours if isinstance(each, _HasRepeatable))
        return cls(
            tuple(dict.fromkeys(patterns)),
            any(isinstance(each, ShardKeptPass) for each in ours),
            any(isinstance(each, FlattenTuplesPass) for each in ours),
        )

    def proof_options(self, before: ModuleOp) -> ProofOptions:
        """Return the options with which the proof compares rewrites of `before`.

        The options leave out the attributes `recompute.repeatable`, because the proof reads them from the program
        itself."""
        return ProofOptions(
            one_source=True,
            added_constraints=self.added_constraints or any(map(shards_saved_values, every_operation(before))),
            flattened_results=self.flattened_results,
            repeatable=self.repeatable,
        )


NO_ASSUMPTIONS = Assumptions()
