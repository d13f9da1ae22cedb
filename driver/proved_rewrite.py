"""Rewrite a module by a search, by a measurement or by a pipeline, and prove that the result is equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.explain.executed_flops import executed_flops, runs_of
from ..analysis.step.marks import is_copy
from ..analysis.step.order import functions_of
from ..dialects.cloning import clone_of
from ..dialects.context import make_context
from ..options.recompute_options import Pipeline, RecomputeOptions
from ..planning.plan_file import from_json
from ..rewriting.rewrite import rewritten_copy
from ..search.choice.measured import choose_by_measurement, options_to_measure
from ..search.choice.unchanged_steps import UNCHANGED, demand_effect_of_rewrite, remark_on_unchanged_step
from ..search.outcome import Recomputation
from ..support.diagnostics import Remark, Topic, strict_refusal
from ..support.operations import every_operation
from ..transforms.merge_remat import without_remat
from ..transforms.strip import StripPass
from .assumptions import Assumptions
from .pipeline import passes_of
from .rewritten import Rewritten
from .verified import NotProved, assumption_remarks, change_in_place, prove_equal, verified_copy


def rewrite_as_module(original: ModuleOp, options: RecomputeOptions) -> Rewritten:
    """Rewrite a module by the method that the options request: a pipeline, a measurement, or a search.

    Raises:
        Refusal: For a module that cannot be rewritten with these options.
        NotProved: If the result was not proved equal.
        BadPipeline: For an invalid pipeline; it is a `ValueError`.
    """
    if options.pipeline is not None:
        return _rewrite_by_pipeline(original, options, options.pipeline)
    if options.measure is not None and options.planned is None and options.budget is None:
        return _rewrite_by_measure(original, options, options.measure)
    return _rewrite_by_search(original, options)


@dataclass(frozen=True)
class _SearchResult:
    """The result of a search or of given plans, which is verified but not proved yet.

    Attributes:
        module: The rewritten copy of the module, which equals the original if nothing is recomputed.
        outcome: The recomputation in it.
    """

    module: ModuleOp
    outcome: Recomputation


def _rewrite_by_search(original: ModuleOp, options: RecomputeOptions) -> Rewritten:
    """Rewrite by a search or by given plans.

    If the result is not proved and no plan is given, redo the rewrite with loops left unchanged.
    """
    result = _search(original, options)
    try:
        return _proved(original, result, options)
    except NotProved as error:
        if options.planned is not None or not result.outcome.in_loops.copies:
            raise
        reason = f"loops are left unchanged, because their rewrite is not proved equal: {error.proof.reason}"
    loops_left = Remark(functions_of(original)[0], reason, topic=Topic.LOOPS_NOT_PROVED)
    options = replace(options, loops=False)
    rewritten = _proved(original, _search(original, options), options)
    return replace(rewritten, remarks=(loops_left, *rewritten.remarks))


def _search(original: ModuleOp, options: RecomputeOptions) -> _SearchResult:
    """Rewrite a copy of the module with the plans that a search chooses, and verify the copy. Raises `Refusal`."""

    def write(module: ModuleOp) -> _SearchResult:
        start = _input_of_search(module, options)
        result = rewritten_copy(start, options)
        if options.strict:
            demand_effect_of_rewrite(module, result.outcome.copies, result.outcome.remarks)
        return _SearchResult(clone_of(start) if result.module is None else result.module, result.outcome)

    return verified_copy(original, write)


def _proved(original: ModuleOp, result: _SearchResult, options: RecomputeOptions) -> Rewritten:
    """Prove that the result equals the original, if the options demand a proof. Raises `NotProved`."""
    module, outcome = result.module, result.outcome
    assumptions = Assumptions.of_selection(options.selection)
    proof = prove_equal(original, module, assumptions) if options.proof else None
    remarks = (*outcome.remarks, *(assumption_remarks(proof, module) if proof is not None else ()))
    copies, extra_flops = outcome.copies, outcome.extra_flops
    return Rewritten(
        module=module,
        plans=outcome.plans,
        remarks=remarks,
        proof=proof,
        copies=copies,
        extra_flops=extra_flops,
        _original=original,
        _saving=outcome.saved_share,
    )


def _rewrite_by_pipeline(original: ModuleOp, options: RecomputeOptions, pipeline: Pipeline) -> Rewritten:
    """Rewrite with the passes of a pipeline, and verify the module after each pass. Raises `BadPipeline`, which is a
    `ValueError`."""
    module, context = clone_of(original), make_context()
    passes = passes_of(pipeline)
    flops_of_copies = list[int]()

    def change(module_pass: ModulePass, module: ModuleOp) -> None:
        if isinstance(module_pass, StripPass):  # Afterwards, copies cannot be distinguished from other operations.
            flops_of_copies.extend(_flops_of_copies(module))
        module_pass.apply(context, module)

    changes = [partial(change, module_pass) for module_pass in passes]
    assumptions = Assumptions.of_passes(passes)
    proof = change_in_place(module, changes, proof=options.proof, original=original, assumptions=assumptions)
    decisions = [remark for remark in context.remarks if remark.topic is not Topic.RECOMPUTED]
    remarks = (*decisions, *(assumption_remarks(proof, module) if proof is not None else ()))
    flops_of_copies.extend(_flops_of_copies(module))
    if options.strict and not flops_of_copies:
        raise strict_refusal(module, "nothing is recomputed: the pipeline makes no copies")
    plans = tuple(plan for text in context.plans for plan in from_json(text))
    return Rewritten(
        module=module,
        plans=plans,
        remarks=remarks,
        proof=proof,
        copies=len(flops_of_copies),
        extra_flops=sum(flops_of_copies),
        _original=original,
    )


def _flops_of_copies(module: ModuleOp) -> list[int]:
    """Return the FLOPs of each copy in the module, over all iterations of loops."""
    return [executed_flops(op) * runs_of(op) for op in every_operation(module) if is_copy(op)]


def _rewrite_by_measure(original: ModuleOp, options: RecomputeOptions, measure: Callable[[ModuleOp], int]) -> Rewritten:
    """Rewrite according to each attempt, and return the result that `choose_by_measurement` chooses; the original if it
    chooses none."""
    rewrites = [
        (words, _rewrite_by_search(original, of_attempt))
        for words, of_attempt in options_to_measure(_input_of_search(original, options), options)
    ]
    results = [(words, result) for words, result in rewrites if result.copies]
    if not results:
        return _rewrite_by_search(original, replace(options, measure=None))
    choice = choose_by_measurement(original, results, measure, options.workers)
    if choice.smallest is not None:
        chosen = Remark(functions_of(choice.smallest.module)[0], choice.summary)
        return replace(choice.smallest, remarks=(chosen, *choice.smallest.remarks))
    if options.strict:
        raise strict_refusal(functions_of(original)[0], f"{choice.summary}: {UNCHANGED}")
    left = clone_of(original)
    return Rewritten(
        module=left,
        plans=(),
        remarks=(remark_on_unchanged_step(functions_of(left)[0], choice.summary),),
        proof=None,
        copies=0,
        extra_flops=0,
        _original=original,
    )


def _input_of_search(original: ModuleOp, options: RecomputeOptions) -> ModuleOp:
    """Return the module that the search rewrites. The proof compares the result with the original module."""
    return without_remat(original) if options.merge_remat else original
