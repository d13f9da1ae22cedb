"""The text, data and picture of the memory timeline, on a hand-written step of two blocks."""

# matplotlib leaves its settings untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from recompute.analysis.memory.timeline import Buffer, Timeline
from recompute.reports.memory_chart import COLUMNS, columns_of
from recompute.reports.memory_layers import BandKind, bands, kinds_of, shorten_segments, stages
from recompute.reports.memory_timeline import to_json, to_svg, to_text

MIB = 1024**2
PHASES = ("primal", "primal", "primal", "primal", "gradient", "gradient", "gradient", "update")


def timeline_of(*buffers: Buffer, phases: tuple[str, ...] = PHASES, inner_bytes: int = 0) -> Timeline:
    """Return a timeline over `phases` with these buffers; the first operation needs `inner_bytes` of scratch memory."""
    inner = (inner_bytes, *[0] * (len(phases) - 1))
    live = tuple(
        inner[index] + sum(b.bytes for b in buffers if b.first <= index <= b.last) for index in range(len(phases))
    )
    operations = tuple(f"test.op{index}" for index in range(len(phases)))
    return Timeline(operations, phases, buffers, inner, live, 3 * MIB, 2 * MIB, MIB)


def forward(segment: str, size: int, first: int, last: int) -> Buffer:
    return Buffer(
        label="stablehlo.tanh", phase="primal", segment=segment, bytes=size, first=first, last=last, recomputed=False
    )


