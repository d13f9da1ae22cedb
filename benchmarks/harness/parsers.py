"""Command lines of benchmarks: parsers whose help is the module docstring, selected names, and the exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch


def benchmark_parser(documentation: str | None) -> argparse.ArgumentParser:
    """Return a parser that prints a benchmark's module docstring, with its line breaks, as its help."""
    return argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)


def names_or_all(
    parser: argparse.ArgumentParser, requested: Sequence[str], known: Iterable[str], kind: str
) -> list[str]:
    """Return the requested names, or all known names if none is requested. An unknown name is a usage error.

    Args:
        parser: The parser that reports the error, with exit status 2.
        requested: The names on the command line.
        known: The names that exist, in the order in which they are measured.
        kind: The noun for one of the names, such as `step`.
    """
    everything = list(known)
    if unknown := sorted(set(requested) - set(everything)):
        parser.error(f"unknown {kind} {', '.join(unknown)}: choose from {', '.join(everything)}")
    return list(requested) or everything


def add_only(parser: argparse.ArgumentParser) -> None:
    """Add the option `--only PATTERN`, which selects models by name."""
    parser.add_argument(
        "--only", action="append", metavar="PATTERN", help="measure only models whose names match; may be repeated"
    )


def matching(names: Iterable[str], patterns: Sequence[str] | None) -> list[str]:
    """Return the names that match one of the patterns, or all names if there are no patterns."""
    return [name for name in names if not patterns or any(fnmatch(name, pattern) for pattern in patterns)]


def report_faults(faults: Sequence[str]) -> int:
    """Print the faults and their number to standard error, and return the exit status: 1 if there are faults."""
    print(*faults, f"{len(faults)} faults", sep="\n", file=sys.stderr)
    return 1 if faults else 0
