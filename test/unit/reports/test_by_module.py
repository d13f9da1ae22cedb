"""The table by module: bytes saved before and after, and bytes recomputed."""

from __future__ import annotations

from dataclasses import replace

from recompute.analysis.memory.timeline import Buffer, Timeline
from recompute.reports.by_module import OUTSIDE, ModuleNames, ModuleRow, module_rows


def buffer(module: str, size: int, last: int, recomputed: bool = False) -> Buffer:
    phase = "gradient" if recomputed else "primal"
    return Buffer(
        label="stablehlo.tanh",
        phase=phase,
        segment="",
        bytes=size,
        first=0 if phase == "primal" else 2,
        last=last,
        recomputed=recomputed,
        module=module,
    )


def timeline(*buffers: Buffer) -> Timeline:
    return Timeline(("a", "b", "c"), ("primal", "primal", "gradient"), buffers, (0, 0, 0), (0, 0, 0), 0, 0, 0)


def test_each_block_of_the_model_has_a_row():
    plain = timeline(
        buffer("", 1, 2),
        buffer("LM/Block_0/Dense_0", 10, 2),
        buffer("LM/Block_0/Dense_1", 5, 2),
        buffer("LM/Block_1/Dense_0", 9, 2),
        buffer("LM/Head", 7, 1),
    )
    less = timeline(buffer("LM/Block_0/Dense_0", 10, 2), buffer("LM/Block_0/Dense_1", 5, 2, recomputed=True))
    assert module_rows([(plain, less)]) == (
        ModuleRow("LM/Block_0", 15, 10, 5),
        ModuleRow("LM/Block_1", 9, 0, 0),
        ModuleRow(OUTSIDE, 1, 0, 0),
    )


def test_a_module_that_saves_nearly_all_bytes_is_divided():
    """Names go one level deeper than the level at which they first differ, if one module there saves nearly all."""
    layers = [buffer(f"M/encoder/layer{number}/Dense_0", 10, 2) for number in range(3)]
    rows = module_rows([(timeline(*layers, buffer("M/norm", 2, 2)), timeline())])
    assert [row.module for row in rows] == ["M/encoder/layer0", "M/encoder/layer1", "M/encoder/layer2", "M/norm"]


def test_a_module_precedes_its_parts():
    plain = timeline(buffer("A/x/p", 9, 2), buffer("A/y", 2, 2), buffer("A/x", 1, 2), buffer("A/x/q", 3, 2))
    rows = module_rows([(plain, timeline())])
    assert [row.module for row in rows] == ["A/x", "A/x/p", "A/x/q", "A/y"]


def test_a_single_large_value_does_not_deepen_the_names():
    rows = module_rows([(timeline(buffer("M/layers/block", 99, 2), buffer("M/norm/scale", 1, 2)), timeline())])
    assert [row.module for row in rows] == ["M/layers", "M/norm"]


def test_results_and_copies_in_loops_are_counted():
    plain = timeline(buffer("a", 4, 2), buffer("b", 2, 2))
    less = replace(
        timeline(buffer("a", 4, 1)),
        in_results=(buffer("b", 2, 2),),
        in_loops=(replace(buffer("a", 24, 0, recomputed=True), first=0),),
    )
    assert module_rows([(plain, less)]) == (ModuleRow("a", 4, 0, 24), ModuleRow("b", 2, 2, 0))


def test_timelines_name_modules_in_place_of_segments():
    named = timeline(buffer("LM/Block_0/Dense_0", 10, 2), buffer("LM/Block_1/Dense_0", 5, 2), buffer("", 1, 2))
    names = ModuleNames.of([named])
    assert [b.segment for b in names.relabel(named).buffers] == ["LM/Block_0", "LM/Block_1", OUTSIDE]
    unnamed = timeline(buffer("", 1, 2))
    assert ModuleNames.of([unnamed]).relabel(unnamed) is unnamed


def test_rows_of_several_steps_are_summed():
    actual = timeline(buffer("a", 4, 2), buffer("b", 2, 2))
    assert module_rows([(actual, replace(actual, buffers=())), (actual, actual)]) == (
        ModuleRow("a", 8, 4, 0),
        ModuleRow("b", 4, 2, 0),
    )
