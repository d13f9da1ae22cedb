"""Compare the step that a call runs with the plain step, and make a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ....analysis.explain.saved_values import PLAIN_STEP, SavedValue
from ....analysis.memory.timeline import Timeline
from ....dialects.sdy.computations import ManualComputationOp
from ....dialects.stablehlo.checks import is_float_or_complex
from ....dialects.stablehlo.control import WhileOp
from ....driver.api import explain_verified
from ....driver.inspection.queries import step_flops
from ....driver.rewrites.rewritten import Rewritten, StepMemory
from ....driver.verification.step_input import as_module
from ....options.selection import AUTO, Selection
from ....reports.by_module import ModuleNames, module_rows
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....support.remarks import Remark, Topic
from ....support.type_guards import is_tensor
from ..compilation.allocation import device_count, temporary_bytes
from ..compilation.budgeted_result import BudgetedCompile
from ..compilation.variants import CompiledStep, Variant
from ..internals.device_memory import reported_total_bytes
from ..messages.branch_residuals import branch_advice
from .device_part import NotPropagated, part_of_a_device
from .donation import possible_donation
from .recomputed_operations import modules_of_segments, recomputed_operations
from .report_records import BudgetSearch, LoopFacts, ModelParts, Needs, StoredValues
from .step_report import Report


@dataclass(frozen=True, kw_only=True)
class ComparedStep:
    """The input of a comparison: a plain step, and the variant that a call runs.

    Attributes:
        name: The name of the step.
        module: The plain step as an xDSL module, with its marks; None if it cannot be parsed.
        lowered: JAX's own `Lowered` of the plain step.
        compiled: The plain step, compiled to measure its sizes.
        choice: The variant that runs.
        selection: The operations that the user selects for recomputation.
        jit: The keywords of `jax.jit` with which the step was jitted.
        remarks: The remarks of the rewrite, or the reason for its refusal.
        unused_marks: Remarks on marks that JAX removed because no result of the step depends on their values.
        within: The result of the search for a budget; None if there is no budget.
    """

    name: str
    module: ModuleOp | None
    lowered: jax.stages.Lowered
    compiled: jax.stages.Compiled
    choice: CompiledStep
    selection: Selection
    jit: Mapping[str, Any]
    remarks: tuple[Remark | str, ...]
    unused_marks: tuple[Remark, ...]
    within: BudgetedCompile | None


def compare(step: ComparedStep) -> Report:
    """Report on the step that a call runs and on the plain step."""
    choice, rewritten = step.choice, step.choice.rewritten
    devices = device_count(choice.compiled)
    view = _view(step.module, devices)
    viewed = None if rewritten is None else rewritten.seen_as(view.of) if devices > 1 else rewritten
    timelines = {} if viewed is None else viewed.memory("xla")
    memories = [StepMemory("", *pair) for pair in timelines.values()]
    if viewed is not None and _has(viewed.module, ManualComputationOp, WhileOp):
        memories = viewed.memory_of_steps("xla")
    names = ModuleNames.of([timeline for memory in memories for timeline in (memory.plain, memory.rewritten)])
    has_loops = step.module is not None and _has_numeric_loop(step.module)
    executed_flops = _executed_flops(step) if has_loops else None
    plain_flops, chosen_flops = executed_flops or (None, None)
    return Report(
        name=step.name,
        plain=_needs(step.compiled, plain_flops),
        chosen=_needs(choice.compiled, chosen_flops),
        variant=choice.variant,
        measured=tuple(choice.sizes.items()),
        plain_reason=choice.plain_reason,
        proved=rewritten is not None and bool(rewritten.proof),
        remarks=_remarks(step),
        recomputed=recomputed_operations(rewritten, names),
        stored=StoredValues(
            saved=_saved_values(step, viewed, view.of),
            modules=module_rows((memory.plain, memory.rewritten) for memory in memories),
            timelines=(*_named(timelines), *_inside_loops(memories)),
            is_per_device=view.is_of_a_device,
        ),
        model=ModelParts(
            names,
            segments=() if rewritten is None else modules_of_segments(rewritten, names),
            branch_advice="" if _is_plain_within_budget(step) else branch_advice(step.module),
        ),
        loops=LoopFacts(
            has_loops,
            positions=tuple(dict.fromkeys(memory.place for memory in memories if memory.place)),
            executed_flops=executed_flops,
        ),
        search=_budget_search(step.within),
        devices=devices,
        donation=possible_donation(step.lowered, step.module, step.jit),
    )


def _is_plain_within_budget(step: ComparedStep) -> bool:
    """Return whether the plain step runs because it meets the caller's budget."""
    return step.choice.variant is Variant.PLAIN and step.within is not None and step.within.limit_bytes is not None


def _budget_search(within: BudgetedCompile | None) -> BudgetSearch:
    """Return the record of the budget search that led to the step, if there was one.

    The limit in this record is the memory of the device; the caller replaces it if the user gives a budget.
    """
    if within is None:
        return BudgetSearch(reported_total_bytes())
    return BudgetSearch(
        limit_bytes=reported_total_bytes(),
        candidates=within.rounds,
        is_minimum=within.limit_bytes is None,
        is_complete=within.is_complete,
        temporaries_limit=within.limit_bytes,
    )


def _has(module: ModuleOp, *operation_types: type[Operation]) -> bool:
    """Return whether the module contains an operation of any of these types."""
    return any(isinstance(op, operation_types) for op in every_operation(module))


