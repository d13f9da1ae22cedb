"""The Python API: functions for the tasks of `recompute-opt`.

Example:

    import recompute

    rewritten = recompute.rewrite(text)  # a module or its text; proved equal, or an error
    print(rewritten.text, *rewritten.remarks)
    print(recompute.memory(rewritten.module)["main"].peak_bytes, "bytes of temporaries at their peak")
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from inspect import signature
from typing import Any, Protocol, runtime_checkable

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ..analysis.explain.executed_flops import executed_flops, runs_of
from ..analysis.explain.explanation import Explanation
from ..analysis.explain.saved_values import SavedValue
from ..analysis.memory.timeline import Timeline
from ..analysis.step.marks import is_copy
from ..analysis.step.order import functions_of
from ..dialects.cloning import clone_of
from ..dialects.context import make_context
from ..dialects.mark_calls import is_named_as_mark
from ..mlir_io.parser import parse_module
from ..mlir_io.printer import print_module
from ..options.conflicts import demand_agreement
from ..options.memory_model import MODELS, ORDER
from ..options.option_facts import EntryPoint
from ..options.recompute_options import DEFAULT_OPTIONS, Pipeline, RecomputeOptions
from ..options.selection import AUTO, Selection
from ..planning.plan_file import StepPlan, from_json, to_json
from ..proof.prove import Proof, ProofOptions
from ..proof.prove import prove as prove_modules
from ..reports.explain import to_summary, to_text
from ..rewriting.rewrite import rewrite_module
from ..rules.costs.cost import FLOPS
from ..search.measured import choose_by_measurement, options_to_measure
from ..search.outcome import Recomputation
from ..search.unchanged_steps import UNCHANGED, demand_effect_of_rewrite, remark_on_unchanged_step
from ..support.diagnostics import Remark, Topic, strict_refusal
from ..support.operations import every_operation
from ..support.suggestions import suggestion
from ..transforms.merge_remat import without_remat
from ..transforms.preparation.timelines import timelines_of
from ..transforms.take_marks import take_marks, without_move_remarks
from .assumptions import Assumptions
from .pipeline import passes_of
from .queries import explanations_of, still_saved_of, timelines_apart
from .verified import NotProved, assumption_remarks, change_in_place, prove_equal, verified_copy, verify_module

_SUFFIXES = (".mlir", ".mlirbc", ".txt")
"""The suffixes of files that contain a module."""


@runtime_checkable
class HasText(Protocol):
    """A lowered step that returns its module as text, such as `jax.stages.Lowered`, or the result of
    `equinox.filter_jit(f).lower(...)`. If `as_text` takes `debug_info=True`, the text has locations."""

    def as_text(self) -> str: ...


@dataclass(frozen=True)
class StepMemory:
    """The timelines of one step before and after a rewrite.

    Attributes:
        place: A phrase that locates a step inside a loop, such as `inside the loop at train.py:17:12`; "" for a
            function.
        plain, rewritten: The timelines before and after the rewrite. The timelines of a step inside a loop cover one
            iteration.
    """

    place: str
    plain: Timeline
    rewritten: Timeline


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """The result of a rewrite.

    Attributes:
        module: The rewritten module.
        plans: The plan of each step of the module.
        remarks: The decisions and their reasons.
        proof: The proof that both modules compute the same; None if the options disable it, or if nothing was changed.
        copies: The number of copied operations.
        extra_flops: The FLOPs of the copies, over all iterations of loops.
    """

    module: ModuleOp
    plans: tuple[StepPlan, ...]
    remarks: tuple[Remark, ...]
    proof: Proof | None
    copies: int
    extra_flops: int
    _original: ModuleOp = field(repr=False)
    _saving: float | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The rewritten module as MLIR, with locations."""
        return print_module(self.module, debuginfo=True)

    @property
    def plan_text(self) -> str:
        """The plans as text, for `RecomputeOptions.plan` and `recompute{plan=…}`."""
        return to_json(self.plans)

    def memory(self, model: str = ORDER) -> dict[str, tuple[Timeline, Timeline]]:
        """Return the timelines of each function before and after the rewrite, by function name.

        `model`: `order` (program order) or `xla` (the model of XLA:CPU).
        """
        _demand_model(model)
        # The rewrite has verified both modules.
        before, after = (dict(timelines_of(as_module(module), model)) for module in (self._original, self.module))
        return {name: (before[name], after[name]) for name in after}

    def memory_of_steps(self, model: str = ORDER) -> list[StepMemory]:
        """Return the timelines of each step before and after the rewrite.

        Loop bodies and per-device bodies that contain a gradient are steps of their own.
        """
        _demand_model(model)
        before, after = (timelines_apart(as_module(module), model) for module in (self._original, self.module))
        return [StepMemory(place, before[name][1], last) for name, (place, last) in after.items() if name in before]

    def seen_as(self, view: Callable[[ModuleOp], ModuleOp]) -> Rewritten:
        """Return a copy of this result whose queries read views of both modules, such as the parts that run on one
        device."""
        before, after = view(self._original), view(self.module)
        proof, copies, flops, saving = self.proof, self.copies, self.extra_flops, self._saving
        return Rewritten(
            module=after,
            plans=self.plans,
            remarks=self.remarks,
            proof=proof,
            copies=copies,
            extra_flops=flops,
            _original=before,
            _saving=saving,
        )

    def still_saved(self) -> tuple[SavedValue, ...]:
        """Return the values that the rewritten step saves for its backward pass, each with the reason. The largest
        comes first."""
        kept = {kept.segment: kept.reason for step in self.plans for kept in step.plan.kept}
        return tuple(sorted(still_saved_of(self.module, kept), key=lambda value: -value.bytes))

    @property
    def predicted_saving(self) -> float:
        """The share of the peak that the rewrite saves, according to the model of XLA:CPU.

        A module with several functions has the smallest of their shares. The search may have computed the share as a
        forecast already.
        """
        return self._modelled_saving if self._saving is None else self._saving

    @cached_property
    def _modelled_saving(self) -> float:
        pairs = self.memory("xla").values()
        return min((1 - after.peak_bytes / max(before.peak_bytes, 1) for before, after in pairs), default=0.0)


