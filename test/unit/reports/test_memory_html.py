"""The HTML page holds the timeline and needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import asdict, replace
from html.parser import HTMLParser

import pytest
from typing_extensions import override

from recompute.analysis.memory.timeline import Buffer, Timeline
from recompute.reports.memory_html import to_html

KIB = 2**10
TIMELINE = Timeline(
    operations=("test.forward", "test.loop", "test.backward"),
    phases=("primal", "primal", "gradient"),
    buffers=(
        Buffer("stablehlo.tanh", "primal", "</script>", 4 * KIB, 0, 2, False),
        Buffer("stablehlo.exp", "gradient", "", 8 * KIB, 2, 2, True, "%e", "m.py:3:4"),
    ),
    inner_bytes=(0, KIB, 0),
    live_bytes=(4 * KIB, 5 * KIB, 12 * KIB),
    argument_bytes=0,
    result_bytes=0,
    aliased_bytes=0,
)
PAGE = to_html([("f", TIMELINE)], "a < b")


class Scripts(HTMLParser):
    """The contents of the script elements, as a browser separates them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = False

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"

    @override
    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    @override
    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found.append(data)


def scripts() -> list[str]:
    reader = Scripts()
    reader.feed(PAGE)
    return reader.found


def test_the_page_holds_the_timeline() -> None:
    data, _ = scripts()
    assert json.loads(data) == [["f", json.loads(json.dumps(asdict(TIMELINE)))]]
    assert "<title>a &lt; b</title>" in PAGE


def test_it_asks_nothing_of_the_network() -> None:
    assert not re.search(r"https?:|src=|href=|@import|fetch\(", PAGE)


def test_the_pointer_shows_the_operation_and_what_is_alive() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run the page's script with")
    data, script = scripts()
    show = f"const [[, timeline]] = {data}; for (const i of [1, 2]) console.log(describe(timeline, i));"
    done = subprocess.run([node, "-e", script + show], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "operation 1: test.loop (primal)",
        "5.0 KiB alive",
        "   1.0 KiB  inside of the operation",
        "   4.0 KiB  80.0 %  stablehlo.tanh  </script>  primal  from 0 to 2",
        "operation 2: test.backward (gradient)",
        "12.0 KiB alive, the peak",
        "   8.0 KiB  66.7 %  stablehlo.exp  %e  m.py:3:4  outside segments  gradient, recomputed  from 2 to 2",
        "   4.0 KiB  33.3 %  stablehlo.tanh  </script>  primal  from 0 to 2",
    ]


def test_several_share_one_scale() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run the page's script with")
    half = replace(TIMELINE, live_bytes=(2 * KIB, 3 * KIB, 6 * KIB))
    page = Scripts()
    page.feed(to_html([("before", TIMELINE), ("after", half)], "two"))
    data, script = page.found
    show = f"const all = {data}; for (const [, one] of all) console.log(outline(one, highest(all)));"
    done = subprocess.run([node, "-e", script + show], capture_output=True, text=True, check=True)
    # Of a height of 300: 12 KiB reach the top, which is 0, 6 KiB half of it.
    highest = [min(float(point.split(",")[1]) for point in line.split()) for line in done.stdout.splitlines()]
    assert highest == [0, 150]
