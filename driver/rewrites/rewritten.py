"""The results of the Python API: a rewritten step, and the explanations of the steps of a module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp

from ...analysis.explain.explanation import Explanation
from ...analysis.explain.saved_values import SavedValue
from ...analysis.memory.timeline import Timeline
from ...mlir_io.printer import print_module
from ...options.memory_model import MODELS, ORDER
from ...planning.plan_file import StepPlan, to_json
from ...proof.prove import Proof
from ...reports.explain import to_summary, to_text
from ...support.remarks import Remark
from ...support.suggestions import suggestion
from ...transforms.preparation.timelines import timelines_of
from ..inspection.queries import still_saved_of, timelines_apart
from ..verification.step_input import as_module


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
        proof: The proof that both modules compute the same results; None if the options disable it, or if nothing was
            changed.
        copies: The number of copies of operations. One operation may have several copies.
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

        `model`: `order` (program order) or `xla` (the XLA:CPU model).
        """
        demand_model(model)
        # The rewrite has verified both modules.
        before, after = (dict(timelines_of(as_module(module), model)) for module in (self._original, self.module))
        return {name: (before[name], after[name]) for name in after}

    def memory_of_steps(self, model: str = ORDER) -> list[StepMemory]:
        """Return the timelines of each step before and after the rewrite.

        Loop bodies and per-device bodies that contain a gradient are treated as separate steps.
        """
        demand_model(model)
        before, after = (timelines_apart(as_module(module), model) for module in (self._original, self.module))
        return [StepMemory(place, before[name][1], last) for name, (place, last) in after.items() if name in before]

    def seen_as(self, view: Callable[[ModuleOp], ModuleOp]) -> Rewritten:
        """Return a copy of this result whose queries use transformed versions of both modules, for example the parts
        that run on one device."""
        return Rewritten(
            module=view(self.module),
            plans=self.plans,
            remarks=self.remarks,
            proof=self.proof,
            copies=self.copies,
            extra_flops=self.extra_flops,
            _original=view(self._original),
            _saving=self._saving,
        )

    def still_saved(self) -> tuple[SavedValue, ...]:
        """Return the values that the rewritten step saves for its backward pass, each with the reason. The largest
        comes first."""
        kept = {kept.segment: kept.reason for step in self.plans for kept in step.plan.kept}
        return tuple(sorted(still_saved_of(self.module, kept), key=lambda value: -value.bytes))

    @property
    def predicted_saving(self) -> float:
        """The predicted reduction of the peak as a share of the original peak, according to the XLA:CPU model.

        For a module with several functions, this is the smallest share of any function. If the search has made a
        forecast, the share is taken from the forecast.
        """
        return self._modelled_saving if self._saving is None else self._saving

    @cached_property
    def _modelled_saving(self) -> float:
        pairs = self.memory("xla").values()
        return min((1 - after.peak_bytes / max(before.peak_bytes, 1) for before, after in pairs), default=0.0)


class Explanations(list[Explanation]):
    """The explanations of the steps of a module. Printing this object shows a summary of each explanation; `details`
    returns all rows.

    Attributes:
        note: A line that qualifies the byte counts, for example because they apply to one device or rest on guessed
            phases; "" if no qualification is needed.
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


def demand_model(model: str) -> None:
    """Raise `ValueError` for an unknown memory model."""
    if model not in MODELS:
        raise ValueError(f"unknown model '{model}'{suggestion(model, MODELS)}")
