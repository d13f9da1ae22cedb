"""The list of values at the peak names the largest ones, and gives a total for the others."""

from __future__ import annotations

from recompute.analysis.memory.timeline import Buffer, Timeline
from recompute.reports.holding import holding_of, lines_of

SIZES = (5, 40, 20, 40, 0)
TIMELINE = Timeline(
    operations=("a", "b"),
    phases=("primal", "gradient"),
    buffers=(
        *(
            Buffer(
                label="op",
                phase="primal",
                segment="",
                bytes=size,
                first=0,
                last=1,
                recomputed=False,
                name=f"%v{at}",
                source=f"m.py:{at}:1",
            )
            for at, size in enumerate(SIZES)
        ),
        Buffer(label="op", phase="primal", segment="", bytes=1000, first=0, last=0, recomputed=False, name="%dead"),
        Buffer(
            label="op",
            phase="gradient",
            segment="",
            bytes=895,
            first=1,
            last=1,
            recomputed=True,
            name="jit(step)/transpose(jvp(a_long_scope))/with_a_long_end/mul",
        ),
    ),
    inner_bytes=(0, 200),
    live_bytes=(1105, 1200),
    argument_bytes=0,
    result_bytes=0,
    aliased_bytes=0,
)


def test_listed_values_and_remainder_sum_to_the_peak() -> None:
    result = holding_of(TIMELINE, most=3)
    assert [(item.name[:3], item.bytes) for item in result.largest] == [("jit", 895), ("%v1", 40), ("%v3", 40)]
    # %v0 and %v2, and what the operation needs inside; %v4 has no bytes.
    assert (result.more, result.more_bytes) == (3, 225)
    assert sum(item.bytes for item in result.largest) + result.more_bytes == TIMELINE.peak_bytes
    assert result.largest[0].recomputed and result.largest[1].source == "m.py:1:1"


def test_end_of_a_long_name_is_kept() -> None:
    first, second, *_, last = list(lines_of(holding_of(TIMELINE, most=1), TIMELINE.peak_bytes))
    assert first == "largest at the peak" and "with_a_long_end/mul  op, recomputed" in second and "…" in second
    assert second.endswith("895 B  74.6 %") and last.split() == ["and", "5", "more", "305", "B", "25.4", "%"]


def test_empty_timeline_holds_nothing() -> None:
    empty = Timeline((), (), (), (), (), 0, 0, 0)
    assert holding_of(empty).largest == () and list(lines_of(holding_of(empty), 0)) == []