def _has_numeric_loop(module: ModuleOp) -> bool:
    """Return whether a loop of the module computes floating-point numbers, which are then among its results. Loops that
    compute only integers, such as the rounds in which JAX draws random bits, are not the user's loops, and add little
    to the FLOPs.
    """
    loops = [op for op in every_operation(module) if isinstance(op, WhileOp)]
    kinds = [result.type.get_element_type() for loop in loops for result in loop.results if is_tensor(result.type)]
    return any(map(is_float_or_complex, kinds))


def _executed_flops(step: ComparedStep) -> tuple[int, int] | None:
    """Return the FLOPs of the plain step and of the step that runs, over all iterations of loops.

    Return None for a step that keeps its own barriers. It has the same program as the plain step, but in the plain step
    the compiler may merge the copies that the barriers protect. Counting the operations of the program therefore cannot
    distinguish the two.
    """
    if step.module is None or step.choice.variant is Variant.KEEPING:
        return None
    plain_flops = step_flops(step.module)
    rewritten = step.choice.rewritten
    if step.choice.variant is Variant.MERGED and rewritten is not None:
        return plain_flops, step_flops(rewritten.module)
    return plain_flops, plain_flops + (0 if rewritten is None else rewritten.extra_flops)


def _remarks(step: ComparedStep) -> tuple[Remark | str, ...]:
    """Return the remarks on the variant that runs, without remarks on executors other than XLA."""
    rewritten = step.choice.rewritten
    remarks = rewritten.remarks if step.choice.variant is Variant.MERGED and rewritten is not None else step.remarks
    told = (*remarks, *(() if rewritten is None else step.unused_marks))
    return tuple(remark for remark in told if isinstance(remark, str) or remark.topic is not Topic.EAGER)


def _needs(compiled: jax.stages.Compiled, executed_flops: int | None) -> Needs:
    """Return the memory and the work of a compiled step. `executed_flops`: its FLOPs over all iterations of loops; None
    for the compiler's count."""
    analysis: Any = compiled.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "alias_size_in_bytes")
    sizes = [0, 0, 0] if analysis is None else [int(getattr(analysis, part)) for part in parts]
    costs: Any = compiled.cost_analysis()
    flops = None if not costs or "flops" not in costs else float(costs["flops"])
    if executed_flops is not None:
        flops = float(executed_flops)
    return Needs(temporary_bytes(compiled), sizes[0], sizes[1], sizes[2], flops)


def _inside_loops(steps: Iterable[StepMemory]) -> Iterator[tuple[str, Timeline]]:
    for step in steps:
        if step.place:
            yield f"plain, {step.place}", step.plain
            yield f"recomputed, {step.place}", step.rewritten


@dataclass(frozen=True)
class _View:
    """The view of a step on which a report is based: whole arrays, or only the shards that one device holds.

    Attributes:
        of: A function from JAX's module to the module on which to report.
        is_of_a_device: Whether that module is the part of one device.
    """

    of: Callable[[ModuleOp], ModuleOp]
    is_of_a_device: bool


def _view(module: ModuleOp | None, devices: int) -> _View:
    """Return the view of one device if the shardings of the plain step can be propagated, otherwise the view of whole
    arrays."""
    if devices > 1 and module is not None:
        try:
            part_of_a_device(module)
        except NotPropagated:
            return _View(as_module, False)
    return _View(part_of_a_device if devices > 1 else as_module, True)


def _saved_values(
    step: ComparedStep, rewritten: Rewritten | None, view: Callable[[ModuleOp], ModuleOp]
) -> tuple[SavedValue, ...]:
    """Return the values that the variant that runs saves for its backward pass, in order of decreasing size.

    A plain step saves every residual. For a rewritten step, the values are taken from the rewritten program. The reason
    for a value comes from the user's selection if the selection keeps this value, and otherwise from the rewrite.

    Args:
        step: The plain step, and the variant that runs.
        rewritten: The rewrite in the view of the report; None for a plain step.
        view: A function that returns the module that the report reads.
    """
    if step.choice.variant is Variant.MERGED or step.module is None:
        return ()
    if step.selection == AUTO and rewritten is not None:
        return rewritten.still_saved()
    try:
        explanations = explain_verified(view(step.module), step.selection)
    except (Refusal, ValueError):
        return () if rewritten is None else rewritten.still_saved()
    values = [value for explanation in explanations for value in explanation.values]
    if rewritten is None:
        return _largest_first(replace(value, reason=value.reason or PLAIN_STEP) for value in values)
    reasons = {_origin(value): value.reason for value in values if value.reason is not None}
    return tuple(replace(value, reason=reasons.get(_origin(value), value.reason)) for value in rewritten.still_saved())


def _origin(value: SavedValue) -> tuple[str, str, int]:
    """Return the data that identify a value in the original and in the rewritten step."""
    return value.operation, value.position, value.bytes


def _largest_first(values: Iterable[SavedValue]) -> tuple[SavedValue, ...]:
    return tuple(sorted(values, key=lambda value: -value.bytes))


def _named(timelines: Mapping[str, tuple[Timeline, Timeline]]) -> tuple[tuple[str, Timeline], ...]:
    """Return the timelines with the names `plain` and `recomputed`. If there are several functions, the function's name
    comes first."""
    several = len(timelines) > 1
    return tuple(
        (f"{function} {form}" if several else form, timeline)
        for function, both in timelines.items()
        for form, timeline in zip(("plain", "recomputed"), both, strict=True)
    )