def rewrite(
    step: ModuleOp | str | HasText, options: RecomputeOptions = DEFAULT_OPTIONS, *, name: str = "<input>"
) -> Rewritten:
    """Recompute the values that the options select.

    Args:
        step: A module, which is left unchanged, its text, or the result of `jax.jit(f).lower(...)`.
        options: The operations to recompute, and the form of the result.
        name: The name of the input in error messages, if it is text.

    Returns:
        The rewritten module with its plans, remarks and proof.

    Raises:
        TypeError: For a step or options of another type.
        ParseError: For text that is not MLIR.
        Refusal: For a step that cannot be rewritten with these options.
        NotProved: If the result was not proved equal.
        ValueError: For options that exclude one another.
    """
    if not isinstance(options, RecomputeOptions):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"expected options such as recompute.RecomputeOptions(budget='50%'), not {type(options).__name__}"
        )
    demand_agreement(options, EntryPoint.REWRITE)
    original, import_remarks = _with_marks_as_attributes(_to_module(step, name))
    if options.pipeline is not None:
        rewritten = _rewrite_by_pipeline(original, options, options.pipeline)
    elif options.measure is not None and options.planned is None and options.budget is None:
        rewritten = _rewrite_by_measure(original, options, options.measure)
    else:
        rewritten = _rewrite_by_search(original, options)
    remarks = without_move_remarks(import_remarks, options.moves.marked)
    return replace(rewritten, remarks=(*remarks, *rewritten.remarks))


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
    loops_left, options = Remark(functions_of(original)[0], reason), replace(options, loops=False)
    rewritten = _proved(original, _search(original, options), options)
    return replace(rewritten, remarks=(loops_left, *rewritten.remarks))


