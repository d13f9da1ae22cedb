"""Help texts of options: every option of a pass, a target or a command line is described."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from recompute.tools import command_line, recompute_check, recompute_run
from recompute.tools.option_help import Option, options_of, summary
from recompute.tools.pass_help import explain_pass
from recompute.transforms.mark import MarkPass
from recompute.universe import PASSES, TARGETS

KINDS = PASSES | TARGETS
PARSERS = (command_line.argument_parser, recompute_check.argument_parser, recompute_run.argument_parser)


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_pass_or_a_target_has_a_meaning(name: str) -> None:
    assert [item.name for item in options_of(KINDS[name]()) if len(item.meaning.split()) < 2] == []


@pytest.mark.parametrize("parser", PARSERS)
def test_every_option_of_a_command_line_has_a_meaning(parser: Callable[[], ArgumentParser]) -> None:
    actions = parser()._actions  # pyright: ignore[reportPrivateUsage]
    assert [action.dest for action in actions if not action.help] == []


@dataclass(frozen=True)
class Base:
    """What it is.

    deep: how deep it goes,
    at most.

    wide: how wide.
    other: this is no option
    """

    deep: int = 1
    wide: str = "no"


@dataclass(frozen=True)
class Heir(Base):
    """Another one.

    Words in between.

    wide: wider than before: by much.
    """

    silent: tuple[str, ...] = ()


def test_meanings_are_read_from_docstrings_and_inherited() -> None:
    assert options_of(Base)[1] == Option("wide", "str", "no", "how wide. other: this is no option")
    assert options_of(Heir) == [
        Option("deep", "int", "1", "how deep it goes, at most"),
        Option("wide", "str", "no", "wider than before: by much"),
        Option("silent", "tuple[str, ...]", "()", ""),
    ]
    assert summary(Heir) == "Another one.\n\nWords in between."


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_one_description_in_its_module(name: str) -> None:
    pass_class = PASSES[name]()
    name_of_class = pass_class.__name__
    module = sys.modules[pass_class.__module__]
    assert (module.__doc__ or "").startswith(f"{name}: ")
    # Without a docstring, `dataclass` writes the signature of the class.
    text = summary(pass_class)
    assert not text or text.startswith(f"{name_of_class}("), "the docstring of the class describes the options alone"


def test_the_help_of_a_pass_lists_its_options() -> None:
    assert "  skip=<tuple[int, ...]>, default (): numbers of segments that are not recomputed" in explain_pass(MarkPass)
