"""Remarks on options of the passes `recompute` and `recompute-plan` that have no effect on a module, such as a loop
schedule for a module without loops, and on marks that have no effect without an option.

Options that turn off a part of the rewrite, such as `loops=false`, get no remark. `analysis/request/resolved.py`
reports the names and patterns that match nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ..analysis.request.policies import OFFLOADING, SAVEABLE, SELECTS_BY_NAME, policy_of, why_names_unread
from ..analysis.step.marks import mark_of
from ..analysis.step.order import functions_of
from ..dialects.mark_kind import MarkKind
from ..dialects.names import Names
from ..dialects.placements import is_to_host
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..options.loop_schedule import SMALLEST_STACKS, UNCUT
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..planning.host_moves import Offload
from ..rules.effects import HIDDEN_STATE, is_collective
from ..search.loop_choices import has_loops
from ..support.counted import counted
from ..support.operations import every_operation, name_of
from ..support.remarks import Remark, Topic


def options_without_effect(module: ModuleOp, options: RecomputeOptions) -> list[Remark]:
    """Return a remark for each option that has no effect on the module, located at the first function. If marks
    `offload` move nothing because the option is not set, also return a remark at the first such mark."""
    location, operations = next(iter(functions_of(module)), module), every_operation(module)
    return [
        *(Remark(location, reason, topic=Topic.NO_EFFECT) for reason in _reasons(module, options, operations)),
        *_marks_that_move_nothing(options, operations),
    ]


def without_repeated(remarks: Iterable[Remark], earlier: Iterable[Remark]) -> list[Remark]:
    """Return the remarks with a reason that no earlier remark has."""
    reasons = {remark.reason for remark in earlier}
    return [remark for remark in remarks if remark.reason not in reasons]


def _reasons(module: ModuleOp, options: RecomputeOptions, operations: Sequence[Operation]) -> Iterator[str]:
    selection, policy = options.selection, options.selection.policy
    if (unread := why_names_unread(selection)) is not None:
        yield unread
    if policy in SAVEABLE and policy not in SELECTS_BY_NAME and policy != DEFAULT_OPTIONS.selection.policy:
        saves = policy_of(selection)
        if not any(saves(op, selection.names) for op in operations if op.results):
            yield f"policy={policy} saves nothing: it matches no operation of the module"
    if selection.permission.collectives and not any(map(is_collective, operations)):
        yield "collectives has no effect: the module has no collectives"
    if not selection.preserve_rng_state and not any(name_of(op) in HIDDEN_STATE for op in operations):
        yield "preserve-rng-state=false has no effect: no operation draws from a hidden random state"
    if options.loop_schedule not in (UNCUT, SMALLEST_STACKS) and not has_loops(module):
        yield f"{options.loop_schedule.pass_option} has no effect: the module has no loops"
    is_by_mark = options.moves == Offload(marked=True, cost=options.cost) and policy not in OFFLOADING
    if is_by_mark and not any(map(_is_marked_for_offloading, operations)):
        yield (
            'offload=marked has no effect: no operation has recompute.recompute = "offload", and the policy '
            f"{policy} marks none"
        )


def _marks_that_move_nothing(options: RecomputeOptions, operations: Sequence[Operation]) -> Iterator[Remark]:
    """Yield a remark if operations have the mark `offload`, but the options move no marked values to the host. Marks
    that are written as calls are left out, because the conversion to attributes reports them."""
    if options.moves.marked or options.planned_moves.marked:
        return
    marked = [op for op in operations if any(map(_is_left_on_device, op.results))]
    if marked:
        yield Remark(marked[0], ONLY_SAVED.format(counted=counted(len(marked), "operation")), topic=Topic.NO_EFFECT)


ONLY_SAVED = (
    'recompute.recompute = "offload" on {counted} only saves the values: offload=marked would also move them to the '
    "host"
)


def _is_left_on_device(result: SSAValue) -> bool:
    """Return whether the result has the mark `offload`, and is not moved to the host by an earlier pass."""
    return mark_of(result) is MarkKind.OFFLOAD and not any(is_to_host(use.operation) for use in result.uses)


def _is_marked_for_offloading(op: Operation) -> bool:
    """Return whether a result of the operation, or the operand of a call that marks it, may be moved to the host."""
    if isinstance(op, CustomCallOp) and op.call_target_name.data == Names.OFFLOAD:
        return True
    return any(mark_of(result) is MarkKind.OFFLOAD for result in op.results)
