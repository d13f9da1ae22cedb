"""Command lines of the benchmarks: options that many of them share, and the exit status.

A benchmark's help is its module docstring. Its exit status is 1 if a requirement is not met, and 2 for a wrong
argument.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


def benchmark_parser(documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints a benchmark's module docstring, with its line breaks, as its help."""
    return argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_names(parser: argparse.ArgumentParser, kind: str, known: Iterable[str]) -> None:
    """Add positional arguments for the names to measure. `options.names` is empty if no name is given.

    Args:
        parser: The parser of the benchmark. It rejects unknown names.
        kind: The noun for one of the names, such as `step`.
        known: The names that exist, in the order in which they are measured.
    """
    everything = list(known)

    def known_name(word: str) -> str:
        if word in everything:
            return word
        raise argparse.ArgumentTypeError(f"unknown {kind} {word!r}: choose from {', '.join(everything)}")

    text = f"the {kind}s to measure (default: all), from: {', '.join(everything)}"
    parser.add_argument("names", nargs="*", type=known_name, metavar=kind.upper(), help=text)


def add_only(
    parser: argparse.ArgumentParser, kind: str, known: Iterable[str], default: Sequence[str] | None = None
) -> None:
    """Add the option `--only PATTERN`, which may be repeated. `selected` applies its patterns.

    Args:
        parser: The parser of the benchmark. It rejects patterns that match no name.
        kind: The noun for one of the names, such as `model`.
        known: The names that exist.
        default: The names that are measured without the option; all of them if it is None.
    """
    everything = list(known)

    def matching_pattern(word: str) -> str:
        if selected(everything, [word]):
            return word
        raise argparse.ArgumentTypeError(f"no {kind} matches {word!r}: choose from {', '.join(everything)}")

    parser.add_argument(
        "--only",
        action="append",
        type=matching_pattern,
        metavar="PATTERN",
        help=f"measure only {kind}s whose names match this shell pattern; may be repeated "
        f"(default: {'all' if default is None else ', '.join(default)}). The {kind}s are: {', '.join(everything)}",
    )


def selected(known: Iterable[str], patterns: Sequence[str] | None) -> list[str]:
    """Return the names that match one of the patterns, or all names if there are no patterns."""
    return [name for name in known if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)]


def add_size(parser: argparse.ArgumentParser, default: str = "large") -> None:
    """Add the option `--size`, which is `small` or `large`."""
    text = "the size of the steps' tensors; small ones are for a quick check (default: %(default)s)"
    parser.add_argument("--size", choices=("small", "large"), default=default, help=text)


def add_rounds(parser: argparse.ArgumentParser, default: int) -> None:
    """Add the option `--rounds`, the number of repetitions of each measurement."""
    text = "the number of times that each measurement is repeated (default: %(default)s)"
    parser.add_argument("--rounds", type=int, default=default, metavar="COUNT", help=text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json FILE`. `write_json` writes the file."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE, as JSON")


def write_json(path: Path | None, measurements: Any) -> None:
    """Write measurements as JSON, or do nothing if no file was requested."""
    if path is not None:
        path.write_text(json.dumps(measurements, indent=1) + "\n")


def add_shares(parser: argparse.ArgumentParser, default: Sequence[float], flag: str = "--shares") -> None:
    """Add an option for budgets as shares of the plain step's peak, separated by commas."""
    parser.add_argument(
        flag,
        type=_shares,
        default=tuple(default),
        metavar="SHARE,…",
        help="the budgets, as shares of the plain step's peak, separated by commas "
        f"(default: {','.join(f'{share:g}' for share in default)})",
    )


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(share) for share in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, such as 0.8,0.6, not {text!r}"
        ) from None


def report_missed(messages: Sequence[str]) -> int:
    """Print the messages on unmet requirements to standard error. Return the exit status, which is 1 if there are
    any."""
    for message in messages:
        print(f"missed: {message}", file=sys.stderr)
    count = f"{len(messages)} requirement{'s are' if len(messages) > 1 else ' is'} not met"
    print(count if messages else "all requirements are met", file=sys.stderr, flush=True)
    return 1 if messages else 0


def report_progress(text: str) -> None:
    """Print a line to standard error, so that standard output contains only the table."""
    print(text, file=sys.stderr, flush=True)
