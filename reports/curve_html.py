"""Interactive chart of trade-off curves as a single HTML file.

The page shows the numbers of the point nearest to the pointer, and the recomputed operations of each segment. The file
contains its data and its script, and loads nothing from the network.
"""

from __future__ import annotations

from collections.abc import Sequence

from .curve import Curve, to_json
from .html_page import page

_SCRIPT = """\
const WIDTH = 1000, HEIGHT = 360, EDGE = 50;

function scaleOf(curve) {
  const high = Math.max(1e-6, ...[...curve.points, ...curve.markers].map(point => point.percent));
  return {
    x: bytes => EDGE + (WIDTH - 2 * EDGE) * bytes / (1.06 * curve.plain_peak_bytes),
    y: percent => HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * percent / high,
  };
}

// The points that the pointer can select: position, and text to show.
function places(curve) {
  const share = bytes => `${human(bytes)}, ${(bytes / curve.plain_peak_bytes).toFixed(4)} of the plain peak`;
  const segments = point => point.recomputed_segments.map(row =>
    `  ${row.segment || "outside segments"}: ${row.executions} recomputed, ${Number(row.percent.toPrecision(3))} %` +
    (row.values.length ? `: ${row.values.join(", ")}` : ""));
  const points = curve.points.map(point => ({ bytes: point.budget_bytes, percent: point.percent, text: [
    `budget ${share(point.budget_bytes)}`, `peak   ${share(point.peak_bytes)}`,
    `extra  ${Number(point.percent.toPrecision(3))} %, ` + (point.bound_percent === null ? point.bound_by :
      `at least ${Number(point.bound_percent.toPrecision(3))} % is proved (${point.bound_by})`),
    `found by ${point.found_by}${point.finished ? "" : "; search stopped early"}`, ...segments(point)].join("\\n") }));
  const others = curve.markers.map(point => ({ bytes: point.peak_bytes, percent: point.percent,
    text: `${point.name}\\npeak   ${share(point.peak_bytes)}\\nextra  ${Number(point.percent.toPrecision(3))} %` }));
  const refused = curve.refused.map(point => ({ bytes: point.budget_bytes, percent: 0,
    text: `budget ${share(point.budget_bytes)}\\n` +
      `${point.proved ? "no plan, proved" : "no plan found"}: ${point.reason}` }));
  return [...points, ...others, ...refused];
}

function nearest(candidates, scale, x, y) {
  const distance = point => Math.hypot(scale.x(point.bytes) - x, scale.y(point.percent) - y);
  return candidates.reduce((best, point) => distance(point) < distance(best) ? point : best);
}

function draw(curve) {
  const scale = scaleOf(curve), at = (bytes, percent) => `${scale.x(bytes)},${scale.y(percent)}`;
  const costs = curve.points.map(point => at(point.budget_bytes, point.percent));
  const isProved = curve.points.every(point => point.bound_percent !== null);
  const bounds = !isProved ? [] : curve.points.map(point => at(point.budget_bytes, point.bound_percent));
  const dots = (all, look) => all.map(point => `<circle cx="${point[0]}" cy="${point[1]}" r="4" ${look}/>`).join("");
  const pair = (bytes, percent) => [scale.x(bytes), scale.y(percent)];
  const base = scale.y(0);
  return `<rect x="${EDGE}" y="${EDGE}" width="${Math.max(0, scale.x(curve.minimum_bytes) - EDGE)}" ` +
    `height="${base - EDGE}" fill="#e2e2e2"/>` +
    `<text x="${EDGE + 4}" y="${EDGE - 6}">${!curve.minimum_bytes ? "no bound is proved by this model" :
      `no plan below ${human(curve.minimum_bytes)}, proved`}</text>` +
    `<polyline points="${EDGE},${EDGE} ${EDGE},${base} ${WIDTH - EDGE},${base}" fill="none" stroke="#777"/>` +
    `<text x="${WIDTH - EDGE}" y="${base + 20}" text-anchor="end">budget, up to the plain peak of ` +
    `${human(curve.plain_peak_bytes)}</text>` +
    `<polygon points="${isProved ? [...costs, ...[...bounds].reverse()].join(" ") : ""}" fill="#f6dca8"/>` +
    `<polyline points="${bounds.join(" ")}" fill="none" stroke="#e69f00" stroke-dasharray="6 4"/>` +
    `<polyline points="${costs.join(" ")}" fill="none" stroke="#0d4079"/>` +
    dots(curve.points.map(point => pair(point.budget_bytes, point.percent)), 'fill="#0d4079"') +
    dots(curve.markers.map(point => pair(point.peak_bytes, point.percent)), 'fill="none" stroke="#222"') +
    dots(curve.refused.map(point => pair(point.budget_bytes, 0)), 'fill="#b00020"') +
    '<circle class="here" r="7" fill="none" stroke="#c00"/>';
}

function show(curve, parent) {
  const box = document.createElement("section"), scale = scaleOf(curve), points = places(curve);
  box.innerHTML = `<h2></h2><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" style="height: auto">${draw(curve)}</svg>` +
    "<p>Blue: best plan found. Orange: proven lower bound. Rings: other planners. Red: no plan.</p>" +
    "<div class='text'></div>";
  box.querySelector("h2").textContent = curve.name;
  const svg = box.querySelector("svg");
  const select = point => {
    box.querySelector(".here").setAttribute("cx", scale.x(point.bytes));
    box.querySelector(".here").setAttribute("cy", scale.y(point.percent));
    box.querySelector(".text").textContent = point.text;
  };
  svg.addEventListener("mousemove", event => {
    const place = svg.getBoundingClientRect(), factor = WIDTH / place.width;
    select(nearest(points, scale, (event.clientX - place.left) * factor, (event.clientY - place.top) * factor));
  });
  parent.append(box);
  if (points.length) select(points[0]);
}

if (typeof document !== "undefined")
  for (const curve of JSON.parse(document.getElementById("data").textContent))
    show(curve, document.getElementById("charts"));
"""


def to_html(curves: Sequence[Curve], title: str) -> str:
    """Return an HTML page with a chart for each curve."""
    return page(title, to_json(curves), _SCRIPT)
