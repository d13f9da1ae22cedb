"""The HTML page of the memory timeline: self-contained, and shown completely by a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from recompute.analysis.memory.timeline import Buffer, Timeline
from recompute.reports.memory_chart_data import COLUMNS, chart_data
from recompute.reports.memory_html import PageFacts, to_html
from recompute.test.unit.reports.page_scripts import scripts_of

KIB = 2**10
TIMELINE = Timeline(
    operations=("test.forward", "test.loop", "test.backward"),
    phases=("primal", "primal", "gradient"),
    buffers=(
        Buffer(
            label="stablehlo.tanh",
            phase="primal",
            segment="</script>",
            bytes=4 * KIB,
            first=0,
            last=2,
            recomputed=False,
        ),
        Buffer(
            label="stablehlo.exp",
            phase="gradient",
            segment="",
            bytes=8 * KIB,
            first=2,
            last=2,
            recomputed=True,
            name="%e",
            source="m.py:3:4",
            module="",
            type="f32[2048]",
        ),
    ),
    inner_bytes=(0, KIB, 0),
    live_bytes=(4 * KIB, 5 * KIB, 12 * KIB),
    argument_bytes=0,
    result_bytes=0,
    aliased_bytes=0,
)
PAGE = to_html([("f", TIMELINE)], "a < b")


def scripts() -> list[str]:
    return scripts_of(PAGE)


def test_page_contains_layers() -> None:
    data, _ = scripts()
    (chart,) = json.loads(data)
    assert chart["name"] == "f" and chart["live"] == list(TIMELINE.live_bytes) and chart["live_peak"] == 12 * KIB
    assert [(layer["name"], layer["bytes"]) for layer in chart["layers"]] == [
        ("saved: </script>", [4 * KIB] * 3),
        ("recomputed", [0, 0, 8 * KIB]),
        ("other temporaries", [0, KIB, 0]),
    ]
    assert [(value["name"], value["layer"]) for value in chart["values"]] == [("%e", 1), ("", 0)]
    assert [(stage["name"], stage["start"], stage["end"]) for stage in chart["stages"]] == [
        ("forward", 0, 2),
        ("backward", 2, 3),
    ]
    assert "<title>a &lt; b</title>" in PAGE


def test_page_makes_no_network_requests() -> None:
    assert not re.search(r"https?:|src=|href=|@import|fetch\(", PAGE)


def test_page_has_both_color_schemes_and_no_pre_text() -> None:
    assert "<pre" not in PAGE and "prefers-color-scheme: dark" in PAGE


def in_node(calls: str) -> list[str]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run the page's script with")
    data, script = scripts()
    program = f"const [timeline] = {data};{script}{calls}"
    return subprocess.run([node, "-e", program], capture_output=True, text=True, check=True).stdout.splitlines()


def test_pointer_shows_the_values_of_a_layer() -> None:
    message = json.loads(in_node("console.log(JSON.stringify(describe(timeline, 2, layerAt(timeline, 2, 5000))));")[0])
    assert message == {
        "title": "operation 2: test.backward (gradient), 12.0 KiB live, the peak",
        "layer": "recomputed: 8.0 KiB",
        "rows": [["8.0 KiB", "%e", "f32[2048]", "", "m.py:3:4", "gradient, recomputed"]],
        "more": "",
    }
    message = json.loads(in_node("console.log(JSON.stringify(describe(timeline, 1, 0)));")[0])
    assert message["title"] == "operation 1: test.loop (primal), 5.0 KiB live, of it 1.0 KiB inside the operation"
    assert message["rows"] == [["4.0 KiB", "stablehlo.tanh", "", "", "", "primal"]]


def test_pointer_selects_column_and_layer() -> None:
    calls = "console.log([0, 0.34, 0.99, 1].map(share => columnAt(timeline, share)).join());"
    calls += "console.log([0, 4095, 4096, 99999].map(bytes => layerAt(timeline, 2, bytes)).join());"
    assert in_node(calls) == ["0,1,2,2", "0,0,1,0"]


def test_stacked_layers_reach_their_sum() -> None:
    """Layers are stacked: at 300 pixels for 24 KiB, a layer of 4 KiB ends at y = 250, and all 12 KiB end at y = 150."""
    lines = in_node("for (const line of polygons(timeline, 24 * 1024)) console.log(line);")
    highest = [min(float(point.split(",")[1]) for point in line.split()) for line in lines]
    assert highest == [250, 150, 150]


def test_backward_pass_is_shaded() -> None:
    (line,) = in_node("console.log(shaded(timeline));")
    assert line == '<rect class="band" x="666.67" y="0" width="333.33" height="300"/>'


def test_facts_precede_the_charts() -> None:
    facts = PageFacts(
        "f: <saves>", (("", "plain"), ("temporaries", "12.0 KiB")), (("LM/Block_0", 4096, 0, 8192),), ("why",)
    )
    text = to_html([("f", TIMELINE)], "f", facts)
    assert "f: &lt;saves&gt;" in text and '<td class="number">12.0 KiB</td>' in text and "<li>why</li>" in text
    assert '<td class="name">LM/Block_0</td><td class="number" data-number="4096">4.0 KiB</td>' in text


def test_large_timelines_are_drawn_in_columns() -> None:
    count = 10 * COLUMNS
    live = tuple(KIB * (at == 7) + at % 3 for at in range(count))
    data = chart_data(Timeline(("op",) * count, ("primal",) * count, (), (0,) * count, live, 0, 0, 0))
    assert len(data["shown"]) == COLUMNS and data["shown"][0] == data["peak"] == 7 and data["bounds"][-1] == count


def test_empty_timeline_gives_a_page() -> None:
    assert chart_data(Timeline((), (), (), (), (), 0, 0, 0))["shown"] == []


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = """<script>
const cut = [...document.querySelectorAll("body *")]
  .filter(box => box.children.length === 0 && box.textContent.trim() && getComputedStyle(box).display !== "none")
  .filter(box => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
  .map(box => `${box.tagName} ${box.textContent}`);
const svg = document.querySelector("svg"), place = svg.getBoundingClientRect();
const at = (x, y) => new MouseEvent("mousemove", { clientX: place.left + x, clientY: place.top + y, bubbles: true });
svg.dispatchEvent(at(place.width * 0.9, place.height * 0.4));
const hover = document.querySelector(".values").textContent;
document.querySelectorAll("table.modules th")[1].click();
const first = document.querySelector("table.modules tbody td").textContent;
const stages = [...document.querySelectorAll(".chart:first-of-type .stages div")]
  .map(box => [box.textContent, Math.round(100 * box.getBoundingClientRect().width / place.width)]);
const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
const result = document.createElement("div");
result.id = "measured";
result.textContent = JSON.stringify({ cut, wide, hover, first, stages, width: window.innerWidth });
document.body.append(result);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium to show the page with")
def test_browser_renders_whole_page(tmp_path: Path) -> None:
    """The page fits in 1200 pixels without sideways scrolling; bands, labels, the pointer and the table work."""
    long = "Transformer/Encoder/" + "Layer_with_a_long_name/" * 6
    buffers = tuple(replace(buffer, module=f"{long}{at}") for at, buffer in enumerate(TIMELINE.buffers))
    modules = (("small", 1, 1, 1), ("large", 4096, 0, 8192))
    facts = PageFacts("verdict " * 30, (("", "plain"), ("temporaries", "12.0 KiB")), modules, ("a remark " * 40,))
    page = to_html([("plain", replace(TIMELINE, buffers=buffers)), ("recomputed", TIMELINE)], "step", facts)
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"{MEASURE}</body>"))
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    flags += f"--disable-component-update --disable-sync --window-size=1200,2000 --user-data-dir={tmp_path}/profile"
    command = [CHROMIUM, *flags.split(), "--virtual-time-budget=2000", "--dump-dom", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300).stdout
    match = re.search(r'<div id="measured">(.*?)</div>', shown)
    assert match, shown[-2000:]
    measured = json.loads(unescape(match[1]))
    assert measured["width"] == 1200 and not measured["wide"] and measured["cut"] == []
    assert "recomputed: 8.0 KiB" in measured["hover"] and "m.py:3:4" in measured["hover"]
    assert measured["first"] == "large"
    assert measured["stages"] == [["forward", 67], ["backward", 33]]
