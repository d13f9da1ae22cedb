"""Spellings of options that `mlir-opt` accepts and argparse does not."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence

_ONE_DASH = re.compile(r"-([a-z][\w-]+)(=.*)?", re.DOTALL)


def as_argparse_expects(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> list[str]:
    """The arguments with two dashes before long options, and `=` before values that may be left out.

    `-verify-diagnostics step.mlir` becomes `--verify-diagnostics=all step.mlir`: the file is not the option's value.

    Args:
        parser: The parser that will read them.
        arguments: The arguments; those of the process for None.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    return [*_normalized(parser, given[:end]), *given[end:]]


def _normalized(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Iterator[str]:
    options = {name: action for action in parser._actions for name in action.option_strings}
    for argument in arguments:
        match = _ONE_DASH.fullmatch(argument)
        if match is not None and f"--{match[1]}" in options:
            argument = f"-{argument}"
        action = options.get(argument)
        yield argument if action is None or action.nargs != "?" else f"{argument}={action.const}"
