"""The options of a rewrite, as one frozen object that is passed whole.

The pass `recompute`, the command line, `recompute.rewrite`, `recompute.jax.jit` and `recompute.torch` build this
object. Its constructor parses strings and checks each value; `options/conflicts.py` lists the options that exclude one
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..planning.graph import Graph
from ..planning.host_moves import NOTHING_MOVED, Offload
from ..planning.plan import Plan
from ..planning.plan_file import StepPlan, from_option
from ..rules.costs.cost import FLOPS
from ..support.interface import option as spelling
from ..support.suggestions import suggestion
from .loop_schedule import Loops, LoopSchedule, schedule_of
from .memory_model import demand_memory_model
from .offload_option import parse_offload
from .option_facts import EntryPoint, option_facts, option_facts_of
from .segment_budgets import SegmentBudgets, budget_texts
from .selection import AUTO, Selection

ATTEMPTS = 7
"""Default number of plans per step whose peaks are forecast. The XLA:CPU model evaluates only plans that can win."""
Planner = Callable[[Graph], Plan]
"""A function that returns a plan for the graph of a step."""
Pipeline = str | Sequence[str | ModulePass]
"""Passes, as a string of names (`recompute-inline,recompute-mark`) or as objects."""
JIT, TORCH = EntryPoint.JIT, EntryPoint.TORCH
RECOMPUTE_PASS, PLAN_PASS = EntryPoint.RECOMPUTE_PASS, EntryPoint.PLAN_PASS
EMISSION_TARGETS = ("stablehlo", "none")
"""The targets of `recompute-lower`. For tokens, it emits optimization barriers with `stablehlo`, and nothing with
`none`."""


@dataclass(frozen=True)
class Emission:
    """The form of the rewritten step.

    Attributes:
        target: The target of `recompute-lower`, one of `EMISSION_TARGETS`.
        staggered: Whether `recompute-stagger` runs after `recompute-lower`.
        calls: Whether unchanged functions that were inlined are re-outlined and called.
    """

    target: str = "stablehlo"
    staggered: bool = True
    calls: bool = True

    @property
    def keeps_barriers(self) -> bool:
        """Whether the result has barriers that enforce the order of execution.

        Without barriers, only the positions of the copies determine the order.
        """
        return self.target != "none"


@dataclass(frozen=True)
class RecomputeOptions:
    """Options of a rewrite.

    The constructor accepts `plan`, `loops` and `offload` as text, and stores only the parsed form. The properties
    `planned`, `loop_schedule` and `moves` return these forms under types that exclude text. A second class for the
    parsed options would repeat all fields, because users construct this class with text. `budget` and `cost` stay
    text, because their values depend on the step.

    Attributes:
        selection: The segments and the policy; see `Selection`.
        copies: The maximum number of copies of each operation, as in `recompute-clone`.
        target: The replacement of tokens, as in `recompute-lower`: barriers (`stablehlo`) or nothing (`none`). XLA:CPU
            up to jax 0.10 keeps barriers only with `XLA_FLAGS=--xla_disable_hlo_passes=cse_barrier_expander`.
        stagger: Also delay early operations of the forward pass, as `recompute-stagger` does.
        calls: Re-outline unchanged functions, so that they are called as in the original program.
        plan: The plan of an earlier run or a handwritten plan, as a string or parsed; it replaces the selection.
        planner: A function, Graph -> Plan, that makes the plan of each step; it replaces the selection. At most one of
            plan, planner and budget may be given.
        budget: A memory limit, met with the least extra work: `8GiB` of the device, `"50%"` or `0.5` of the temporaries
            of the plain step, or `min`. A limit that cannot be met is an error.
        time_limit: Seconds after which the search for a budget ends with the best plan so far; None for no limit. A
            rewrite or a compilation that has begun is completed.
        memory_model: The memory model of a budget, `order` (program order) or `xla`. The default is `order` with the
            target `none`, and `xla` otherwise.
        strict: Raise an error, instead of a remark, if a step is left unchanged, or if a marked operation must not run
            twice.
        attempts: The maximum number of distinct plans for segments to compare. A plan whose segments are chosen by a
            more trusted method is preferred; among equally trusted plans, the plan with the lowest peak.
        measure: A function that returns the number of bytes that a module needs, as measured by a compiler. With it,
            every attempt is rewritten and measured, and the attempt with the fewest bytes is returned; in a tie, the
            attempt with the fewest FLOPs. In `recompute.jax.jit`, this option is true or false, and XLA measures.
        workers: The number of modules that are measured in parallel.
        proof: Prove that the result equals the original.
        merge_remat: First merge the copies that the step's own `jax.checkpoint` made back into their originals.
        loops: Recompute values that a loop stacks for a later loop, as in `recompute-loops`: true, false, or a
            schedule. `"keep(50%)"` or `"keep(2GiB)"` keeps at most that much of the stacks; `"periodic(8)"` or
            `"periodic(auto)"` saves the carries at intervals.
        cost: The cost that budgets minimize and remarks report: `flops`, `bytes`, `roofline`, `"roofline(h100)"`, or
            a file of costs.
        offload: `marked` moves marked values to the host; with `auto` or `"25GB/s"`, a budget may also move others.
        pipeline: Passes to run instead of `recompute`. All other options except for `strict` and `proof` must have
            their defaults.
        segment_budgets: The bytes that each segment may save, as in `Selection.segment_budgets`, with or without a
            budget: `{"layer*": "30%", "head": "8MiB"}`. Whole numbers are bytes, and other numbers are shares.
    """

    selection: Selection = AUTO
    copies: int = field(default=2, metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS, PLAN_PASS, minimum=1))
    target: str = field(default="stablehlo", metadata=option_facts(RECOMPUTE_PASS, PLAN_PASS))
    stagger: bool = field(default=True, metadata=option_facts(JIT, RECOMPUTE_PASS, PLAN_PASS))
    calls: bool = field(default=True, metadata=option_facts(JIT, RECOMPUTE_PASS))
    plan: str | Sequence[StepPlan] | None = field(default=None, metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS))
    planner: Planner | None = field(default=None, metadata=option_facts(JIT, TORCH, is_plain_data=False))
    budget: str | None = field(
        default=None,
        metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS, PLAN_PASS, pass_type="str | int | float | None"),
    )
    time_limit: float | None = field(
        default=None,
        kw_only=True,
        metadata=option_facts(
            JIT, RECOMPUTE_PASS, is_plain_data=False, is_duration=True, pass_type="int | float | None"
        ),
    )
    memory_model: str = field(default="", metadata=option_facts(RECOMPUTE_PASS, PLAN_PASS))
    strict: bool = field(default=False, metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS))
    attempts: int = field(default=ATTEMPTS, metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS, PLAN_PASS, minimum=1))
    measure: Callable[[ModuleOp], int] | None = field(default=None, metadata=option_facts(is_plain_data=False))
    workers: int = field(default=1, metadata=option_facts(minimum=1))
    proof: bool = field(default=True, metadata=option_facts(JIT))
    merge_remat: bool = False
    loops: Loops | LoopSchedule = field(
        default=True, metadata=option_facts(JIT, RECOMPUTE_PASS, PLAN_PASS, pass_type="bool | str")
    )
    cost: str = field(default=FLOPS, metadata=option_facts(JIT, TORCH, RECOMPUTE_PASS, PLAN_PASS))
    offload: str | Offload = field(default="", metadata=option_facts(JIT, RECOMPUTE_PASS, PLAN_PASS, pass_type="str"))
    pipeline: Pipeline | None = field(default=None, metadata=option_facts(JIT, is_plain_data=False))
    segment_budgets: InitVar[SegmentBudgets | None] = None

    def __post_init__(self, segment_budgets: SegmentBudgets | None) -> None:
        """Parse the values that are given as strings, then check all remaining values.

        Raises:
            BadSelection: For invalid segment budgets, or an invalid value of `loops` or `offload`.
            BadCost: For an unknown cost, if `offload` needs the transfer speed of its device.
            BadPlan: For an invalid plan.
            ValueError: For an unknown target or memory model, and for a number below its minimum.
        """
        self._parse(segment_budgets)
        self._check()

    def _parse(self, segment_budgets: SegmentBudgets | None) -> None:
        """Replace the options that are given as text by their parsed form, and move the segment budgets into the
        selection. All interfaces rely on this method to parse options."""
        if segment_budgets is not None:
            self._replace("selection", replace(self.selection, segment_budgets=budget_texts(segment_budgets)))
        if isinstance(self.plan, str):
            self._replace("plan", from_option(self.plan))
        self._replace("loops", schedule_of(self.loops))
        if isinstance(self.offload, str):
            self._replace("offload", parse_offload(self.offload, self.cost))

    def _replace(self, option: str, parsed: object) -> None:
        object.__setattr__(self, option, parsed)

    def _check(self) -> None:
        """Raise `ValueError` for an unknown name, and for a number out of its range."""
        if self.target not in EMISSION_TARGETS:
            raise ValueError(f"unknown target '{self.target}'{suggestion(self.target, EMISSION_TARGETS)}")
        demand_memory_model(self.memory_model)
        for option in fields(self):
            name = spelling(option.name.replace("_", "-"))
            option_facts_of(option).demand_in_range(name, getattr(self, option.name))

    @classmethod
    def of_pass(cls, options: ModulePass) -> RecomputeOptions:
        """Return the options in the fields of a pass, except for the plan, which the pass reads from a file.

        Raises `ValueError` as the constructor does.
        """
        own = _names(cls) - _names(Selection) - {"plan"}
        values = {name: getattr(options, name) for name in own & _names(type(options))}
        if values.get("budget") is not None:
            values["budget"] = str(values["budget"])
        return cls(Selection.of(options), **values)

    @property
    def planned(self) -> Sequence[StepPlan] | Planner | None:
        """The planner or the parsed plan; None if the options have neither."""
        assert not isinstance(self.plan, str), "the constructor parses the plan"
        return self.planner or self.plan

    def with_planned(self, planned: Sequence[StepPlan] | Planner | None) -> RecomputeOptions:
        """Return a copy of the options with the given plan or planner, and without a budget."""
        if callable(planned):
            return replace(self, plan=None, planner=planned, budget=None)
        return replace(self, plan=planned, planner=None, budget=None)

    @property
    def emission(self) -> Emission:
        return Emission(self.target, self.stagger, self.calls)

    @property
    def loop_schedule(self) -> LoopSchedule:
        """The option `loops` in its parsed form."""
        assert isinstance(self.loops, LoopSchedule), "the constructor parses the loop schedule"
        return self.loops

    @property
    def moves(self) -> Offload:
        """The option `offload` in its parsed form."""
        assert isinstance(self.offload, Offload), "the constructor parses the moves"
        return self.offload

    @property
    def planned_moves(self) -> Offload:
        """The moves to the host that the plans assume; without plans, the moves of the option `offload`."""
        planned = self.planned
        if planned is None or callable(planned):
            return self.moves
        return next((step.offload for step in planned if step.offload.offers), NOTHING_MOVED)


DEFAULT_OPTIONS = RecomputeOptions()


def _names(options: type[RecomputeOptions | Selection | ModulePass]) -> set[str]:
    return {option.name for option in fields(options)}
