"""The remark that sums up a rewrite: the peaks before and after, and the copies."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from recompute.analysis.forecasts.peaks import PeakChange
from recompute.analysis.step.module_steps import numbered_steps
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module
from recompute.planning.plan import Batch, CopyGroup, Plan
from recompute.rewriting.summary import summary_of
from recompute.search.outcome import Recomputation
from recompute.support.remarks import RemarkKind
from recompute.test.sine_chain import sine_chain_text
from recompute.transforms.plans.cloned_steps import ClonedStep

IN_ORDER = PeakChange((8192, 4096))
WITH_XLA = PeakChange((8192, 4096), (2048, 1024))


def step_module(*names: str) -> ModuleOp:
    return parse_module("\n".join(sine_chain_text(2, name) for name in names))


def outcome_of(module: ModuleOp, changes: Mapping[str, PeakChange], copies: int = 2) -> Recomputation:
    """Return an outcome with copies in the first step, each with 1024 FLOPs."""
    operations = tuple(range(copies))
    group = CopyGroup("", 3, (Batch(operations, ()),), (1,) * copies, (), (), extra_flops=1024 * copies)
    function, step = next(iter(numbered_steps(module)))
    plan = Plan((group,) if copies else ())
    return Recomputation((ClonedStep(function.sym_name.data, step.graph, plan, ()),), (), peak_changes=changes)


def test_peaks_and_copies_are_in_one_remark_at_the_function() -> None:
    module = step_module("step")
    (remark,) = summary_of(module, outcome_of(module, {"step": IN_ORDER}))
    assert remark.reason == (
        "@step: peak 8.0 KiB -> 4.0 KiB in program order; 2 operations are recomputed, 2048 FLOPs more"
    )
    assert remark.operation is functions_of(module)[0] and remark.kind is RemarkKind.PASSED
    assert remark.amounts == (
        ("peak_bytes_before", 8192),
        ("peak_bytes_after", 4096),
        ("operations", 2),
        ("flops", 2048),
    )


def test_peaks_of_the_model_are_added_if_they_are_known() -> None:
    module = step_module("step")
    (remark,) = summary_of(module, outcome_of(module, {"step": WITH_XLA}, copies=1))
    assert remark.reason == (
        "@step: peak 8.0 KiB -> 4.0 KiB in program order, 2.0 KiB -> 1.0 KiB by the XLA:CPU model; "
        "1 operation is recomputed, 1024 FLOPs more"
    )
    assert remark.amounts[2:4] == (("xla_peak_bytes_before", 2048), ("xla_peak_bytes_after", 1024))


def test_remark_says_if_the_xla_peak_does_not_fall() -> None:
    module = step_module("step")
    change = PeakChange((8192, 4096), (2048, 4096))
    (remark,) = summary_of(module, outcome_of(module, {"step": change}))
    assert "2.0 KiB -> 4.0 KiB by the XLA:CPU model, so XLA:CPU probably needs no less memory than" in remark.reason


def test_remark_lists_every_function_whose_peaks_are_known() -> None:
    """Peaks of several functions are in no amounts: they would have the same names."""
    module = step_module("first", "second", "third")
    (remark,) = summary_of(module, outcome_of(module, {"third": IN_ORDER, "second": WITH_XLA}))
    assert [part.partition(":")[0] for part in remark.reason.split("; ")[:-1]] == ["@second", "@third"]
    assert remark.operation is functions_of(module)[1]
    assert [name for name, _ in remark.amounts] == ["operations", "flops"]


def test_there_is_no_summary_without_copies_or_without_peaks() -> None:
    module = step_module("step")
    assert list(summary_of(module, outcome_of(module, {"step": IN_ORDER}, copies=0))) == []
    assert list(summary_of(module, outcome_of(module, {}))) == []
    assert list(summary_of(module, outcome_of(module, {"erased": IN_ORDER}))) == []
