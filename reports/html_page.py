"""A page of charts that holds its data and its script, and asks nothing of the network."""

from __future__ import annotations

from html import escape

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 14px sans-serif; margin: 2em; }}
svg {{ width: 100%; {size}; background: #f6f6f6; }}
pre {{ min-height: {lines}em; }}
</style>
</head>
<body>
<h1>{title}</h1>
<div id="charts"></div>
<script type="application/json" id="data">{data}</script>
<script>
{human}{script}</script>
</body>
</html>
"""

_HUMAN = """\
function human(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return bytes.toFixed(unit ? 1 : 0) + " " + units[unit];
}

"""


def page(title: str, data: str, script: str, size: str, lines: int) -> str:
    """`data`: JSON, which the script finds at the element `data`; `script` fills the element `charts`, and has
    `human(bytes)` to call. `size`: of a chart, in the words of CSS; `lines`: room below it."""
    # A "</script>" inside of a name would end the element; to JSON, \\u003c is the same character.
    safe = data.replace("<", "\\u003c")
    return _PAGE.format(title=escape(title), size=size, lines=lines, data=safe, human=_HUMAN, script=script)
