"""A step is rejected if no peak falls or one rises; a module is left unchanged only if all its emitted steps are
rejected, and each step then has its reason."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from recompute.analysis.forecasts.peaks import Peaks
from recompute.search.choice.vetoes import why_all_worse, why_too_much_work, why_worse


def peaks(in_order: int, eager: int, xla: int) -> Peaks:
    return Peaks.from_values(in_order, eager, lambda: xla)


@pytest.mark.parametrize(
    ("after", "keeps_barriers", "reason"),
    [
        (peaks(900, 1000, 1000), True, None),
        (peaks(900, 1009, 1000), True, None),
        (peaks(1000, 1000, 900), True, None),
        (peaks(1009, 900, 1000), True, None),
        (
            peaks(900, 1100, 500),
            True,
            "an executor that starts operations as soon as it can from 1000 bytes to 1.1 KiB (1100 bytes)",
        ),
        (peaks(900, 1100, 500), False, None),
        (peaks(1100, 900, 500), True, "the peak from 1000 bytes to 1.1 KiB (1100 bytes)"),
        (
            peaks(995, 995, 995),
            True,
            "from 1000 bytes to 995 bytes, and from 1000 bytes to 995 bytes under XLA:CPU: "
            "a reduction of less than 1 %",
        ),
        (peaks(1000, 900, 500), False, "the peak from 1000 bytes to 1000 bytes: a reduction of less than 1 %"),
    ],
)
def test_step_changes_only_if_a_peak_falls_and_none_rises(
    after: Peaks, keeps_barriers: bool, reason: str | None
) -> None:
    result = why_worse(peaks(1000, 1000, 1000), after, keeps_barriers)
    assert result is None if reason is None else result is not None and result.endswith(reason)


@pytest.mark.parametrize(("last_peak", "vetoed"), [(2000, ["first", "second"]), (500, [])])
def test_every_step_must_be_worse(last_peak: int, vetoed: list[str]) -> None:
    functions = [FuncOp(name, ((), ())) for name in ("first", "second")]
    before = {name: peaks(1000, 1000, 1000) for name in ("first", "second")}
    emitted = dict(zip(functions, [peaks(size, size, size) for size in (1500, last_peak)], strict=True))
    remarks = why_all_worse(before, emitted, keeps_barriers=True)
    assert [remark.operation for remark in remarks] == [item for item in functions if item.sym_name.data in vetoed]
    assert all(
        f"to {size} bytes" in remark.reason or f"({size} bytes)" in remark.reason
        for remark, size in zip(remarks, (1500, 2000), strict=False)
    )


def test_step_with_forced_copies_has_no_veto() -> None:
    function = FuncOp("step", ((), ()))
    assert why_all_worse({}, {function: peaks(2000, 2000, 2000)}, keeps_barriers=True) == ()


def test_peaks_of_the_xla_model_are_not_computed_for_a_target_without_barriers() -> None:
    """The step may have changed since the forecast, so that the model can no longer read it."""

    def unreadable() -> int:
        raise KeyError("the step has changed")

    before, after = (Peaks.from_values(size, size, unreadable) for size in (1000, 999))
    assert why_worse(before, after, keeps_barriers=False) is not None


@pytest.mark.parametrize(
    ("extra_work", "after", "is_vetoed"),
    [(500, 990, False), (510, 990, True), (1000, 500, False), (1000, 510, True), (3000, 700, True)],
)
def test_copies_that_take_too_much_work_for_what_they_save_are_rejected(
    extra_work: int, after: int, is_vetoed: bool
) -> None:
    """Up to half more work is always accepted, and beyond that only if the memory falls in proportion."""
    reason = why_too_much_work(1000, extra_work, (1000,), (after,))
    assert (reason is not None) == is_vetoed
    if reason is not None:
        assert f"{1 + extra_work / 1000:.1f} times the work" in reason and "budget" in reason


def test_a_saving_under_one_memory_model_suffices_for_the_work() -> None:
    """XLA fuses a chain of elementwise operations, so only program order shows what recomputing it saves."""
    assert why_too_much_work(1000, 600, (1000, 1000), (900, 150)) is None
    assert why_too_much_work(1000, 600, (1000, 1000), (150, 900)) is None
    assert why_too_much_work(1000, 600, (1000, 1000), (900, 900)) is not None
