"""`--completion SHELL`: print a shell script that completes the options of a tool and the names of passes.

Example:

    eval "$(recompute-opt --completion bash)"
    recompute-opt --completion fish > ~/.config/fish/completions/recompute-opt.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence

SHELLS = ("bash", "zsh", "fish")
_BASH = """\
_{function}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  case "$before" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "{options}" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _{function} {program}
"""
_BASH_IN_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"
_CASE = '    {names}) COMPREPLY=($(compgen -W "{words}" -- "${{word##*,}}")); return ;;'


def add_completion_option(parser: argparse.ArgumentParser) -> None:
    """Add `--completion SHELL`."""
    parser.add_argument("--completion", choices=SHELLS, help="print a script that completes options, and exit")


def completion(parser: argparse.ArgumentParser, shell: str, values: Mapping[str, Sequence[str]]) -> str:
    """Return the completion script of a tool.

    Args:
        parser: The options of the tool.
        shell: One of `SHELLS`.
        values: For each option, by its name, values that may follow it in addition to its choices.
    """
    if shell == "fish":
        return _fish(parser, values)
    return _bash(parser, values) if shell == "bash" else f"{_BASH_IN_ZSH}{_bash(parser, values)}"


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _words(action: argparse.Action, values: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the values that complete an option; empty if it takes no value, or if any value is valid."""
    choices: Iterable[str] = action.choices or ()
    return [*choices, *(word for name in action.option_strings for word in values.get(name, ()))]


def _bash(parser: argparse.ArgumentParser, values: Mapping[str, Sequence[str]]) -> str:
    names = [name for action in _options(parser) for name in action.option_strings]
    # An optional value follows `=`. Bash treats `=` as a separate word.
    cases = [
        _CASE.format(names="|".join(action.option_strings), words=" ".join(words))
        for action in _options(parser)
        if action.nargs != "?" and (words := _words(action, values))
    ]
    function = parser.prog.replace("-", "_")
    return _BASH.format(
        function=function, program=parser.prog, options=" ".join(names), cases="\n".join(cases or ["    '') ;;"])
    )


def _fish(parser: argparse.ArgumentParser, values: Mapping[str, Sequence[str]]) -> str:
    return "".join(f"{_fish_line(parser, action, values)}\n" for action in _options(parser))


def _fish_line(parser: argparse.ArgumentParser, action: argparse.Action, values: Mapping[str, Sequence[str]]) -> str:
    parts = [f"complete -c {parser.prog}"]
    for name in action.option_strings:
        parts.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
    if words := _words(action, values):
        parts.append(f"-x -a '{' '.join(words)}'")
    elif action.nargs != 0:
        parts.append("-r")
    meaning = ((action.help or "") % {**vars(action), "prog": parser.prog}).replace("\\", "\\\\").replace("'", "\\'")
    return " ".join([*parts, f"-d '{meaning}'"])
