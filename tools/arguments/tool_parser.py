"""The argument parser of the tools. Each error is a single line that suggests the closest option. Options must not be
repeated or abbreviated."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from typing_extensions import override

from ...support.suggestions import did_you_mean

_UNRECOGNIZED = "unrecognized arguments: "


class ToolParser(argparse.ArgumentParser):
    """An argparse parser that prints errors in one line instead of listing all options.

    It rejects an option that is given twice, unless the values of the option accumulate. It also rejects abbreviations
    of options, whose meaning a new option could change.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, allow_abbrev=False, **keywords)
        self.given = dict[str, str]()
        """The spelling of each option that has been given so far, by destination."""
        self.register("action", None, _Store)
        self.register("action", "store", _Store)

    @override
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.given.clear()
        return super().parse_known_args(args, namespace)

    @override
    def error(self, message: str) -> NoReturn:
        if message.startswith(_UNRECOGNIZED):
            message = self._why_unrecognized(message.removeprefix(_UNRECOGNIZED).split()[0])
        self.exit(2, f"{self.prog}: error: {message} (--help lists the options)\n")

    def remedy_for(self, option: str) -> str:
        """Return the end of the error message for an unknown option: a semicolon and a remedy, or "" if no option has a
        similar name.

        `option`: the option with its dashes.
        """
        return did_you_mean(option, [name for action in self._actions for name in action.option_strings])

    def _why_unrecognized(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument '{argument}'"
        option = argument.partition("=")[0]
        return f"unknown option '{option}'{self.remedy_for(option)}"


class _Value(argparse.Action):
    """A parser action that stores one value."""

    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)


class _Once(argparse.Action):
    """A mixin for options that, as in `mlir-opt`, must not be repeated."""

    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, ToolParser):
            demand_once(parser, self.dest, option_string)
        super().__call__(parser, namespace, values, option_string)


class _Store(_Once, _Value):
    """A parser action for an option with one value that may be given only once."""


class Flag(_Once, argparse.BooleanOptionalAction):
    """A flag `--x` with its opposite `--no-x`. Only one of them may be given, and only once."""


def demand_once(parser: ToolParser, destination: str, option: str) -> None:
    """End the tool with an error if an option with this destination was given before."""
    if (earlier := parser.given.get(destination)) is not None:
        other = "" if earlier == option else f", and {option} sets the same value"
        parser.error(f"{earlier} may be given only once{other}")
    parser.given[destination] = option
