"""Repeated remarks are printed once, with their number and places; amounts in JSON are exact."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from recompute.driver.cache.stored_rewrite import remark_from_json, remark_to_json
from recompute.support.remarks import Remark, RemarkKind, Topic, lines_of, repetition_suffix
from recompute.tools.diagnostics.reporting import Diagnostic, merge_remarks, to_yaml


def remark_at(line: int, reason: str = "func.call is not recomputed") -> Remark:
    module = ModuleOp([])
    module.location = FileLineColLoc(StringAttr("m.py"), IntAttr(line), IntAttr(1))
    return Remark(module, reason)


@pytest.mark.parametrize(
    ("count", "places", "words"),
    [
        (1, [], ""),
        (2, [], " (2 times)"),
        (2, ["a:1:1"], " (2 times: also at a:1:1)"),
        (5, ["a", "b", "c", "d"], " (5 times: also at a, b, c and d)"),
        (9, ["a", "b", "c", "d", "e"], " (9 times: also at a, b, c and 2 more)"),
    ],
)
def test_repetition_states_number_and_places(count: int, places: list[str], words: str) -> None:
    assert repetition_suffix(count, places) == words


def test_repeated_remarks_are_one_line() -> None:
    remarks = [remark_at(1), remark_at(2, "another"), remark_at(3), remark_at(1), "a text", "a text"]
    assert lines_of(remarks) == [
        "m.py:1:1: remark: func.call is not recomputed (3 times: also at m.py:3:1)",
        "m.py:2:1: remark: another",
        "a text (2 times)",
    ]


def test_diagnostics_merge_if_equal_except_in_position() -> None:
    first = Diagnostic("remark", "m.py", 1, 1, "words", "missed", "a")
    passed, by_another = replace(first, category="passed"), replace(first, pass_name="b")
    third = replace(first, line=3)
    actual, *others = merge_remarks([first, passed, third, by_another, third])
    assert str(actual) == "m.py:1:1: remark: words (3 times: also at m.py:3:1)"
    assert others == [passed, by_another]
    assert json.loads(actual.to_json())["count"] == 3 and json.loads(actual.to_json())["others"] == ["m.py:3:1"]
    assert "(3 times: also at m.py:3:1)" in to_yaml(actual)
    assert "count" not in json.loads(first.to_json())


def test_amounts_and_segments_survive_the_cache() -> None:
    remark = replace(remark_at(1), kind=RemarkKind.PASSED, topic=Topic.RECOMPUTED, amounts=(("freed_bytes", 8192),))
    remark = replace(remark, segments=("block0", "block1"))
    read = remark_from_json(json.loads(json.dumps(remark_to_json(replace(remark, function="main")))))
    assert (read.reason, read.function, read.amounts) == (remark.reason, "main", (("freed_bytes", 8192),))
    assert read.segments == ("block0", "block1")


def test_merged_remarks_of_several_modules_are_merged_again() -> None:
    first = [Diagnostic("remark", "a.mlir", line, 1, "the XLA:CPU model") for line in (1, 9)]
    second = [Diagnostic("remark", "a.mlir", line, 1, "the XLA:CPU model") for line in (20, 30)]
    (merged,) = merge_remarks([*merge_remarks(first), *merge_remarks(second)])
    assert (
        str(merged)
        == "a.mlir:1:1: remark: the XLA:CPU model (4 times: also at a.mlir:9:1, a.mlir:20:1 and a.mlir:30:1)"
    )
