"""The memory of a step as a single HTML page: a verdict, a chart of live bytes by layer, and a table of modules.

The page contains its data (`memory_chart_data.py`) and its script, and loads nothing from the network. It lists the
largest values of the layer under the pointer: bytes, name, type, module and source line. A click on a column heading
sorts the table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..analysis.memory.timeline import Timeline
from ..support.counted import counted
from ..support.units import format_bytes
from .html_page import page
from .memory_chart_data import chart_data

_SCRIPT = """\
const WIDTH = 1000, HEIGHT = 300, ROWS = 8;

// A polygon for each layer of a timeline, to be drawn from the top of the stack down, so that no seams are visible.
function polygons(timeline, top) {
  const edges = timeline.bounds.map(bound => WIDTH * bound / timeline.operations.length);
  const heights = edges.slice(1).map(() => 0);
  return timeline.layers.map(layer => {
    layer.bytes.forEach((bytes, column) => heights[column] += bytes);
    const points = heights.flatMap((bytes, column) => {
      const y = HEIGHT * (1 - bytes / top);
      return [`${edges[column].toFixed(2)},${y.toFixed(2)}`, `${edges[column + 1].toFixed(2)},${y.toFixed(2)}`];
    });
    return `0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`;
  });
}

// The column at a share of the width.
function columnAt(timeline, share) {
  const operation = share * timeline.operations.length;
  const next = timeline.bounds.findIndex(bound => bound > operation);
  return next < 0 ? timeline.shown.length - 1 : Math.max(0, next - 1);
}

// The layer at a height in bytes, or the lowest one above all layers.
function layerAt(timeline, column, bytes) {
  let sum = 0;
  for (const [number, layer] of timeline.layers.entries()) {
    sum += layer.bytes[column];
    if (bytes < sum) return number;
  }
  return 0;
}

function valuesAt(timeline, layer, operation) {
  return timeline.values
    .filter(value => value.layer === layer && value.first <= operation && operation <= value.last)
    .sort((one, other) => other.bytes - one.bytes);
}

function describe(timeline, column, layer) {
  const operation = timeline.shown[column], values = valuesAt(timeline, layer, operation);
  const peak = operation === timeline.peak ? ", the peak" : "";
  const inside = timeline.inside[column] ? `, of it ${human(timeline.inside[column])} inside the operation` : "";
  const others = values.slice(ROWS), more = others.reduce((sum, value) => sum + value.bytes, 0);
  return {
    title: `operation ${operation}: ${timeline.operations[operation]} (${timeline.phases[operation]}), ` +
      `${human(timeline.live[column])} live${peak}${inside}`,
    layer: `${timeline.layers[layer].name}: ${human(timeline.layers[layer].bytes[column])}`,
    rows: values.slice(0, ROWS).map(value => [human(value.bytes), value.name || value.label, value.type, value.module,
      value.source, value.recomputed ? `${value.phase}, recomputed` : value.phase]),
    more: others.length ? `and ${others.length} smaller: ${human(more)}` : "",
  };
}

function compare(one, other) {
  return typeof one === "number" ? one - other : String(one).localeCompare(String(other));
}

function element(name, text, kind) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}

function fill(table, heads, rows) {
  const head = element("tr"), numbers = heads.map((_, at) => rows.length > 0 && /^[\\d.]+ \\w*B$/.test(rows[0][at]));
  heads.forEach((name, at) => head.append(element("th", name, numbers[at] ? "number" : "")));
  const lines = rows.map(row => {
    const line = element("tr");
    row.forEach((cell, at) => line.append(element("td", cell, numbers[at] ? "number" : heads[at])));
    return line;
  });
  table.replaceChildren(head, ...lines);
}

// Every second stage is shaded: the backward pass.
function shaded(timeline) {
  const x = operation => (WIDTH * operation / timeline.operations.length).toFixed(2);
  return timeline.stages.filter((_, at) => at % 2).map(({ start, end }) =>
    `<rect class="band" x="${x(start)}" y="0" width="${x(end - start)}" height="${HEIGHT}"/>`).join("");
}

