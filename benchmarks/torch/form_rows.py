"""Run each variant of a model, and record its peak, FLOPs, time, and differences from eager mode."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
import torch._functorch.config as functorch_config

from recompute.benchmarks.harness.processes import with_cpu_seconds
from recompute.benchmarks.torch.model_cases import CASES, make
from recompute.benchmarks.torch.model_forms import ModelForm, ModelRun
from recompute.benchmarks.torch.refusals import describe_error
from recompute.benchmarks.torch.training_step import Outcome, meter_step, resident_bytes, seconds, training_step

REPEATS = 3


@dataclass(frozen=True)
class FormRow:
    """The measurement of one variant of one model.

    Attributes:
        peak_bytes: The peak of live storages, with gradients, but without inputs, weights and buffers.
        flops: The FLOPs of matrix products, convolutions and attention.
        budget_bytes: The variant's budget, or None.
        compile_seconds: The CPU time of the first step, including compilation.
        step_seconds: The shortest time of three steps.
        differences: The results that are not bit-equal to those of eager mode, with relative distances.
        error: The first line of the exception, if the variant fails.
    """

    case: str
    form: str
    peak_bytes: int = 0
    flops: int = 0
    budget_bytes: int | None = None
    compile_seconds: float = 0.0
    step_seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    error: str = ""


def rows(name: str, forms: Iterable[ModelForm], progress: Callable[[str], None]) -> Iterator[FormRow]:
    """Yield the measurement of each variant. The first variant is the reference for all later variants."""
    reference: Outcome | None = None
    plain_bytes = 0
    for form in forms:
        progress(f"{name}: {form.name} ...")
        row, outcome = measure_form(name, form, reference, plain_bytes)
        if reference is None:
            reference, plain_bytes = outcome, row.peak_bytes
        yield row


def measure_form(
    name: str, form: ModelForm, reference: Outcome | None, plain_bytes: int
) -> tuple[FormRow, Outcome | None]:
    """Measure one variant of a model, and return its row and its outcome (None if the variant fails)."""
    model, inputs = make(name)
    budget_bytes = None if form.budget is None else int(form.budget * plain_bytes)
    try:
        with functorch_config.patch(dict(form.settings)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch._dynamo.reset()
            call = form.wrap(ModelRun(model, CASES[name].blocks, resident_bytes(model, inputs) + (budget_bytes or 0)))
            outcome, compile_seconds = with_cpu_seconds(partial(training_step, model, call, inputs))
            differences = [] if reference is None else reference.differences(outcome)
            cost = meter_step(model, call, inputs)
            step_seconds = seconds(model, call, inputs, REPEATS)
    except Exception as error:
        return FormRow(name, form.name, budget_bytes=budget_bytes, error=describe_error(error)), None
    row = FormRow(
        name,
        form.name,
        cost.peak_bytes,
        cost.flops,
        budget_bytes,
        compile_seconds,
        step_seconds,
        differences,
    )
    return row, outcome