PLAIN = timeline_of(
    forward("model/block0", 4 * MIB, 0, 6),
    forward("model/block0", MIB, 0, 1),
    forward("model/block1", 8 * MIB, 2, 5),
    Buffer(
        label="stablehlo.dot_general",
        phase="gradient",
        segment="model/block1",
        bytes=2 * MIB,
        first=4,
        last=6,
        recomputed=False,
    ),
    Buffer(label="stablehlo.multiply", phase="update", segment="", bytes=MIB // 2, first=7, last=7, recomputed=False),
    inner_bytes=512,
)
RECOMPUTED = timeline_of(
    forward("model/block0", 4 * MIB, 0, 6),
    forward("model/block1", 8 * MIB, 2, 3),
    Buffer(
        label="stablehlo.tanh",
        phase="gradient",
        segment="model/block1",
        bytes=8 * MIB,
        first=5,
        last=5,
        recomputed=True,
    ),
)


def test_saved_values_are_those_alive_in_backward():
    assert kinds_of(PLAIN) == [BandKind.SAVED, BandKind.FORWARD, BandKind.SAVED, BandKind.GRADIENT, BandKind.UPDATE]
    assert kinds_of(RECOMPUTED) == [BandKind.SAVED, BandKind.FORWARD, BandKind.RECOMPUTED]


def test_layers_are_ordered_and_sum_to_live_bytes():
    layers = bands(PLAIN)
    assert [(layer.kind, layer.segment) for layer in layers] == [
        (BandKind.SAVED, "model/block0"),
        (BandKind.SAVED, "model/block1"),
        (BandKind.GRADIENT, ""),
        (BandKind.OTHER, ""),
    ]
    assert layers[1].live_bytes == (0, 0, 8 * MIB, 8 * MIB, 8 * MIB, 8 * MIB, 0, 0)
    assert layers[-1].live_bytes == (MIB + 512, MIB, 0, 0, 0, 0, 0, MIB // 2)
    assert tuple(map(sum, zip(*(layer.live_bytes for layer in layers), strict=True))) == PLAIN.live_bytes


def test_region_paths_are_cut_where_they_diverge():
    assert shorten_segments(["model/block0/mlp", "model/block1", ""]) == {
        "model/block0/mlp": "model/block0",
        "model/block1": "model/block1",
        "": "",
    }
    assert shorten_segments(["block0/mlp"]) == {"block0/mlp": "block0/mlp"}
    assert shorten_segments([]) == {}


def test_stages_follow_from_the_phases():
    assert [(stage.name, stage.start, stage.end) for stage in stages(PLAIN)] == [
        ("forward", 0, 4),
        ("backward", 4, 7),
        ("update", 7, 8),
    ]
    assert [stage.name for stage in stages(timeline_of(phases=("primal", "")))] == ["step"]
    assert stages(timeline_of(phases=())) == []


def test_stages_allow_early_gradients_and_late_forward_operations():
    """Stages follow a schedule that runs operations when their operands exist, such as the transpose of a weight at
    once."""
    phases = ("gradient", *["primal"] * 4, "gradient", "primal", *["gradient"] * 3, "update")
    assert [(stage.name, stage.start, stage.end) for stage in stages(timeline_of(phases=phases))] == [
        ("forward", 0, 5),
        ("backward", 5, 10),
        ("update", 10, 11),
    ]
    early, late = forward("early", MIB, 0, 4), forward("late", MIB, 1, 7)
    assert kinds_of(timeline_of(early, late, phases=phases)) == [BandKind.FORWARD, BandKind.SAVED]


def test_text_shows_peak_chart_and_largest_groups():
    assert to_text(PLAIN, width=50) == (
        """\
peak of temporaries  14.0 MiB
  at test.op4, operation 5 of 8
device bytes         18.0 MiB
  = arguments 3.0 MiB + results 2.0 MiB + peak - aliased 1.0 MiB

alive at the peak
  model/block1  saved for the backward     8.0 MiB   57.1 %
  model/block0  saved for the backward     4.0 MiB   28.6 %
  model/block1  gradient                   2.0 MiB   14.3 %

largest at the peak
  stablehlo.tanh         model/block1  8.0 MiB  57.1 %
  stablehlo.tanh         model/block0  4.0 MiB  28.6 %
  stablehlo.dot_general  model/block1  2.0 MiB  14.3 %

14.0 MiB │                    ██████████
         │          ▇▇▇▇▇▇▇▇▇▇██████████
         │          ████████████████████
         │          ████████████████████
         │          ████████████████████▄▄▄▄▄
         │▇▇▇▇▇▇▇▇▇▇█████████████████████████
         │███████████████████████████████████
     0 B │███████████████████████████████████▃▃▃▃▃
         └───── forward ─────┴── backward ──┴────┴
"""
    )


def test_text_lists_largest_groups_and_sums_the_rest():
    small = (forward(f"block{index}", (index + 1) * MIB, 0, 7) for index in range(14))
    rows = to_text(timeline_of(*small)).split("alive at the peak\n")[1].split("\n\n")[0].splitlines()
    assert rows[0].split() == ["block13", "saved", "for", "the", "backward", "14.0", "MiB", "13.3", "%"]
    assert rows[-1].split() == ["2", "more", "3.0", "MiB", "2.9", "%"]
    assert len(rows) == 13


def test_text_includes_inner_bytes_of_operations():
    inside = timeline_of(forward("", MIB, 0, 1), inner_bytes=3 * MIB)
    assert "inside test.op0" in to_text(inside)


def test_several_charts_share_one_scale():
    rows = to_text(PLAIN, width=50, top_bytes=28 * MIB).splitlines()[-9:-1]
    assert rows[0].startswith("28.0 MiB │")
    assert [("█" in row) for row in rows] == [False] * 4 + [True] * 4


def test_empty_timeline_gives_a_short_text():
    assert to_text(timeline_of(phases=())) == "no operations\n"
    assert "peak of temporaries  0 B" in to_text(timeline_of())


def test_json_contains_the_timeline():
    data = json.loads(to_json(PLAIN))
    assert (data["peak_bytes"], data["peak_index"], data["device_bytes"]) == (14 * MIB, 4, 18 * MIB)
    assert data["live_bytes"] == list(PLAIN.live_bytes)
    assert [Buffer(**buffer) for buffer in data["buffers"]] == list(PLAIN.buffers)
    assert [item["bytes"] for item in data["at_peak"]["largest"]] == [8 * MIB, 4 * MIB, 2 * MIB]


def test_chart_with_fewer_columns_keeps_the_peak():
    phases = ("primal",) * (3 * COLUMNS + 1)
    spike = timeline_of(forward("", MIB, 0, len(phases) - 1), forward("", MIB, 777, 777), phases=phases)
    bounds, highest = columns_of(spike)
    assert len(bounds) == len(highest) + 1 == COLUMNS + 1
    assert (bounds[0], bounds[-1]) == (0, len(phases))
    assert 777 in highest


def test_svg_shows_peaks_and_their_ratio():
    svg = to_svg([("plain step", PLAIN), ("recomputed", RECOMPUTED)], "A step of two blocks")
    ElementTree.fromstring(svg)
    # Letters are drawn as paths; matplotlib says in a comment what they spell.
    texts = ("A step of two blocks", "peak 14.0 MiB", "peak 12.0 MiB = 0.86 × 14.0 MiB", "recomputed copies")
    assert [text for text in texts if f"<!-- {text} -->" not in svg] == []


def test_svg_is_deterministic_under_any_settings():
    import matplotlib

    first = to_svg([("plain", PLAIN)], "title")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "other", "axes.grid": True}):
        assert to_svg([("plain", PLAIN)], "title") == first


def test_svg_needs_at_least_one_timeline():
    with pytest.raises(ValueError, match="timelines: expected at least one timeline"):
        to_svg([], "title")
    to_svg([("empty", timeline_of(phases=("primal",)))], "title")


def test_missing_matplotlib_error_names_install_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]' in a checkout, or 'xdsl-recompute\[plot\]'"):
        to_svg([("plain", PLAIN)], "title")
