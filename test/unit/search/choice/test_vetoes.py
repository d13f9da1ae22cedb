"""A module is left unchanged only if none of its emitted steps is an improvement; each step then has its reason."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from recompute.analysis.memory.peaks import Peaks
from recompute.search.choice.vetoes import why_all_worse, why_worse


def peaks(in_order: int, xla: int) -> Peaks:
    return Peaks.known(in_order, in_order, lambda: xla)


@pytest.mark.parametrize(("last_peak", "vetoed"), [(2000, ["first", "second"]), (500, [])])
def test_every_step_must_be_worse(last_peak: int, vetoed: list[str]) -> None:
    functions = [FuncOp(name, ((), ())) for name in ("first", "second")]
    before = {"first": peaks(1000, 1000), "second": peaks(1000, 1000)}
    emitted = dict(zip(functions, [peaks(1500, 1500), peaks(last_peak, last_peak)], strict=True))
    remarks = why_all_worse(before, emitted, keeps_barriers=True)
    assert [remark.operation for remark in remarks] == [item for item in functions if item.sym_name.data in vetoed]
    assert all(
        f"to {size} bytes" in remark.reason or f"({size} bytes)" in remark.reason
        for remark, size in zip(remarks, (1500, 2000), strict=False)
    )


def test_step_with_forced_copies_has_no_veto() -> None:
    function = FuncOp("step", ((), ()))
    assert why_all_worse({}, {function: peaks(2000, 2000)}, keeps_barriers=True) == ()


def test_peaks_of_the_xla_model_are_not_computed_for_a_target_without_barriers() -> None:
    """The step may have changed since the forecast, so that the model can no longer read it."""

    def unreadable() -> int:
        raise KeyError("the step has changed")

    before, after = (Peaks.known(size, size, unreadable) for size in (1000, 999))
    assert why_worse(before, after, keeps_barriers=False) is not None
