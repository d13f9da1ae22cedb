"""A page of charts that contains its data and its script; it loads nothing from the network."""

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
    """The HTML text of a page.

    data: JSON, available to the script as the element `data`. script: Fills the element `charts`; it may call
    `human(bytes)`. size: CSS for the size of a chart. lines: The height of the text below a chart, in lines.
    """
    # A "</script>" inside a name would end the element; in JSON, \\u003c is the same character.
    safe = data.replace("<", "\\u003c")
    return _PAGE.format(title=escape(title), size=size, lines=lines, data=safe, human=_HUMAN, script=script)
