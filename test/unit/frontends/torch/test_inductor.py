"""Under Inductor, the compiled step keeps budgets as measured, and has the results of Inductor's own step."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recompute.test.unit.frontends.torch.steps import torch

import recompute.torch as rt  # isort: skip
from recompute.frontends.torch.inductor import budget_search, measurements  # isort: skip
from recompute.frontends.torch.inductor.allocator import allocator_peak  # isort: skip
from recompute.frontends.torch.inductor.compiled_step import NotMeasured  # isort: skip
from recompute.frontends.torch.inductor.inductor_partitioner import InductorPartitioner  # isort: skip
from recompute.frontends.torch.partition.options import options_of  # isort: skip
from recompute.frontends.torch.inductor.budget_search import largest_fitting_bound  # isort: skip
from recompute.frontends.torch.reports.compile_report import CompileReport, GraphReport, Round  # isort: skip
from recompute.frontends.torch.inductor.candidates import PLAN, Candidate  # isort: skip
from recompute.planning.calibrated_search import CalibratedSearch, Prediction  # isort: skip

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Empty the caches, so that no step is loaded instead of planned, and forget earlier measurements."""
    torch._dynamo.reset()
    monkeypatch.setattr(measurements, "_BY_STEP", OrderedDict())
    with torch._functorch.config.patch(enable_autograd_cache=False):
        yield


def test_each_option_changes_the_cache_key() -> None:
    keys = [InductorPartitioner(options_of({"budget": budget})).uuid() for budget in ("50%", "60%", "50%")]
    assert keys[0] == keys[2] != keys[1]
    assert InductorPartitioner(options_of({"planner": lambda graph: graph})).uuid() is None
    assert len(pickle.dumps(InductorPartitioner(options_of({"budget": "50%"})))) < 200


def test_unknown_backends_are_rejected() -> None:
    with pytest.raises(ValueError, match="unknown backend 'tpu'; expected one of aot_eager, inductor"):
        rt.compile(lambda x: x, backend="tpu")


def test_peak_of_the_allocator_is_measured() -> None:
    there = torch.zeros(64)

    def run() -> Any:
        first = torch.zeros(1024)
        second = first + there.sum()
        del first
        return second * 2

    assert 8192 <= allocator_peak(run, "cpu") < 8192 + 512


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ([], 98),  # in proportion to the plain step: 99 % of the limit
        ([(100, 120)], 82),  # above the limit: in proportion to the measured plan
        ([(100, 80)], 147),  # within the limit: between the measured plan and the plain step
        ([(100, 120), (60, 80)], 79),  # between a plan above the limit and one within it
    ],
)
def test_next_plan_is_bounded_by_measurements(measured: list[tuple[int, int]], expected: int) -> None:
    """The limit is 100 bytes; the plain step needs 200 bytes in program order, and at least 120 as compiled."""
    predictions = [Prediction(planned, 0.0, PLAN) for planned, _ in measured]
    needs = {position: float(peak) for position, (_, peak) in enumerate(measured)}
    search = CalibratedSearch(predictions, 100.0, (200.0, 201.0 if not measured else 120.0), needs)
    assert largest_fitting_bound(lambda candidate: search.expected_need(candidate) / 100, 200) == expected


_WEIGHT = torch.eye(256).roll(1, 0)


def _dropouts(x: Any) -> Any:
    for _ in range(4):
        x = torch.nn.functional.dropout((x @ _WEIGHT).sin().exp(), 0.5)
    return x.sum()


def _gradient(step: Callable[[Any], Any], rows: int = 128) -> Any:
    torch.manual_seed(5)
    own = torch.linspace(-1, 1, rows * 256).reshape(rows, 256).requires_grad_()
    step(own).backward()
    return own.grad, torch.get_rng_state()


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_a_budget_is_kept_by_the_compiled_step() -> None:
    plain, state = _gradient(torch.compile(_dropouts))
    torch._dynamo.reset()
    step = rt.compile(_dropouts, budget="80%", backend="inductor")
    ours, own_state = _gradient(step)
    assert torch.allclose(ours, plain, rtol=1e-5, atol=0) and torch.equal(state, own_state)
    (report,) = step.report().graphs
    assert 1 <= len(report.rounds) <= budget_search.MAX_COMPILES and report.unmeasured == "" and report.copies > 0
    assert any(each.fits for each in report.rounds)
    assert "measured in" in str(report)
    inputs = plain.nbytes
    assert report.peak_bytes <= 0.8 * report.plain_bytes
    assert abs(allocator_peak(lambda: _gradient(step), "cpu") - inputs - report.peak_bytes) < 512


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_stand_ins_need_exactly_the_memory_of_the_step() -> None:
    """Stand-ins need the memory of the step, including the gradient of the result, which is held to the end of the
    backward pass."""
    layers = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)))
    x = torch.linspace(-1, 1, 256 * 64).view(256, 64)
    step = rt.compile(layers, budget="80%", backend="inductor")
    step(x).backward(x)
    layers.zero_grad(set_to_none=True)

    def whole_step() -> None:
        result = step(x)
        result.backward(torch.ones_like(result))
        layers.zero_grad(set_to_none=True)

    (report,) = step.report().graphs
    assert report.copies > 0 and allocator_peak(whole_step, "cpu") == report.peak_bytes


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_missed_budget_error_reports_smallest_attempt() -> None:
    step = rt.compile(_dropouts, budget="5%", backend="inductor")
    words = r"no compiled step is within the budget 5%, .* of .* bytes\)? .*the (smallest|compiled) "
    with pytest.raises(Exception, match=words):
        _gradient(step)