def _search(original: ModuleOp, options: RecomputeOptions) -> _SearchResult:
    """Rewrite a copy of the module with the plans that a search chooses, and verify the copy. Raises `Refusal`."""

    def write(module: ModuleOp) -> _SearchResult:
        start = _input_of_search(module, options)
        result = rewrite_module(start, options)
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
    changes = [partial(module_pass.apply, context) for module_pass in passes]
    assumptions = Assumptions.of_passes(passes)
    proof = change_in_place(module, changes, proof=options.proof, original=original, assumptions=assumptions)
    decisions = [remark for remark in context.remarks if remark.topic is not Topic.RECOMPUTED]
    remarks = (*decisions, *(assumption_remarks(proof, module) if proof is not None else ()))
    copies = [op for op in every_operation(module) if is_copy(op)]
    if options.strict and not copies:
        raise strict_refusal(module, "nothing is recomputed: the pipeline makes no copies")
    plans = tuple(plan for text in context.plans for plan in from_json(text))
    extra_flops = sum([executed_flops(op) * runs_of(op) for op in copies])
    return Rewritten(
        module=module,
        plans=plans,
        remarks=remarks,
        proof=proof,
        copies=len(copies),
        extra_flops=extra_flops,
        _original=original,
    )


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


def prove(
    before: ModuleOp | str | HasText, after: ModuleOp | str | HasText, *, repeatable: Collection[str] = ()
) -> Proof:
    """Try to prove that two modules compute the same numbers, bit for bit.

    Args:
        before: A module, its text, or the result of `jax.jit(f).lower(...)`.
        after: The module to compare with it, in the same forms.
        repeatable: Patterns of the targets of custom calls that are assumed to be functions of their operands, as in
            `Selection.repeatable`. Targets that `before` marks with `recompute.repeatable` need not be listed.

    Returns:
        The proof, or the first difference that prevents one.

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: If one of the modules does not verify.
    """
    modules = _to_module(before, "before"), _to_module(after, "after")
    for module in modules:
        verify_module(module)
    return prove_modules(*modules, ProofOptions(repeatable=repeatable))


class Explanations(list[Explanation]):
    """The explanations of the steps of a module. Printing them shows a summary of each; `details` returns all rows.

    Attributes:
        note: A line on the byte counts, such as that they apply to one device or rest on guessed phases; "" for none.
    """

    note: str = ""

    @override
    def __str__(self) -> str:
        return "\n".join([*map(to_summary, self), *filter(None, [self.note])])

    def measured(self, name: str, temporary_bytes: int | None, note: str) -> Explanations:
        """Return the explanations of a step with this name and with the size of temporaries that the compiler
        reports."""
        parts = [replace(part, function=_name_of_part(name, part)) for part in self]
        if len(parts) == 1:
            parts = [replace(parts[0], measured_bytes=temporary_bytes)]
        explanations = Explanations(parts)
        explanations.note = note or self.note
        return explanations

    def details(self) -> str:
        """Return the explanations in full, as `recompute-opt -t explain` prints them."""
        return "\n".join([*map(to_text, self), *filter(None, [self.note])])

    __repr__ = __str__


def _name_of_part(name: str, part: Explanation) -> str:
    """Return the name of a part of a step for messages, such as `train_step, inside the loop at train.py:17:12`."""
    if part.place:
        return f"{name}, {part.place}"
    return name if part.function == "main" else part.function


def explain(step: ModuleOp | str | HasText, selection: Selection = AUTO, cost: str = FLOPS) -> Explanations:
    """Explain which values each step saves for its backward pass, and the effect of recomputing each segment.

    Args:
        step: A module, its text, or the result of `jax.jit(f).lower(...)`.
        selection: The segments, and the policy that selects the values to save.
        cost: The cost of recomputation, as in `RecomputeOptions`.

    Returns:
        One explanation for each step.

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: For a module without a gradient or with dynamic shapes, and for an unknown segment or cost.
    """
    return explain_verified(_verify_step(step), selection, cost)


