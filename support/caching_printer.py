"""Cache the printed text of types and properties.

Operations of one kind differ mostly in their SSA names, so all text except these names is printed once and reused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO

from xdsl.ir import Attribute
from xdsl.printer import Printer

Key = tuple[object, ...]


@dataclass(eq=False, repr=False)
class CachingPrinter(Printer):
    """A printer that caches printed strings.

    Keys contain ids of types and properties. These ids are valid because the module keeps the objects alive while it is
    printed.
    """

    _texts: dict[Key, str] = field(default_factory=dict[Key, str], init=False)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if self.stream is None or "\n" in text:
            return super().print_string(text, indent=indent)
        self._current_column += len(text)
        self.stream.write(text)

    def text_of(self, write: Callable[[Printer], None]) -> str:
        """Return the text that `write` prints, starting at column 0 without indentation."""
        state, self.stream = (self.stream, self._current_line, self._current_column, self._indent), StringIO()
        self._indent = 0
        write(self)
        text = self.stream.getvalue()
        self.stream, self._current_line, self._current_column, self._indent = state
        return text

    def print_once(self, key: Key, write: Callable[[Printer], None]) -> None:
        """Print the cached text for the key; on the first call, compute it with `write`."""
        if (text := self._texts.get(key)) is None:
            text = self._texts[key] = self.text_of(write)
        self.print_string(text, indent=0)


def print_cached(
    printer: Printer, label: str, depends_on: tuple[Attribute, ...], write: Callable[[Printer], None]
) -> None:
    """Print a string that depends only on `label` and on the given attributes; a `CachingPrinter` caches it."""
    if isinstance(printer, CachingPrinter):
        printer.print_once((label, *map(id, depends_on)), write)
    else:
        write(printer)
