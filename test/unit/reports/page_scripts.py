"""Contents of the script elements of an HTML page, as a browser separates them."""

from __future__ import annotations

from html.parser import HTMLParser

from typing_extensions import override


class _ScriptParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.is_inside = False

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_inside = tag == "script"

    @override
    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    @override
    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.scripts.append(data)


def scripts_of(page: str) -> list[str]:
    parser = _ScriptParser()
    parser.feed(page)
    return parser.scripts
