"""The template of HTML reports: a page that contains its data and its script, and uses the browser's preferred
colours."""

from __future__ import annotations

from html import escape

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
<div id="charts"></div>
<script type="application/json" id="data">{data}</script>
<script>
{human}{script}</script>
</body>
</html>
"""

_STYLE = """\
:root { color-scheme: light dark; --ink: #222; --faint: #5c5c5c; --back: #fff; --panel: #f4f4f4; --line: #d0d0d0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --faint: #a8a8a8; --back: #16181b; --panel: #22262b; --line: #444; }
}
* { box-sizing: border-box; }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 1.5em auto;
  max-width: 1100px; padding: 0 1em; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: 300px; background: var(--panel); }
svg text { fill: var(--ink); }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.4em 0 0.4em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.2em 0.6em; border-bottom: 1px solid var(--line); vertical-align: top; }
th.number, td.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
th, td.type { white-space: nowrap; overflow-wrap: normal; }
th.sortable { cursor: pointer; }
.band { fill: var(--line); opacity: 0.45; }
.verdict { font-size: 1.15em; font-weight: 600; }
.faint { color: var(--faint); }
.text { white-space: pre-wrap; font-family: ui-monospace, monospace; min-height: 12em; }
.stages { display: flex; font-size: 0.9em; }
.stages div { border-left: 1px solid var(--line); padding-left: 0.3em; white-space: nowrap; min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2em 1.2em; font-size: 0.9em; }
.legend i { display: inline-block; width: 1em; height: 1em; margin-right: 0.4em; vertical-align: -0.1em; }
.values { min-height: 13em; }
"""

_HUMAN = """\
function human(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return bytes.toFixed(unit ? 1 : 0) + " " + units[unit];
}

"""


def page(title: str, data: str, script: str, body: str = "") -> str:
    """Return an HTML page.

    Args:
        title: Title and heading of the page.
        data: JSON, available to the script as the element `data`.
        script: JavaScript that fills the element `charts`. It may call `human(bytes)` to format sizes.
        body: HTML to place before the charts.
    """
    # A "</script>" inside a name would end the element; in JSON, \\u003c is the same character.
    safe = data.replace("<", "\\u003c")
    return _PAGE.format(title=escape(title), style=_STYLE, body=body, data=safe, human=_HUMAN, script=script)
