"""The data of a report: `ReportData`, and the records that it contains, each about one subject such as memory needs or
saved values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ....analysis.explain.saved_values import SavedValue
from ....analysis.memory.timeline import Timeline
from ....reports.by_module import ModuleNames, ModuleRow
from ....search.budget.compiled_candidate import CompiledCandidate
from ....support.remarks import Remark
from ..compilation.variants import Variant
from ..messages.why_plain import PlainReason
from .donation import Donation
from .fit_verdict import FitVerdict
from .redrawn_bits import RedrawnBits


@dataclass(frozen=True)
class Needs:
    """The memory of a compiled step, as the compiler reports it, and the work of the step.

    Attributes:
        temporaries: The bytes of temporaries; None if the compiler reports no sizes.
        arguments: The bytes of arguments.
        results: The bytes of results.
        aliased: The bytes of results that share buffers with arguments.
        flops: The FLOPs of one run, as in the table of the report: for a step with loops, `LoopFacts.executed_flops`,
            otherwise the count of the compiler; None if it reports none.
    """

    temporaries: int | None
    arguments: int
    results: int
    aliased: int
    flops: float | None

    @property
    def device_bytes(self) -> int | None:
        """The bytes on the device while the step runs: temporaries, arguments and results; None if unknown."""
        if self.temporaries is None:
            return None
        return self.temporaries + self.arguments + self.results - self.aliased


@dataclass(frozen=True)
class RecomputedOperations:
    """The operations that the step recomputes.

    Attributes:
        count: The number of copies of operations in the rewritten step.
        by_module: The number of copies in the step that runs, for each module of the model, the largest number
            first. If the model has no named modules, copies are counted by segment. The sum is below `count` if some
            copies are simplified away.
        draws: The random bits that copies draw again for masks; None if there are none.
    """

    count: int = 0
    by_module: tuple[tuple[str, int], ...] = ()
    draws: RedrawnBits | None = None


@dataclass(frozen=True)
class StoredValues:
    """The values that are stored for the backward pass, and the memory over time.

    Attributes:
        saved: The values that are still saved for the backward pass, the largest first.
        modules: The bytes that are saved and recomputed, by module of the model. For a step inside a loop, they are
            counted for one iteration.
        timelines: The live bytes over time before and after the rewrite, under the XLA:CPU model; for each step inside
            a loop, also the live bytes in one iteration.
        is_per_device: Whether all bytes are counted for one device; otherwise, they are counted for whole arrays.
    """

    saved: tuple[SavedValue, ...] = ()
    modules: tuple[ModuleRow, ...] = ()
    timelines: tuple[tuple[str, Timeline], ...] = ()
    is_per_device: bool = True


@dataclass(frozen=True)
class ModelParts:
    """The modules of the model, and the segments of the rewrite.

    Attributes:
        names: The names of the modules.
        segments: For each segment by structure, its modules, or the line of its first operation.
        branch_advice: The advice on conditionals whose branches return residuals; "" if it does not apply.
    """

    names: ModuleNames = field(default_factory=ModuleNames)
    segments: tuple[tuple[str, tuple[str, ...]], ...] = ()
    branch_advice: str = ""


@dataclass(frozen=True)
class LoopFacts:
    """The loops of the step.

    Attributes:
        has_loops: Whether the step has loops that compute floating-point numbers. The compiler counts the body of each
            loop once.
        positions: The positions of steps inside loops.
        executed_flops: For a step with such loops, the FLOPs of the plain step and of the step that runs, counted in
            their programs with all iterations of each loop; None if there are no such loops, or if the step keeps its
            own barriers.
    """

    has_loops: bool = False
    positions: tuple[str, ...] = ()
    executed_flops: tuple[int, int] | None = None


@dataclass(frozen=True)
class BudgetSearch:
    """The caller's budget, and the search for a plan within it.

    Attributes:
        limit_bytes: The bytes on each device that the budget allows; without a budget, the memory of the device, or
            None if it is unknown.
        text: The budget as the caller wrote it; "" if there is no budget.
        candidates: The candidates that were compiled in the search.
        refused: The reason why no plan is within the budget; "" if a plan was found, or if there is no budget.
        is_minimum: Whether the step that runs is the result of the budget `min`.
        is_complete: Whether the search was completed, not stopped by a time limit or Ctrl-C.
        temporaries_limit: The bytes that the budget leaves for temporaries; None if there was no search, or for the
            budget `min`.
    """

    limit_bytes: int | None = None
    text: str = ""
    candidates: tuple[CompiledCandidate, ...] = ()
    refused: str = ""
    is_minimum: bool = False
    is_complete: bool = True
    temporaries_limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """A comparison of the step that a call runs with the plain step: the data of a report.

    The properties `copies`, `copies_by_module`, `kept`, `modules` and `timelines` are shortcuts to parts of
    `recomputed` and `stored`.

    Attributes:
        name: The name of the step.
        plain: The memory and the work of the plain step.
        chosen: The memory and the work of the step that runs.
        variant: The variant of the step that runs.
        measured: The temporaries, in bytes, of each variant that was compiled for the choice; empty if only one was
            compiled.
        plain_reason: The reason that nothing is recomputed, and a remedy; None if operations are recomputed.
        proved: Whether the step that runs is proved equal to the plain step.
        remarks: The remarks of the rewrite.
        recomputed: The recomputed operations: `count` and `by_module`.
        stored: The values that are stored for the backward pass: `saved`, `modules` and `timelines`.
        model: The modules of the model, and the segments of the rewrite.
        loops: Whether the step has loops, and its FLOPs over all iterations.
        search: The budget and the search for a plan within it: `limit_bytes`, `candidates` and `refused`.
        devices: The number of devices on which the step runs. Bytes and FLOPs are counted for one device.
        fit: For reports of `recompute.jax.explain`, whether the step fits; None for other reports.
        donation: The arguments whose donation would reduce memory; None if there are no such arguments.
    """

    name: str
    plain: Needs
    chosen: Needs
    variant: Variant
    measured: tuple[tuple[Variant, int | None], ...]
    plain_reason: PlainReason | None
    proved: bool
    remarks: tuple[Remark | str, ...]
    recomputed: RecomputedOperations
    stored: StoredValues
    model: ModelParts
    loops: LoopFacts
    search: BudgetSearch
    devices: int = 1
    fit: FitVerdict | None = None
    donation: Donation | None = None

    @property
    def why(self) -> str | None:
        """The message with the reason that nothing is recomputed, and a remedy; None if operations are recomputed."""
        return None if self.plain_reason is None else str(self.plain_reason)

    @property
    def copies(self) -> int:
        """The number of copies of operations in the rewritten step."""
        return self.recomputed.count

    @property
    def copies_by_module(self) -> tuple[tuple[str, int], ...]:
        """The number of copies in each module, the largest first."""
        return self.recomputed.by_module

    @property
    def kept(self) -> tuple[SavedValue, ...]:
        """The values that are still saved for the backward pass, the largest first."""
        return self.stored.saved

    @property
    def modules(self) -> tuple[ModuleRow, ...]:
        """The bytes that are saved and recomputed, by module of the model."""
        return self.stored.modules

    @property
    def timelines(self) -> tuple[tuple[str, Timeline], ...]:
        """The live bytes over time, before and after the rewrite."""
        return self.stored.timelines

    @property
    def flops(self) -> tuple[float | None, float | None]:
        """The FLOPs of the plain step and of the step that runs, `plain.flops` and `chosen.flops`."""
        return self.plain.flops, self.chosen.flops
