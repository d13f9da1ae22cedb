"""Pipelines of passes, ours and those of others, by name: `recompute-inline,recompute-mark{segments=block*},mine`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..options.recompute_options import Pipeline
from ..universe import UNIVERSE
from .renamed import new_name_of_option, new_name_of_pass

Passes = Mapping[str, Callable[[], type[ModulePass]]]
# An option value that xDSL's lexer takes for punctuation.
_BARE_PATTERN = re.compile(r"""=([^"{},\s]*(?:[^"{},\s\w.+-]|[A-Za-z_]\.|\.[A-Za-z_]|\d\.\d+[A-Za-z])[^"{},\s]*)""")


class BadPipeline(ValueError):
    """A pipeline with a syntax error or an unknown pass."""


def passes_known() -> Passes:
    """Ours, and those of all packages that offer some through the entry point `xdsl.universe`."""
    return Universe.get_multiverse().all_passes | UNIVERSE.all_passes


def passes_of(pipeline: Pipeline) -> tuple[ModulePass, ...]:
    """The passes; a list may hold passes beside names. Raises `BadPipeline`."""
    registered, passes = passes_known(), list[ModulePass]()
    for part in [pipeline] if isinstance(pipeline, str) else pipeline:
        if isinstance(part, ModulePass):
            passes.append(part)
        elif isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            passes.extend(resolve(spec, registered, "pass") for spec in specs(part))
        else:
            raise BadPipeline(f"a pipeline is made of names and passes, not of {type(part).__name__}")
    return tuple(passes)


def specs(text: str) -> list[ArgSpec]:
    """Parse `a{x=1},b`. Patterns need no quotes here: `segments=block*` is read as `segments="block*"`."""
    try:
        return list(parse_pipeline(_BARE_PATTERN.sub(r'="\1"', text)))
    except ArgSpecParseError as error:
        raise BadPipeline(
            f"cannot read the pipeline '{text}': {str(error).strip().splitlines()[-1].strip()}"
        ) from error


def resolve(spec: ArgSpec, registered: Mapping[str, Callable[[], type[Any]]], kind: str) -> Any:
    """The pass or target that a spec names, with its options. Raises `BadPipeline`."""
    if (renamed := new_name_of_pass(spec.name)) is not None:
        raise BadPipeline(f"{kind} '{spec.name}' {renamed}")
    if spec.name not in registered:
        raise BadPipeline(f"unknown {kind} '{spec.name}'{did_you_mean(spec.name, registered)}")
    option_class = registered[spec.name]()
    spec = spec.normalize_parameter_names()
    options = [field.name for field in fields(option_class)]
    if (renamed := new_name_of_option(spec)) is not None:
        raise BadPipeline(f"{kind} '{spec.name}': {renamed}")
    for given in spec.parameters:
        if given not in options:
            exist = f"; its options are {', '.join(options)}" if options else "; it has no options"
            raise BadPipeline(f"{kind} '{spec.name}' has no option '{given}'{did_you_mean(given, options) or exist}")
    try:
        return option_class.from_spec(spec)
    except ValueError as error:
        raise BadPipeline(f"{kind} '{spec.name}': {error}; its options are {_typed_options(option_class)}") from error


def _typed_options(option_class: type[Any]) -> str:
    return ", ".join(f"{field.name}=<{field.type}>" for field in fields(option_class))


def did_you_mean(given: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    close = get_close_matches(given, names, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