def explain_verified(
    module: ModuleOp, selection: Selection = AUTO, cost: str = FLOPS, options: RecomputeOptions | None = None
) -> Explanations:
    """Explain a module that is already verified, such as the part that runs on one device.

    `options`: the options of a rewrite whose choice the explanations must describe; None for no rewrite.
    """
    parts, guessed = explanations_of(module, selection, cost, options)
    explanations = Explanations(parts)
    explanations.note = "\n".join(remark.reason for remark in guessed)
    return explanations


def memory(step: ModuleOp | str | HasText, model: str = ORDER) -> dict[str, Timeline]:
    """Return the live bytes over time of each public function, by function name.

    Args:
        step: A module, its text, or the result of `jax.jit(f).lower(...)`.
        model: The memory model, `order` (program order) or `xla` (the fusion and the schedule of XLA:CPU).

    Raises:
        ParseError: For text that is not MLIR.
        Refusal: For dynamic shapes.
        ValueError: For an unknown model.
    """
    _demand_model(model)
    return dict(timelines_of(_verify_step(step), model))


def _demand_model(model: str) -> None:
    if model not in MODELS:
        raise ValueError(f"unknown model '{model}'{suggestion(model, MODELS)}")


def context() -> Context:
    """Return an xDSL context with the dialects of this package, including StableHLO."""
    return make_context()


def as_module(step: ModuleOp | str | HasText, name: str = "<input>") -> ModuleOp:
    """Return the step as a module; text is parsed.

    Calls that mark values become attributes. If there are any, the module is copied first.

    `name`: the name of the text in error messages.
    """
    return _with_marks_as_attributes(_to_module(step, name))[0]


def _verify_step(step: ModuleOp | str | HasText) -> ModuleOp:
    module = as_module(step)
    verify_module(module)
    return module


def _to_module(step: ModuleOp | str | HasText, name: str) -> ModuleOp:
    if isinstance(step, ModuleOp):
        return step
    if isinstance(step, str):
        return _parse(step, name)
    if isinstance(step, HasText):  # pyright: ignore[reportUnnecessaryIsInstance]
        return parse_module(_text_of(step), name)
    raise TypeError(
        f"expected an xDSL module, its text, or the result of jax.jit(f).lower(...), not {type(step).__name__}"
    )


def _text_of(step: HasText) -> str:
    """Return the text of a lowered step, with locations if the step can print them. Equinox prints none, but its
    attribute `lowered` is the lowered step of JAX, which does.
    """
    candidates: list[Any] = [step, getattr(step, "lowered", None)]
    for lowered in candidates:
        if isinstance(lowered, HasText) and "debug_info" in signature(lowered.as_text).parameters:
            as_text: Callable[..., str] = lowered.as_text
            return as_text(debug_info=True)
    return step.as_text()


def _parse(text: str, name: str) -> ModuleOp:
    """Parse the text of a module. If the text is the name of a file, the error states how to read the file."""
    try:
        return parse_module(text, name)
    except ParseError as error:
        if "\n" in text or not text.endswith(_SUFFIXES):
            raise
        remedy = f"expected the text of a module, not the name of a file: write Path({text!r}).read_text()"
        raise ParseError(error.span, remedy) from error


def _with_marks_as_attributes(module: ModuleOp) -> tuple[ModuleOp, tuple[Remark, ...]]:
    """Convert the calls that mark values to attributes. Return the module, and remarks on marks without effect.

    A module that contains such calls is copied first.
    """
    if not any(map(is_named_as_mark, module.walk())):
        return module, ()
    copy = clone_of(module)
    return copy, take_marks(copy).remarks
