"""`--split-input-file`: a file of several programs, with a line of marks between them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

CHUNK = "// -----"


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """Add `--split-input-file` and `--output-split-marker`."""
    add_split_option(parser)
    parser.add_argument(
        "--output-split-marker", default=CHUNK, metavar="MARKER", help=f"the line between the results ({CHUNK})"
    )


def add_split_option(parser: argparse.ArgumentParser) -> None:
    """Add `--split-input-file[=MARKER]`."""
    parser.add_argument(
        "--split-input-file",
        nargs="?",
        const=CHUNK,
        metavar="MARKER",
        help=f"process the parts between lines '{CHUNK}', or this marker, separately",
    )


def chunks(text: str, marker: str | None) -> Iterator[str]:
    """The parts of a text, with blank lines in front so that line numbers in diagnostics are right.

    Args:
        text: The file.
        marker: The text between two parts; None for a file of one part.
    """
    line = 0
    # At the end of a line: `// -----// IR Dump After …` is a header, not a marker.
    for chunk in re.split(rf"{re.escape(marker)}(?=[ \t]*(?:\r?\n|\Z))", text) if marker else [text]:
        yield "\n" * line + chunk
        line += chunk.count("\n")
