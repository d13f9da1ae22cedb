"""Every option of a pass, a target or a command line is described in the help."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from recompute.rewriting.mark import MarkPass
from recompute.tools import recompute_check, recompute_plan, recompute_run
from recompute.tools.arguments import command_line
from recompute.tools.arguments.opt_arguments import as_argparse_expects
from recompute.tools.help.option_help import Option, options_of, summary
from recompute.tools.help.pass_help import explain_pass
from recompute.universe import PASSES, TARGETS

KINDS = PASSES | TARGETS
PARSERS = (command_line.argument_parser, recompute_check.argument_parser, recompute_run.argument_parser)


@pytest.mark.parametrize("name", KINDS)
def test_every_option_of_a_pass_or_target_is_described(name: str) -> None:
    assert [item.name for item in options_of(KINDS[name]()) if len(item.meaning.split()) < 2] == []


@pytest.mark.parametrize("parser", PARSERS)
def test_every_option_of_a_command_line_is_described(parser: Callable[[], ArgumentParser]) -> None:
    actions = parser()._actions  # pyright: ignore[reportPrivateUsage]
    assert [action.dest for action in actions if not action.help] == []


@pytest.mark.parametrize(
    ("parser", "options", "message"),
    [
        (
            PARSERS[0],
            ["-pass-pipeline=builtin.module(cse)", "--pass-pipeline=x"],
            "--pass-pipeline may be given only once",
        ),
        (PARSERS[0], ["-t", "a", "--target", "b"], "-t may be given only once, and --target sets the same"),
        (
            PARSERS[0],
            ["--print-debuginfo", "--no-print-debuginfo"],
            "--print-debuginfo may be given only once, and --no-",
        ),
        (PARSERS[0], ["--timing", "--timing=list"], "--timing may be given only once"),
        (PARSERS[1], ["a", "b", "--seed", "1", "--seed", "1"], "--seed may be given only once"),
        (PARSERS[2], ["a", "--function", "f", "--function", "g"], "--function may be given only once"),
        (recompute_plan.argument_parser, ["a", "--budget", "1GB", "--budget=2GB"], "--budget may be given only once"),
    ],
)
def test_no_option_replaces_an_earlier_one(
    parser: Callable[[], ArgumentParser], options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args(as_argparse_expects(parser(), options))
    assert message in capsys.readouterr().err


def test_repeatable_options_start_empty_at_each_parse() -> None:
    parser = command_line.argument_parser()
    for _ in range(2):
        options = parser.parse_args(["-p", "cse", "-p", "dce", "-t", "explain", "--load-rules=a", "--load-rules=b"])
        assert (options.passes, options.load_rules) == (["cse", "dce"], ["a", "b"])


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


def test_descriptions_are_read_from_docstrings_and_inherited() -> None:
    assert options_of(Base)[1] == Option("wide", "str", "no", "how wide. other: this is no option")
    assert options_of(Heir) == [
        Option("deep", "int", "1", "how deep it goes, at most"),
        Option("wide", "str", "no", "wider than before: by much"),
        Option("silent", "tuple[str, ...]", "()", ""),
    ]
    assert summary(Heir) == "Another one.\n\nWords in between."


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_one_description_in_its_module(name: str) -> None:
    pass_class = PASSES[name]()
    name_of_class = pass_class.__name__
    module = sys.modules[pass_class.__module__]
    assert (module.__doc__ or "").startswith(f"{name}: ")
    # Without a docstring, `dataclass` writes the signature of the class.
    text = summary(pass_class)
    assert not text or text.startswith(f"{name_of_class}("), "the docstring of the class describes the options alone"


def test_help_of_a_pass_lists_its_options() -> None:
    assert "  skip=<tuple[int, ...]>, default (): indices of segments that are not recomputed" in explain_pass(MarkPass)


def test_help_of_a_pass_quotes_values_that_need_quotes() -> None:
    text = explain_pass(MarkPass)
    assert '`"layer*:30%,head:8MiB"`' in text and '`"pre:a>b; main:c; suf:d; num:1"`' in text
