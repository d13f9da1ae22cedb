"""Preparation of texts before the judge reads them."""

from __future__ import annotations

import pytest

from .spelling import resources_numbered, spelled_out, without_locations


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('#a = 1 : i32\n"foo"() {k = #a, l = #foo.kind<#a>}', '#a = 1 : i32\n"foo"() {k = #a, l = #foo.kind<1 : i32>}'),
        ("!t = i32\n#v = #foo.type_v1<!t>", "!t = i32\n#v = #foo.type_v1<i32>"),
        ("!t = i32\n#v = #vhlo.type_v1<!t>", "!t = i32\n#v = #vhlo.type_v1<!t>"),
        ("#a = 1\n#b = [#a]\n#c = #foo<#b>", "#a = 1\n#b = [#a]\n#c = #foo<[1]>"),
        ('#a = 1\n#c = #foo.k<"#a", #a.b, #a<2>, #aa>', '#a = 1\n#c = #foo.k<"#a", #a.b, #a<2>, #aa>'),
        ("#a = 1\n#a = 2\n#c = #foo.k<#a>", "#a = 1\n#a = 2\n#c = #foo.k<1>"),
        ("#c = #foo.k<#a>", "#c = #foo.k<#a>"),
        ('#a = {k // "\n = "//"}\n#c = #foo.k<#a>', '#a = {k // "\n = "//"}\n#c = #foo.k<{k \n = "//"}>'),
        (
            '#a = loc(callsite("x  y" at\n unknown\n))\n#c = #foo.k<#a>',
            '#a = loc(callsite("x  y" at\n unknown\n))\n#c = #foo.k<loc(callsite("x  y"at unknown))>',
        ),
    ],
)
def test_aliases_in_opaque_bodies_are_spelled_out(before: str, after: str) -> None:
    assert spelled_out(before) == after


def test_resources_are_numbered_by_first_use() -> None:
    text = 'dense_resource<{0}> dense_resource<{1}> dense_resource<{0}>\n      {0}: "0x01",\n      {1}: "0x02"'
    assert (
        resources_numbered(text.format("a", "b"))
        == resources_numbered(text.format("b_1", "a_2"))
        == text.format("r0", "r1")
    )


def test_locations_are_left_out() -> None:
    text = '#loc = loc("a":1:2)\n"foo"(%x) : (i32 loc("b)")) -> () loc(callsite(#loc at "c"))\n#loc1 = loc(#loc)\n'
    assert without_locations(text) == '\n"foo"(%x) : (i32) -> ()\n\n'
