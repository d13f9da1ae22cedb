"""Memory over a step as one HTML file: the curve; the pointer shows the operation and the largest live buffers.

The file contains its data and its script; it loads nothing from the network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ..analysis.memory.timeline import Timeline
from .html_page import page

_SCRIPT = """\
const WIDTH = 1000, HEIGHT = 300, ROWS = 10;

function percent(part, whole) {
  return (100 * part / Math.max(1, whole)).toFixed(1) + " %";
}

function alive(timeline, index) {
  return timeline.buffers
    .filter(buffer => buffer.first <= index && index <= buffer.last)
    .sort((one, other) => other.bytes - one.bytes);
}

function describe(timeline, index) {
  const buffers = alive(timeline, index);
  const lines = buffers.slice(0, ROWS).map(buffer =>
    `${human(buffer.bytes).padStart(10)}  ${percent(buffer.bytes, timeline.live_bytes[index]).padStart(6)}  ` +
    `${buffer.label}  ${buffer.name ? buffer.name + "  " : ""}${buffer.source ? buffer.source + "  " : ""}` +
    `${buffer.segment || "outside segments"}  ${buffer.phase}` +
    `${buffer.recomputed ? ", recomputed" : ""}  from ${buffer.first} to ${buffer.last}`);
  const rest = buffers.slice(ROWS).reduce((sum, buffer) => sum + buffer.bytes, 0);
  if (buffers.length > ROWS) lines.push(`${human(rest).padStart(10)}  and ${buffers.length - ROWS} smaller`);
  const inner = timeline.inner_bytes[index];
  if (inner) lines.unshift(`${human(inner).padStart(10)}  inside of the operation`);
  const at = index === timeline.live_bytes.indexOf(Math.max(...timeline.live_bytes)) ? ", the peak" : "";
  return [`operation ${index}: ${timeline.operations[index]} (${timeline.phases[index]})`,
    `${human(timeline.live_bytes[index])} alive${at}`, ...lines].join("\\n");
}

function outline(timeline, top) {
  const count = timeline.live_bytes.length;
  const points = timeline.live_bytes.flatMap((bytes, index) => {
    const y = HEIGHT * (1 - bytes / top);
    return [`${WIDTH * index / count},${y}`, `${WIDTH * (index + 1) / count},${y}`];
  });
  return `0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`;
}

function show(name, timeline, parent, top) {
  const box = document.createElement("section");
  box.innerHTML = `<h2></h2><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">` +
    `<polygon points="${outline(timeline, top)}" fill="#4878a8"/>` +
    `<line y1="0" y2="${HEIGHT}" stroke="#c00"/></svg><pre></pre>`;
  box.querySelector("h2").textContent = `@${name}: peak ${human(Math.max(0, ...timeline.live_bytes))}`;
  const svg = box.querySelector("svg"), count = timeline.operations.length;
  const point = index => {
    const x = WIDTH * (index + 0.5) / count;
    box.querySelector("line").setAttribute("x1", x);
    box.querySelector("line").setAttribute("x2", x);
    box.querySelector("pre").textContent = describe(timeline, index);
  };
  svg.addEventListener("mousemove", event => {
    const place = svg.getBoundingClientRect();
    point(Math.max(0, Math.min(count - 1, Math.floor(count * (event.clientX - place.left) / place.width))));
  });
  parent.append(box);
  if (count) point(timeline.live_bytes.indexOf(Math.max(...timeline.live_bytes)));
}

function highest(timelines) {
  return timelines.reduce((top, [, timeline]) => Math.max(top, ...timeline.live_bytes), 1);
}

if (typeof document !== "undefined") {
  const timelines = JSON.parse(document.getElementById("data").textContent);
  for (const [name, timeline] of timelines)
    show(name, timeline, document.getElementById("charts"), highest(timelines));
}
"""


def to_html(timelines: Sequence[tuple[str, Timeline]], title: str) -> str:
    """One page with a chart for each (name, timeline), all on one scale."""
    data = json.dumps([(name, asdict(timeline)) for name, timeline in timelines])
    return page(title, data, _SCRIPT, "height: 320px", 20)
