"""The Python API: functions that do what `recompute-opt` does.

Example:

    import recompute

    rewritten = recompute.rewrite(text)  # a module or its text; proved equal, or an error
    print(rewritten.text, *rewritten.remarks)
    print(recompute.memory(rewritten.module)["main"].peak_bytes, "bytes of temporaries at their peak")
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from typing_extensions import Unpack
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..analysis.memory.timeline import Timeline
from ..dialects.context import make_context
from ..options.conflicts import demand_agreement
from ..options.keywords import RewriteKeywords
from ..options.memory_model import ORDER
from ..options.option_facts import EntryPoint
from ..options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from ..options.selection import AUTO, Selection
from ..proof.prove import Proof, ProofOptions
from ..proof.prove import prove as prove_modules
from ..rules.costs.cost import FLOPS
from ..support.suggestions import suggests_keywords
from ..transforms.preparation.timelines import timelines_of
from ..transforms.take_marks import without_move_remarks
from .inspection.queries import explanations_of
from .rewrite_keywords import rewrite_options
from .rewrites.proved_rewrite import proved_rewrite
from .rewrites.rewritten import Explanations, Rewritten, demand_model
from .verification.step_input import StepInput, read_module, verified_step, with_marks_as_attributes
from .verification.verified import verify_module


def rewrite(
    step: StepInput,
    options: RecomputeOptions = DEFAULT_OPTIONS,
    *,
    name: str = "<input>",
    **keywords: Unpack[RewriteKeywords],
) -> Rewritten:
    """Rewrite a step so that it recomputes the values that the options select. The options are given as an object or as
    keywords:

        recompute.rewrite(step, recompute.RecomputeOptions(recompute.Selection(policy="dots_saveable"), budget="50%"))
        recompute.rewrite(step, policy="dots_saveable", budget="50%")

    Args:
        step: A module of xDSL or of MLIR's Python bindings, its text, or the result of `jax.jit(f).lower(...)`. It is
            left unchanged.
        options: The operations to recompute, and the form of the result.
        name: The name of the input in error messages, if it is text.
        **keywords: The fields of `RecomputeOptions` and of `Selection`, instead of `options`.

    Returns:
        The rewritten module with its plans, remarks and proof.

    Raises:
        TypeError: For a step or an option of the wrong type, an unknown keyword, and options together with keywords.
        ParseError: For text that is not MLIR.
        Refusal: For a step that cannot be rewritten with these options.
        NotProved: If the result was not proved equal.
        ValueError: For an invalid option, and for options that exclude one another.
    """
    options = rewrite_options(options, keywords)
    demand_agreement(options, EntryPoint.REWRITE)
    original, import_remarks = with_marks_as_attributes(read_module(step, name))
    rewritten = proved_rewrite(original, options)
    remarks = without_move_remarks(import_remarks, options.moves.marked)
    return replace(rewritten, remarks=(*remarks, *rewritten.remarks))


@suggests_keywords("recompute.prove")
def prove(before: StepInput, after: StepInput, *, repeatable: Collection[str] = ()) -> Proof:
    """Try to prove that two modules compute the same numbers, bit for bit.

    Args:
        before: A module of xDSL or of MLIR's Python bindings, its text, or the result of `jax.jit(f).lower(...)`.
        after: The module to compare with it, in the same forms.
        repeatable: Patterns of the targets of custom calls that are assumed to be functions of their operands, as in
            `Selection.repeatable`. Targets that `before` marks with `recompute.repeatable` need not be listed.

    Returns:
        The proof, or the first difference that prevents a proof.

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: If one of the modules does not verify.
    """
    modules = read_module(before, "before"), read_module(after, "after")
    for module in modules:
        verify_module(module)
    return prove_modules(*modules, ProofOptions(repeatable=repeatable))


@suggests_keywords("recompute.explain")
def explain(step: StepInput, selection: Selection = AUTO, cost: str = FLOPS) -> Explanations:
    """Explain which values each step saves for its backward pass, and the effect of recomputing each segment.

    Args:
        step: A module of xDSL or of MLIR's Python bindings, its text, or the result of `jax.jit(f).lower(...)`.
        selection: The segments, and the policy that selects the values to save.
        cost: The cost of recomputation, as in `RecomputeOptions`.

    Returns:
        One explanation for each step.

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: For a module without a gradient or with dynamic shapes, and for an unknown segment or cost.
    """
    return explain_verified(verified_step(step), selection, cost)


def explain_verified(
    module: ModuleOp, selection: Selection = AUTO, cost: str = FLOPS, options: RecomputeOptions | None = None
) -> Explanations:
    """Explain a verified module, such as the part of a step that runs on one device.

    `options`: the options of a rewrite whose choice the explanations must describe; None for no rewrite.
    """
    parts, guessed = explanations_of(module, selection, cost, options)
    explanations = Explanations(parts)
    explanations.note = "\n".join(remark.reason for remark in guessed)
    return explanations


@suggests_keywords("recompute.memory")
def memory(step: StepInput, model: str = ORDER) -> dict[str, Timeline]:
    """Return the live bytes over time of each public function, by function name.

    Args:
        step: A module of xDSL or of MLIR's Python bindings, its text, or the result of `jax.jit(f).lower(...)`.
        model: The memory model, `order` (program order) or `xla` (the fusion and the schedule of XLA:CPU).

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: For dynamic shapes.
        ValueError: For an unknown model.
    """
    demand_model(model)
    return dict(timelines_of(verified_step(step), model))


def context() -> Context:
    """Return an xDSL context with the dialects of this package, including StableHLO."""
    return make_context()
