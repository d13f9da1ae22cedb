"""The explanation of a step as data: its segments, loops and operation counts, and each value saved for the backward
pass.

`driver/inspection/explain_function.py` collects this data, and `-t explain{format=json}` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..memory.timeline import Timeline
from .loop_rows import LoopRow
from .operation_counts import OperationCounts
from .saved_values import SavedValue


@dataclass(frozen=True)
class SegmentRow:
    """A segment instance and the effect of recomputing it.

    Attributes:
        segment, position: The name of the segment in the module, and the source position of its first operation.
        name: The name by which the user can find the segment in the model.
        operations: The number of operations.
        saved_bytes: Bytes of the forward values that the segment saves for the backward pass.
        copies, tokens, gates: The numbers of copies, tokens and gates that recomputation needs.
        freed_bytes, pinned_bytes: Bytes of temporaries that recomputation frees, and bytes of the values that it keeps
            live to compute the copies.
        extra_flops, extra_cost: The additional work, in FLOPs and in the unit of the cost model.
        reason: The reason that the segment is not recomputed; None if it is recomputed.
    """

    segment: str
    position: str
    name: str
    operations: int
    saved_bytes: int
    copies: int
    tokens: int
    gates: int
    freed_bytes: int
    pinned_bytes: int
    extra_flops: int
    extra_cost: float
    reason: str | None


@dataclass(frozen=True)
class Explanation:
    """The explanation of one step.

    Attributes:
        function: The name of the function.
        timeline: The live bytes at each operation, in program order.
        eager_peak_bytes: The peak of an executor that starts each operation as soon as its operands exist.
        xla_peak_bytes: The peak of temporaries under the memory model `xla`.
        residuals: The number of saved values.
        saved_bytes: Bytes of the forward values that the backward pass reads, inside and outside segments.
        saved_outside_bytes: The part of `saved_bytes` outside segments.
        step_flops: The FLOPs of the step, over all iterations of its loops.
        cost: The name of the cost model.
        cost_unit: The unit of `step_cost` and of the `extra_cost` of segments, by default FLOPs.
        step_cost: The cost of the step according to the cost model; for FLOPs, the same as `step_flops`.
        segments: The segments, each with its memory and its extra work.
        operations: The numbers of operations by purpose.
        values: The saved values.
        loops: The loops that write stacks for later loops.
        measured_bytes: The temporaries of the plain step as the compiler reports them; None if it was not compiled.
        place: The location of a step that is only a part of the function, such as `inside the loop at train.py:17:12`;
            "" if the step is the whole function.
    """

    function: str
    timeline: Timeline = field(repr=False)
    eager_peak_bytes: int
    xla_peak_bytes: int
    residuals: int
    saved_bytes: int
    saved_outside_bytes: int
    step_flops: int
    cost: str
    cost_unit: str
    step_cost: float
    segments: tuple[SegmentRow, ...] = field(repr=False)
    operations: OperationCounts
    values: tuple[SavedValue, ...] = field(repr=False)
    loops: tuple[LoopRow, ...] = field(default=(), repr=False)
    measured_bytes: int | None = None
    place: str = ""
