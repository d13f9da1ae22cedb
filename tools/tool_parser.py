"""The parser of the arguments of the tools: errors in one line, with the closest option."""

from __future__ import annotations

import argparse
from typing import NoReturn

from typing_extensions import override

from ..support.suggestions import did_you_mean

_UNRECOGNIZED = "unrecognized arguments: "


class ToolParser(argparse.ArgumentParser):
    """argparse's parser, which prints an error in one line instead of all options."""

    @override
    def error(self, message: str) -> NoReturn:
        if message.startswith(_UNRECOGNIZED):
            message = self._why_unrecognized(message.removeprefix(_UNRECOGNIZED).split()[0])
        self.exit(2, f"{self.prog}: error: {message} (--help lists the options)\n")

    def remedy_for(self, option: str) -> str:
        """Return the remedy for an unknown option, after a semicolon; "" if no option has a similar name.

        `option`: the option with its dashes."""
        return did_you_mean(option, [name for action in self._actions for name in action.option_strings])

    def _why_unrecognized(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument '{argument}'"
        option = argument.partition("=")[0]
        return f"unknown option '{option}'{self.remedy_for(option)}"
