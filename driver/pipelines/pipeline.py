"""Resolve the names and options in pipelines to passes of this project, of xDSL and of other packages.

    recompute-inline,recompute-mark{segments=block*}     # by name
    builtin.module(a{x=1},func.func(cse,dce))            # as MLIR writes them, with passes on inner operations

`pipeline_syntax.py` parses the text, and `scheduled_pass.py` runs the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, fields
from typing import Any

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterListType

from ...options.recompute_options import Pipeline
from ...support.suggestions import close_name, did_you_mean
from ...universe import UNIVERSE
from .pipeline_syntax import ANY, MODULE, AnchoredSpec, BadPipeline, anchored_specs, elements, specs, split_anchor
from .plugins import installed_universe, unread_entry_points_hint
from .renamed_passes import new_name_of_option, new_name_of_pass
from .scheduled_pass import ScheduledPass

Passes = Mapping[str, Callable[[], type[ModulePass]]]
"""Classes of passes, by name."""
_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[str, ...]": "strings separated by commas",
    "tuple[int, ...]": "whole numbers separated by commas",
}


def known_passes() -> Passes:
    """Return the passes by name: the passes of this project, and of all packages with an entry point
    `xdsl.universe`."""
    return installed_universe().all_passes | UNIVERSE.all_passes


def own_pass_names() -> Collection[str]:
    """Return the names of the passes of this project."""
    return UNIVERSE.all_passes.keys()


def passes_of(pipeline: Pipeline) -> tuple[ModulePass, ...]:
    """Return the passes of a pipeline, given as a string or as a sequence of strings and passes. Raises
    `BadPipeline`."""
    registered, passes = known_passes(), list[ModulePass]()
    for part in [pipeline] if isinstance(pipeline, str) else pipeline:
        if isinstance(part, ModulePass):
            passes.append(part)
        elif isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            passes.extend(resolve(spec, registered, "pass") for spec in specs(part))
        else:
            raise BadPipeline(f"a pipeline must consist of names and passes, not of {type(part).__name__}")
    return tuple(passes)


def parse_schedule(text: str, passes: Passes) -> tuple[ScheduledPass, ...]:
    """Parse a list of passes on a module, such as `a,func.func(b)`. Raises `BadPipeline`."""
    return tuple(_scheduled(anchored, passes) for anchored in anchored_specs(text))


def _scheduled(anchored: AnchoredSpec, passes: Passes) -> ScheduledPass:
    spec, path = anchored.spec, anchored.path
    module_pass = resolve(spec, passes, "pass")
    if path and path[-1] != MODULE and spec.name in UNIVERSE.all_passes:
        raise BadPipeline(f"'{spec.name}' runs on {MODULE}, not on {path[-1]}: write it outside '{path[-1]}(...)'")
    return ScheduledPass(module_pass, path)


def parse_passes(text: str, passes: Passes) -> tuple[ScheduledPass, ...]:
    """Parse the value of `--passes`: a list of passes on a module, `a,b`, or a pipeline with its anchor,
    `builtin.module(a,b)`.

    Raises `BadPipeline`.
    """
    anchored = split_anchor(text) if len(list(elements(text))) == 1 else None
    is_whole = anchored is not None and anchored[0] == MODULE
    return parse_module_schedule(text, passes) if is_whole else parse_schedule(text, passes)


def parse_module_schedule(text: str, passes: Passes) -> tuple[ScheduledPass, ...]:
    """Parse a pipeline with its anchor, `builtin.module(a,func.func(b))`.

    Raises `BadPipeline`, also if the anchor is not `builtin.module`.
    """
    anchor, inside = split_anchor(text) or ("", text)
    if anchor in (MODULE, "module", ANY):
        return parse_schedule(inside, passes)
    if close_name(anchor, [MODULE]) is None:  # The anchor names other operations, and is not misspelt.
        inside = text
    if inside.strip() != MODULE:
        # An error for an unknown pass or option is more useful.
        parse_schedule(inside, passes)
    else:
        inside = "..."
    raise BadPipeline(f"the pipeline '{text}' is not anchored at a module: write '{MODULE}({inside})'")


def unknown_name(name: str, registered: Iterable[str], kind: str) -> str:
    """Return the error message for the name of a pass or target that is not registered.

    The message suggests similar names; if there are none, it lists the registered ones.

    Args:
        name: The unknown name.
        registered: The names that exist.
        kind: "pass" or "target".
    """
    if kind == "pass" and name in UNIVERSE.all_targets:
        return f"unknown pass '{name}'; it is a target: -t {name}"
    names = list(registered)
    ours = [known for known in names if known in UNIVERSE.all_passes or known in UNIVERSE.all_targets]
    plural = "passes" if kind == "pass" else "targets"
    exist = f"; the {plural} of this project are {', '.join(ours)}"
    if kind == "target" and (others := ", ".join(sorted(set(names) - set(ours)))):
        exist += f"; the {plural} of xDSL and of other packages are {others}"
    return f"unknown {kind} '{name}'{did_you_mean(name, names) or exist}{unread_entry_points_hint()}"


def resolve(spec: ArgSpec, registered: Mapping[str, Callable[[], type[Any]]], kind: str) -> Any:
    """Construct the pass or target that a spec names, with its options.

    Args:
        spec: The name and the options.
        registered: The classes, by name.
        kind: "pass" or "target", for messages.

    Raises:
        BadPipeline: For an unknown name, an unknown option, and a value of the wrong type.
    """
    if (renamed := new_name_of_pass(spec.name)) is not None:
        raise BadPipeline(f"{kind} '{spec.name}' {renamed}")
    if spec.name not in registered:
        raise BadPipeline(unknown_name(spec.name, registered, kind))
    option_class = registered[spec.name]()
    spec = spec.normalize_parameter_names()
    options = [spelling(field.name) for field in fields(option_class)]
    if (renamed := new_name_of_option(spec)) is not None:
        raise BadPipeline(f"{kind} '{spec.name}': {renamed}")
    for option in map(spelling, spec.parameters):
        if option not in options:
            close = did_you_mean(option, options)
            exist = f"{' Its' if close else '; its'} options are {', '.join(options)}" if options else "; it has none"
            raise BadPipeline(f"{kind} '{spec.name}' has no option '{option}'{close}{exist}")
    for field in fields(option_class):
        # xDSL would read a missing value of an optional option as None, as if the option were not given.
        if spec.parameters.get(field.name) == () and "None" in type_of(field):
            types = _type_text(type_of(field))
            raise BadPipeline(f"{kind} '{spec.name}': option '{spelling(field.name)}' expects {types}, not nothing")
    try:
        return option_class.from_spec(spec)
    except ValueError as error:
        raise BadPipeline(f"{kind} '{spec.name}': {_ill_typed(option_class, spec) or error}") from error


def _ill_typed(option_class: type[Any], spec: ArgSpec) -> str | None:
    """Return a message about the first option whose value has the wrong type; None if there is none."""
    for field in fields(option_class):
        values = spec.parameters.get(field.name)
        if values is None:
            continue
        try:
            option_class.from_spec(ArgSpec(spec.name, {field.name: values}))
        except ValueError:
            option = spelling(field.name)
            given = ",".join(map(str, values)) or "nothing"
            types = type_of(field)
            return f"option '{option}' expects {_type_text(types)}, not {given}{_quotes(option, types, values)}"
    return None


def type_of(option: Field[Any]) -> str:
    """Return the type of an option as Python spells it, such as `int | None`, even if the annotation is a string."""
    return option.type.__name__ if isinstance(option.type, type) else str(option.type)


def spelling(option: str) -> str:
    """Return the name of an option as pipelines spell it, with dashes."""
    return option.replace("_", "-")


def _type_text(types: str) -> str:
    """Describe the values that an option of the type `a | b` accepts."""
    kinds = [kind for kind in types.split(" | ") if kind != "None" and not (kind == "int" and "float" in types)]
    return " or ".join(_TYPES.get(kind, kind) for kind in kinds)


def _quotes(option: str, types: str, values: ParameterListType) -> str:
    """Return the hint to quote the value if the option expects a string, otherwise ""."""
    if "str" not in types or not values:
        return ""
    quoted = ",".join(f'"{value}"' for value in values) if "tuple" in types else f'"{",".join(map(str, values))}"'
    return f"; a string needs quotes: {option}={quoted}"
