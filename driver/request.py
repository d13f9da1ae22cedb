"""What a rewrite is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from xdsl.dialects.builtin import ModuleOp

from ..analysis.request.loop_schedule import Loops
from ..analysis.request.segment_budgets import spelled
from ..analysis.request.selection import AUTO, Selection
from ..planning.objective import ATTEMPTS
from ..planning.plan_file import StepPlan
from ..rules.costs.cost import FLOPS
from ..transforms.clone import Planner
from .pipeline import Pipeline


@dataclass(frozen=True)
class Request:
    """What is to be recomputed, and for whom it is written: the options of the pass `recompute`.

    selection: segments, policies, names; see `Selection`. copies: at most so many of one operation. target: as in
    `recompute-lower`. stagger: hold the forward pass back too. calls: functions are called again where nothing in them
    was changed. plan: carry out this one, of an earlier run or written by hand, as text or as read. planner: ask this
    function for the plan of each step, Graph -> Plan. budget: `8GiB` of the device, `50%` or `0.5` of the plain step's
    temporaries, or `min`, at the least extra work; else a `Refusal`, with the proven minimum where there is one. At
    most one of these three. memory_model: what the budget counts, order or xla; as the target has it if nothing is
    said: `none` keeps program order. strict: a step that stays as it is is an error. attempts: so many ways to cut and
    copy a step are tried on paper. measure: bytes that a module needs, by whoever can compile it; every attempt is
    written and measured then, and the least is what comes back; of equals that which needs fewer FLOPs. workers: so
    many are measured at a time. proof: prove the result equal. merge_remat: take back what the step's own
    `jax.checkpoint` computes again, first of all. loops: cut what loops hand on to later loops; "keep(50%)",
    "keep(2GiB)": so much of it is kept, at the least work; "periodic(8)", "periodic(auto)": carries are kept every so
    many iterations. segment_budgets: `{"layer*": "30%", "head": "8MiB"}`, for `Selection.segment_budgets`, beside a
    budget or without one; whole numbers are bytes, others shares. cost: what a budget keeps low and remarks report:
    flops, bytes, roofline, "roofline(h100)", or a file of costs; `Refusal` for others. offload: "marked" moves to the
    host what is marked to be offloaded, "auto" or "25GB/s" under a budget also what is cheaper to move. pipeline: these
    passes, by name or as objects, in place of `recompute` and all options of it.
    """

    selection: Selection = AUTO
    copies: int = 2
    target: str = "stablehlo"
    stagger: bool = True
    calls: bool = True
    plan: str | Sequence[StepPlan] | None = None
    planner: Planner | None = None
    budget: str | None = None
    memory_model: str = ""
    strict: bool = False
    attempts: int = ATTEMPTS
    measure: Callable[[ModuleOp], int] | None = None
    workers: int = 1
    proof: bool = True
    merge_remat: bool = False
    loops: Loops = True
    cost: str = FLOPS
    offload: str = ""
    pipeline: Pipeline | None = None
    segment_budgets: Mapping[str, str | float] | None = None

    def folded(self) -> Request:
        """With the budgets of segments among what is selected. Raises `BadSelection`, a `ValueError`."""
        if self.segment_budgets is None:
            return self
        budgets = spelled(self.segment_budgets)
        return replace(self, selection=replace(self.selection, segment_budgets=budgets), segment_budgets=None)

    def beside_pipeline(self) -> str | None:
        """An option that says something besides the pipeline."""
        default = Request(pipeline=self.pipeline, strict=self.strict, proof=self.proof)
        return next((one.name for one in fields(self) if getattr(self, one.name) != getattr(default, one.name)), None)