@pytest.mark.usefixtures("fresh")
def test_budget_below_weights_and_inputs_is_refused_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget_search._BudgetSearch, "_compiled_peak", None)  # pyright: ignore[reportPrivateUsage]
    step = rt.compile(_dropouts, budget="1B", backend="inductor")
    with pytest.raises(Exception, match="within the budget 1B: weights and inputs, which no plan changes, need "):
        _gradient(step)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_min_budget_runs_the_smallest_measured_step() -> None:
    step = rt.compile(_dropouts, budget="min", backend="inductor")
    _gradient(step)
    (report,) = step.report().graphs
    assert report.peak_bytes == min(report.plain_bytes, *(each.peak_bytes for each in report.rounds))
    assert all(each.fits is None for each in report.rounds)


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_plain_step_within_budget_runs_unchanged() -> None:
    step = rt.compile(lambda x: (x @ _WEIGHT).sin().sum(), budget="1GiB", backend="inductor")
    _gradient(step)
    (report,) = step.report().graphs
    assert report.rounds == () and report.copies == 0 and report.plan == "PyTorch's partitioner"
    assert "proved" not in str(report)


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_checks_without_results_are_supported() -> None:
    """`one_hot` checks the range of the classes by an operation that has no result."""

    def checked(x: torch.Tensor) -> torch.Tensor:
        classes = torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1])
        return ((x @ _WEIGHT).sin().exp().cos() * classes.sum()).sum()

    step = rt.compile(checked, budget="min", backend="inductor")
    _gradient(step)
    (report,) = step.report().graphs
    assert not report.reason and report.rounds and report.flops


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_effectful_step_is_planned_in_program_order() -> None:
    runs = list[int]()

    @torch.library.custom_op("recompute_test::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return x * 2

    counted.register_fake(lambda x: torch.empty_like(x))
    counted.register_autograd(lambda ctx, grad: grad * 2)
    step = rt.compile(lambda x: counted(x.sin().exp().cos()).exp().sum(), budget="90%", backend="inductor")
    _gradient(step)
    assert len(runs) == 1
    (report,) = step.report().graphs
    assert report.unmeasured == "recompute_test.counted.default may have effects"
    assert "in program order (not measured: " in str(report)


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_unmeasurable_step_is_planned_in_program_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any) -> int:
        raise NotMeasured("RuntimeError: no such device")

    monkeypatch.setattr(budget_search, "measured_peak", measured)
    step = rt.compile(_dropouts, budget="60%", backend="inductor")
    ours, _ = _gradient(step)
    (report,) = step.report().graphs
    assert report.unmeasured == "RuntimeError: no such device" and report.copies > 0
    torch._dynamo.reset()
    assert torch.allclose(ours, _gradient(torch.compile(_dropouts))[0], rtol=1e-5, atol=0)


def _split(monkeypatch: pytest.MonkeyPatch, function: Callable[[Any], Any], peaks: Callable[[str], int]) -> Any:
    """Return the report of a step whose candidates need these peaks, by their words. Nothing is compiled to measure
    them."""
    search = budget_search._BudgetSearch  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(search, "_compiled_peak", lambda _, candidate: peaks(candidate.words))
    step = rt.compile(function, budget="50%", backend="inductor")
    _gradient(step)
    (report,) = step.report().graphs
    return report


def _products(x: Any) -> Any:
    for _ in range(4):
        x = (x @ _WEIGHT).sin().exp()
    return x.sum()


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_correct_pytorch_partitions_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def peaks(words: str) -> int:
        return 1000 if words == "PyTorch's partitioner" else 400 if "activation" in words else 600

    report = _split(monkeypatch, _products, peaks)
    assert report.plan.startswith("activation_memory_budget=") and report.peak_bytes == 400
    assert len(report.rounds) <= budget_search.MAX_COMPILES


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_pytorch_partitions_that_redraw_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    words = list[str]()

    def peaks(candidate: str) -> int:
        words.append(candidate)
        return 1000 if candidate == "PyTorch's partitioner" else 600

    with pytest.raises(Exception, match="no compiled step is within the budget 50%, 500 bytes of 1000 bytes"):
        _split(monkeypatch, _dropouts, peaks)
    assert not any("activation_memory_budget" in each for each in words)


