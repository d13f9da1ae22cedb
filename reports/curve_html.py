"""A curve over budgets as one HTML file: the pointer shows the numbers of the nearest point, and its recomputation.

The file contains its data and its script; it loads nothing from the network.
"""

from __future__ import annotations

from collections.abc import Sequence

from .curve import Curve, to_json
from .html_page import page

_SCRIPT = """\
const WIDTH = 1000, HEIGHT = 360, EDGE = 50;

function scaled(curve) {
  const high = Math.max(1e-6, ...[...curve.points, ...curve.markers].map(one => one.percent));
  return {
    x: bytes => EDGE + (WIDTH - 2 * EDGE) * bytes / (1.06 * curve.plain_peak_bytes),
    y: percent => HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * percent / high,
  };
}

// Everything that can be pointed at: its position, and the text for it.
function places(curve) {
  const share = bytes => `${human(bytes)}, ${(bytes / curve.plain_peak_bytes).toFixed(4)} of the plain peak`;
  const again = one => one.again.map(row =>
    `  ${row.segment || "outside segments"}: ${row.executions} run again, ${row.percent.toFixed(4)} %` +
    (row.values.length ? `: ${row.values.join(", ")}` : ""));
  const points = curve.points.map(one => ({ bytes: one.budget_bytes, percent: one.percent, text: [
    `budget ${share(one.budget_bytes)}`, `peak   ${share(one.peak_bytes)}`,
    `extra  ${one.percent.toFixed(4)} %, ` + (one.bound_percent === null ? one.bound_by :
      `at least ${one.bound_percent.toFixed(4)} % is proved (${one.bound_by})`),
    `found by ${one.found_by}${one.finished ? "" : "; stopped before its end"}`, ...again(one)].join("\\n") }));
  const others = curve.markers.map(one => ({ bytes: one.peak_bytes, percent: one.percent,
    text: `${one.name}\\npeak   ${share(one.peak_bytes)}\\nextra  ${one.percent.toFixed(4)} %` }));
  const refused = curve.refused.map(one => ({ bytes: one.budget_bytes, percent: 0,
    text: `budget ${share(one.budget_bytes)}\\n${one.proved ? "no plan, proved" : "no plan found"}: ${one.reason}` }));
  return [...points, ...others, ...refused];
}

function nearest(found, scale, x, y) {
  const far = one => Math.hypot(scale.x(one.bytes) - x, scale.y(one.percent) - y);
  return found.reduce((best, one) => far(one) < far(best) ? one : best);
}

function drawn(curve) {
  const scale = scaled(curve), at = (bytes, percent) => `${scale.x(bytes)},${scale.y(percent)}`;
  const found = curve.points.map(one => at(one.budget_bytes, one.percent));
  const isProved = curve.points.every(one => one.bound_percent !== null);
  const proved = !isProved ? [] : curve.points.map(one => at(one.budget_bytes, one.bound_percent));
  const dots = (all, look) => all.map(one => `<circle cx="${one[0]}" cy="${one[1]}" r="4" ${look}/>`).join("");
  const pair = (bytes, percent) => [scale.x(bytes), scale.y(percent)];
  const base = scale.y(0);
  return `<rect x="${EDGE}" y="${EDGE}" width="${Math.max(0, scale.x(curve.minimum_bytes) - EDGE)}" ` +
    `height="${base - EDGE}" fill="#e2e2e2"/>` +
    `<text x="${EDGE + 4}" y="${EDGE - 6}">${!curve.minimum_bytes ? "no bound proved in this model" :
      `no plan below ${human(curve.minimum_bytes)}, proved`}</text>` +
    `<polyline points="${EDGE},${EDGE} ${EDGE},${base} ${WIDTH - EDGE},${base}" fill="none" stroke="#777"/>` +
    `<text x="${WIDTH - EDGE}" y="${base + 20}" text-anchor="end">budget, up to the plain peak of ` +
    `${human(curve.plain_peak_bytes)}</text>` +
    `<polygon points="${isProved ? [...found, ...[...proved].reverse()].join(" ") : ""}" fill="#f6dca8"/>` +
    `<polyline points="${proved.join(" ")}" fill="none" stroke="#e69f00" stroke-dasharray="6 4"/>` +
    `<polyline points="${found.join(" ")}" fill="none" stroke="#0d4079"/>` +
    dots(curve.points.map(one => pair(one.budget_bytes, one.percent)), 'fill="#0d4079"') +
    dots(curve.markers.map(one => pair(one.peak_bytes, one.percent)), 'fill="none" stroke="#222"') +
    dots(curve.refused.map(one => pair(one.budget_bytes, 0)), 'fill="#b00020"') +
    '<circle class="here" r="7" fill="none" stroke="#c00"/>';
}

function show(curve, parent) {
  const box = document.createElement("section"), scale = scaled(curve), found = places(curve);
  box.innerHTML = `<h2></h2><svg viewBox="0 0 ${WIDTH} ${HEIGHT}">${drawn(curve)}</svg>` +
    "<p>Blue: found. Orange: the least, proved. Rings: other planners. Red: no plan.</p><pre></pre>";
  box.querySelector("h2").textContent = curve.name;
  const svg = box.querySelector("svg");
  const point = one => {
    box.querySelector(".here").setAttribute("cx", scale.x(one.bytes));
    box.querySelector(".here").setAttribute("cy", scale.y(one.percent));
    box.querySelector("pre").textContent = one.text;
  };
  svg.addEventListener("mousemove", event => {
    const place = svg.getBoundingClientRect(), factor = WIDTH / place.width;
    point(nearest(found, scale, (event.clientX - place.left) * factor, (event.clientY - place.top) * factor));
  });
  parent.append(box);
  if (found.length) point(found[0]);
}

if (typeof document !== "undefined")
  for (const curve of JSON.parse(document.getElementById("data").textContent))
    show(curve, document.getElementById("charts"));
"""


def to_html(curves: Sequence[Curve], title: str) -> str:
    """One page with a chart for each curve."""
    return page(title, to_json(curves), _SCRIPT, "max-width: 1100px", 12)
