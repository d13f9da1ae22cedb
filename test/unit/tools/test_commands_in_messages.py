"""Each target, pass and option in a command that a message or a docstring gives exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from recompute.driver.pipelines.pipeline import known_passes
from recompute.tools import recompute_check, recompute_plan, recompute_run
from recompute.tools.arguments import opt_arguments
from recompute.universe import UNIVERSE

ROOT = Path(__file__).resolve().parents[3]
PARSERS = {
    "opt": opt_arguments.argument_parser,
    "run": recompute_run.argument_parser,
    "check": recompute_check.argument_parser,
    "plan": recompute_plan.argument_parser,
}
EXCLUDED = {"test", "build", "docs"}
COMMAND = re.compile(r"recompute-(opt|run|check|plan)((?: [^`)\n]*)?)")
FLAG = re.compile(r"(?<=[\s`(])--[a-z][\w-]*")
TARGET = re.compile(r"(?<![\w-])-t ([a-z][\w-]*)(?:\{([^}]*)\})?")
PASS = re.compile(r"(?<![\w-])-p '?([a-z][\w-]*)(?:\{([^}]*)\})?")
OPTION = re.compile(r"([\w-]+)=")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each string in the sources, with `…` for the expressions of an f-string."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] in EXCLUDED or place.parts[0].startswith("."):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{place}:{node.lineno}", node.value
            elif isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                yield f"{place}:{node.lineno}", "".join(map(str, parts))


TEXTS = [(place, text) for place, text in texts() if "recompute-" in text or "-t " in text or "-p " in text]


def unknown_options(options: str, names: set[str]) -> list[str]:
    return [option for option in OPTION.findall(options) if option.replace("-", "_") not in names]


def unknown_parts(text: str) -> list[str]:
    """Return the targets, passes and options of the commands in the text that do not exist."""
    passes, unknown = known_passes(), list[str]()
    for name, options in TARGET.findall(text):
        if name not in UNIVERSE.all_targets:
            unknown.append(f"-t {name}")
        else:
            unknown += unknown_options(options, {field.name for field in fields(UNIVERSE.all_targets[name]())})
    for name, options in PASS.findall(text):
        if name not in passes:
            unknown.append(f"-p {name}")
        else:
            unknown += unknown_options(options, {field.name for field in fields(passes[name]())})
    for tool, rest in COMMAND.findall(text):
        flags = {flag for action in PARSERS[tool]()._actions for flag in action.option_strings}
        unknown += [flag for flag in FLAG.findall(rest) if flag not in flags]
    return unknown


def test_commands_in_the_sources_exist() -> None:
    unknown = [(place, part) for place, text in TEXTS for part in unknown_parts(text)]
    assert unknown == []


def test_the_sources_contain_commands() -> None:
    assert any(TARGET.search(text) for _, text in TEXTS)
    assert any(PASS.search(text) for _, text in TEXTS)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("(recompute-opt -t memory)", ["-t memory"]),
        ("(-t memory-timeline{model=xla})", []),
        ("-t memory-timeline{kind=xla}", ["kind"]),
        ("recompute-opt -p 'recompute{budgets=…}' --emit-plans p.json", ["budgets", "--emit-plans"]),
        ("recompute-opt -p marks", ["-p marks"]),
    ],
)
def test_unknown_parts_are_found(text: str, unknown: list[str]) -> None:
    assert unknown_parts(text) == unknown