@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_budgets_share_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peaks never rise when budgets fall: a measured choice that keeps a smaller budget is taken again without
    compilation. A refusal states the least peak of all budgets."""
    peaks = {"PyTorch's partitioner": 1000}

    def peak_of(_: Any, candidate: Candidate) -> int:
        return peaks.setdefault(candidate.words, 600 + 10 * len(peaks))

    monkeypatch.setattr(budget_search._BudgetSearch, "_compiled_peak", peak_of)  # pyright: ignore[reportPrivateUsage]
    reports = list[GraphReport]()
    for budget in ("90%", "80%", "70%"):
        torch._dynamo.reset()
        step = rt.compile(_dropouts, budget=budget, backend="inductor")
        _gradient(step)
        reports += step.report().graphs
    assert reports[0].rounds
    assert reports[1].rounds == reports[2].rounds == ()
    assert reports[0].peak_bytes == reports[1].peak_bytes == reports[2].peak_bytes
    assert str(reports[2]).count("measured for another budget") == 1
    torch._dynamo.reset()
    monkeypatch.setattr(budget_search._BudgetSearch, "_compiled_peak", lambda *_: 900)  # pyright: ignore[reportPrivateUsage]
    least = min(each.peak_bytes for each in reports[0].rounds)
    with pytest.raises(Exception, match=f"a step compiled for another budget needs {least}"):
        _gradient(rt.compile(_dropouts, budget="30%", backend="inductor"))


def test_report_gives_reason_for_missing_graph() -> None:
    assert str(CompileReport((), cached=1)).startswith("1 compiled step came from PyTorch's cache")
    assert str(CompileReport((), breaks=("generator",))) == "nothing was compiled: generator"
    assert str(CompileReport((), without_backward=2)).startswith("no graph has a backward pass: 2 compiled")
    assert CompileReport((GraphReport(),)).reason == ""


def test_nouns_in_a_report_agree_with_their_number() -> None:
    assert "; 1 operation is recomputed, " in str(GraphReport(copies=1))
    assert "; 2 operations are recomputed, " in str(GraphReport(copies=2))


def test_rounds_report_whether_budget_is_met() -> None:
    each = Round("plan", 10, 20, 0, True)
    assert str(each) == "plan: 10 bytes in program order, 20 bytes as compiled, within the budget"
    assert str(replace(each, fits=False)).endswith("above the budget")
    assert str(replace(each, fits=None)).endswith("as compiled")


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_masks_are_kept_without_a_budget() -> None:
    plain, _ = _gradient(torch.compile(_dropouts))
    torch._dynamo.reset()
    step = rt.compile(_dropouts, segment_count=2, backend="inductor")
    ours, _ = _gradient(step)
    (report,) = step.report().graphs
    assert report.copies > 0 and report.rounds == ()
    assert torch.allclose(ours, plain, rtol=1e-5, atol=0)


@pytest.mark.slow
@needs_compiler
@pytest.mark.usefixtures("fresh")
def test_symbolic_sizes_are_measured_at_the_sizes_at_hand() -> None:
    """A second batch of another size, for which Dynamo makes the size symbolic, is measured; a third one needs no new
    graph."""
    step, plain = rt.compile(_dropouts, budget="85%", backend="inductor"), torch.compile(_dropouts)
    for rows in (128, 160, 192):
        ours, state = _gradient(step, rows)
        theirs, their_state = _gradient(plain, rows)
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=0) and torch.equal(state, their_state)
    fixed, symbolic = step.report().graphs
    assert fixed.unmeasured == symbolic.unmeasured == "" and fixed.rounds and symbolic.rounds


_SECOND = """
import torch, recompute.torch as rt
weight = torch.eye(64)
step = rt.compile(lambda x: (x @ weight).sin().exp().cos().sum(), budget="1GiB", backend="inductor")
x = torch.linspace(-1, 1, 4096).view(64, 64).requires_grad_()
step(x).backward()
print(x.grad.double().sum().item(), step.report())
"""


@pytest.mark.slow
@needs_compiler
def test_second_process_loads_compiled_step_from_cache(tmp_path: Path) -> None:
    root = str(Path(str(rt.__file__)).parents[3])
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": root}
    command = [sys.executable, "-W", "ignore", "-c", _SECOND]
    outputs = [
        subprocess.run(command, env=environment, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
        for _ in range(2)
    ]
    first, second = (output.split(" ", 1) for output in outputs)
    assert first[0] == second[0]
    assert first[1].startswith("graph 0: peak")
    assert second[1].startswith("1 compiled step came from PyTorch's cache")
