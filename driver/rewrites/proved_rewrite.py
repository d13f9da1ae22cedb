"""Rewrite a module by a search, by a measurement or by a pipeline, and prove that the result is equal.

`proved_rewrite` selects one of these methods:

    _by_pipeline      runs the passes of a pipeline instead of the stages
    _by_measurement   runs `_by_search` for each attempt, and chooses a result by its measured memory
    _by_search        proves the result of a search; if that fails, searches again with loops left unchanged

A search rewrites with `rewritten_copy` in `rewriting/rewrite.py`. This function also applies given plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.explain.executed_flops import executed_flops, runs_of
from ...analysis.step.marks import is_copy
from ...analysis.step.order import functions_of
from ...dialects.cloning import clone_of
from ...dialects.context import make_context
from ...mlir_io.repeated_operations import VerifiedOperations
from ...options.recompute_options import Pipeline, RecomputeOptions
from ...planning.plan_file import from_json
from ...rewriting.rewrite import rewritten_copy
from ...search.choice.measured import choose_by_measurement, options_to_measure
from ...search.choice.unchanged_steps import UNCHANGED, demand_effect_of_rewrite, remark_on_unchanged_step
from ...search.outcome import Recomputation
from ...support.diagnostics import strict_refusal
from ...support.garbage import no_collection
from ...support.operations import every_operation
from ...support.remarks import Remark, Topic
from ...transforms.merge_remat import without_remat
from ...transforms.strip import StripPass
from ..pipelines.pipeline import own_pass_names, passes_of
from ..verification.assumptions import Assumptions
from ..verification.verified import NotProved, assumption_remarks, change_in_place, prove_equal, verify_module
from .rewritten import Rewritten


def proved_rewrite(original: ModuleOp, options: RecomputeOptions) -> Rewritten:
    """Rewrite a module by the method that the options request: a pipeline, a measurement, or a search.

    Raises:
        Refusal: For a module that cannot be rewritten with these options.
        NotProved: If the result was not proved equal.
        BadPipeline: For an invalid pipeline; it is a `ValueError`.
    """
    if options.pipeline is not None:
        return _by_pipeline(original, options, options.pipeline)
    if options.measure is not None and options.planned is None and options.budget is None:
        return _by_measurement(original, options, options.measure)
    return _by_search(original, options)


def _by_search(original: ModuleOp, options: RecomputeOptions) -> Rewritten:
    """Rewrite by a search or by given plans.

    If the result is not proved and no plan is given, redo the rewrite with loops left unchanged.
    """
    module, outcome = _search(original, options)
    try:
        return _proved(original, module, outcome, options)
    except NotProved as error:
        if options.planned is not None or not outcome.in_loops.copies:
            raise
        reason = f"loops are left unchanged, because their rewrite is not proved equal: {error.proof.reason}"
    loops_left = Remark(functions_of(original)[0], reason, topic=Topic.LOOPS_NOT_PROVED)
    options = replace(options, loops=False)
    rewritten = _proved(original, *_search(original, options), options)
    return replace(rewritten, remarks=(loops_left, *rewritten.remarks))


@no_collection()
def _search(original: ModuleOp, options: RecomputeOptions) -> tuple[ModuleOp, Recomputation]:
    """Rewrite by a search or by given plans, and verify the module before and after.

    Returns:
        A new module and the recomputation in it. The module equals the original if nothing is recomputed.

    Raises:
        Refusal: For a module that cannot be rewritten with these options, or does not verify.
    """
    verified = VerifiedOperations()
    verify_module(original, verified)
    start = _input_of_search(original, options)
    result = rewritten_copy(start, options)
    if options.strict:
        demand_effect_of_rewrite(original, result.outcome.copies, result.outcome.remarks)
    module = clone_of(start) if result.module is None else result.module
    verify_module(module, verified)
    return module, result.outcome


def _proved(original: ModuleOp, module: ModuleOp, outcome: Recomputation, options: RecomputeOptions) -> Rewritten:
    """Prove that the new module equals the original, if the options demand a proof. Raises `NotProved`."""
    assumptions = Assumptions.of_selection(options.selection)
    proof = prove_equal(original, module, assumptions) if options.proof else None
    remarks = (*outcome.remarks, *(assumption_remarks(proof, module) if proof is not None else ()))
    return Rewritten(
        module=module,
        plans=outcome.plans,
        remarks=remarks,
        proof=proof,
        copies=outcome.copies,
        extra_flops=outcome.extra_flops,
        _original=original,
        _saving=outcome.saved_share,
    )


def _by_pipeline(original: ModuleOp, options: RecomputeOptions, pipeline: Pipeline) -> Rewritten:
    """Rewrite with the passes of a pipeline, and verify the module after each pass. Raises `BadPipeline` (a
    `ValueError`)."""
    module, context = clone_of(original), make_context()
    passes = passes_of(pipeline)
    flops_of_copies = list[int]()

    def change(module_pass: ModulePass, module: ModuleOp) -> None:
        if isinstance(module_pass, StripPass):  # Afterwards, copies cannot be distinguished from other operations.
            flops_of_copies.extend(_flops_of_copies(module))
        module_pass.apply(context, module)

    changes = [partial(change, module_pass) for module_pass in passes]
    assumptions = Assumptions.of_passes(passes, own_pass_names())
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


def _by_measurement(original: ModuleOp, options: RecomputeOptions, measure: Callable[[ModuleOp], int]) -> Rewritten:
    """Rewrite according to each attempt. Return the result that `choose_by_measurement` chooses; the original if it
    chooses none."""
    rewrites = [
        (words, _by_search(original, of_attempt))
        for words, of_attempt in options_to_measure(_input_of_search(original, options), options)
    ]
    results = [(words, result) for words, result in rewrites if result.copies]
    if not results:
        return _by_search(original, replace(options, measure=None))
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
    """Return the module that the search rewrites; the proof nevertheless compares the result with the original
    module."""
    return without_remat(original) if options.merge_remat else original