function show(timeline, parent, top) {
  const box = element("section", undefined, "chart");
  const shapes = polygons(timeline, top).map((points, at) =>
    `<polygon points="${points}" fill="${timeline.layers[at].colour}"/>`).reverse();
  box.append(element("h2", `${timeline.name}: peak ${human(timeline.live_peak)}`));
  box.insertAdjacentHTML("beforeend", `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">` +
    `${shaded(timeline)}${shapes.join("")}` +
    `<line y1="0" y2="${HEIGHT}" stroke="#c00" vector-effect="non-scaling-stroke"/></svg>`);
  const stages = element("div", undefined, "stages faint"), legend = element("div", undefined, "legend");
  for (const stage of timeline.stages) {
    const share = (stage.end - stage.start) / timeline.operations.length;
    const label = element("div", share > 0.09 ? stage.name : "\\u00a0");
    label.style.width = `${100 * share}%`;
    label.title = stage.name;
    stages.append(label);
  }
  for (const layer of timeline.layers) {
    const entry = element("span", layer.name), colour = element("i");
    colour.style.background = layer.colour;
    entry.prepend(colour);
    legend.append(entry);
  }
  const values = element("div", undefined, "values");
  const title = element("p"), table = element("table"), more = element("p");
  values.append(title, table, more);
  box.append(stages, legend, values);
  parent.append(box);
  const svg = box.querySelector("svg"), line = box.querySelector("line");
  const point = (column, layer) => {
    const x = WIDTH * (timeline.shown[column] + 0.5) / timeline.operations.length;
    const description = describe(timeline, column, layer);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const heading = element("span", description.title, "faint");
    title.replaceChildren(heading, element("br"), element("strong", description.layer));
    fill(table, ["bytes", "value", "type", "module", "source", "phase"], description.rows);
    more.textContent = description.more;
  };
  svg.addEventListener("mousemove", event => {
    const place = svg.getBoundingClientRect();
    const column = columnAt(timeline, (event.clientX - place.left) / place.width);
    point(column, layerAt(timeline, column, top * (1 - (event.clientY - place.top) / place.height)));
  });
  const highest = timeline.shown.indexOf(timeline.peak), bytes = timeline.layers.map(layer => layer.bytes[highest]);
  point(highest, bytes.indexOf(Math.max(...bytes)));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, at) => {
    head.classList.add("sortable");
    head.title = "sort";
    let sign = -1;
    head.addEventListener("click", () => {
      const key = ({ cells }) => cells[at].dataset.number ? Number(cells[at].dataset.number) : cells[at].textContent;
      body.append(...[...body.rows].sort((one, other) => sign * compare(key(one), key(other))));
      sign = -sign;
    });
  });
}

if (typeof document !== "undefined") {
  const timelines = JSON.parse(document.getElementById("data").textContent);
  const top = Math.max(1, ...timelines.map(timeline => timeline.live_peak));
  for (const timeline of timelines)
    if (timeline.operations.length) show(timeline, document.getElementById("charts"), top);
  document.querySelectorAll("table.modules").forEach(sortable);
}
"""


@dataclass(frozen=True)
class PageFacts:
    """Text and tables that precede the charts of a page.

    Attributes:
        verdict: The verdict, in one line.
        numbers: Rows of cells: quantity, before, after, ratio. The first row holds the column headings.
        modules: For each module, its name and three byte counts: saved by the plain step, saved by the rewritten
            step, and recomputed.
        remarks: Remarks of the rewrite.
    """

    verdict: str
    numbers: tuple[tuple[str, ...], ...] = ()
    modules: tuple[tuple[str, int, int, int], ...] = ()
    remarks: tuple[str, ...] = ()


def to_html(timelines: Sequence[tuple[str, Timeline]], title: str, facts: PageFacts | None = None) -> str:
    """Return an HTML page with a chart for each (name, timeline), all on the same scale."""
    data = json.dumps([{"name": name, **chart_data(timeline)} for name, timeline in timelines])
    return page(title, data, _SCRIPT, "" if facts is None else _body(facts))


def _body(facts: PageFacts) -> str:
    parts = [f'<p class="verdict">{escape(facts.verdict)}</p>']
    if facts.numbers:
        head, *rows = facts.numbers
        parts.append(_table("numbers", head, [[(cell, None) for cell in row] for row in rows]))
    if facts.modules:
        head = ("module", "saved, plain", "saved now", "recomputed")
        rows = [[(name, None), *((format_bytes(size), size) for size in sizes)] for name, *sizes in facts.modules]
        parts += ["<h2>Modules: values for the backward pass</h2>", _table("modules", head, rows)]
    if facts.remarks:
        lines = "".join(f"<li>{escape(remark)}</li>" for remark in facts.remarks)
        parts.append(f"<details><summary>{counted(len(facts.remarks), 'remark')}</summary><ul>{lines}</ul></details>")
    return "\n".join(parts)


def _table(kind: str, head: Sequence[str], rows: Sequence[Sequence[tuple[str, int | None]]]) -> str:
    """Return an HTML table. Each cell is a string and, optionally, a number to sort by."""
    names = "".join(f'<th class="{"number" if at else "name"}">{escape(name)}</th>' for at, name in enumerate(head))
    lines = "".join(f"<tr>{''.join(map(_cell, range(len(row)), row))}</tr>" for row in rows)
    return f'<table class="{kind}"><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>'


def _cell(at: int, cell: tuple[str, int | None]) -> str:
    text, number = cell
    sort_key = "" if number is None else f' data-number="{number}"'
    return f'<td class="{"number" if at else "name"}"{sort_key}>{escape(text)}</td>'
