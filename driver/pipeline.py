"""Pipelines of passes of this project, of xDSL and of other packages, parsed and run.

    recompute-inline,recompute-mark{segments=block*}     # by name
    builtin.module(a{x=1},func.func(cse,dce))            # as MLIR writes them, with passes on inner operations

Passes of this project run on modules. Other passes of xDSL may be anchored at functions or at other operations: such a
pass runs once for each anchored operation, on a module that contains this operation alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..dialects.context import tell
from ..interpreters.nested_modules import modules_with_functions
from ..options.recompute_options import Pipeline
from ..support.diagnostics import Remark
from ..support.operations import name_of
from ..support.suggestions import close_name, did_you_mean
from ..transforms.phase import NoGradient
from ..universe import UNIVERSE

RENAMED_PASSES = {"recompute-pace": "recompute-stagger"}
RENAMED_OPTIONS = {"regions": "segments", "pace": "stagger"}


def new_name_of_pass(name: str) -> str | None:
    """Return a phrase with the new name of a renamed pass; None for any other name."""
    return f"was renamed to '{RENAMED_PASSES[name]}'" if name in RENAMED_PASSES else None


def new_name_of_option(spec: ArgSpec) -> str | None:
    """Return a phrase with the new spelling of the first renamed option in a spec; None if there is none."""
    if not spec.name.startswith("recompute") and spec.name != "explain":
        return None
    for option, values in spec.parameters.items():
        if option in RENAMED_OPTIONS:
            return f"option '{option}' was renamed to '{RENAMED_OPTIONS[option]}'"
        if option == "segments" and any(isinstance(value, int) for value in values):
            return "'segments' is a pattern now, and the number of segments is 'segment-count'"
    return None


MODULE = "builtin.module"
ANY = "any"
"""The anchor that MLIR matches with every operation."""
_ANCHORED = re.compile(r"\s*([\w.]+)\s*\((.*)\)\s*", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],]')


@dataclass(frozen=True)
class ScheduledPass:
    """A pass and its anchor.

    Attributes:
        module_pass: The pass.
        path: The names of the operations from the module down to those on which the pass runs, one for each level;
            empty for a pass on modules.
    """

    module_pass: ModulePass
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.module_pass.name

    def __str__(self) -> str:
        """Return the pass as MLIR writes it in a pipeline: `func.func(cse)`."""
        spec = self.module_pass.pipeline_pass_spec()
        options = " ".join(_option(name, values) for name, values in spec.parameters.items())
        text = f"{spec.name}{{{options}}}" if options else spec.name
        for anchor in reversed(self.path):
            text = f"{anchor}({text})"
        return text

    def apply(self, context: Context, module: ModuleOp) -> None:
        """Run the pass on each operation that the path matches; emit a remark if it matches none.

        Without a path, passes of this project run on each module with functions, inner modules included.
        """
        if not self.path:
            ours = self.name in UNIVERSE.all_passes
            return self._apply_to_each(context, modules_with_functions(module) if ours else [module])
        anchored = list(_operations_at(module, self.path))
        if not anchored:
            tell(context, [Remark(module, f"'{self.name}' did not run: there is no {' in '.join(self.path)}")])
        for op in anchored:
            if isinstance(op, ModuleOp):
                self.module_pass.apply(context, op)
            else:
                _apply_alone(self.module_pass, context, op)

    def _apply_to_each(self, context: Context, modules: Sequence[ModuleOp]) -> None:
        """Run the pass on each module. A module without a gradient is left unchanged if another module has one."""
        refused = list[NoGradient]()
        for module in modules:
            try:
                self.module_pass.apply(context, module)
            except NoGradient as error:
                refused.append(error)
        if len(refused) == len(modules):
            raise refused[0]
        tell(context, [Remark(error.operation, f"this module is left unchanged: {error.reason}") for error in refused])


def _option(name: str, values: ParameterListType) -> str:
    return f"{name}={','.join(map(_value, values))}" if values else name


def _value(value: ParameterType) -> str:
    """Return the value of an option as text, with quotes escaped, which xDSL's own printing of a spec omits."""
    if isinstance(value, bool):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if isinstance(value, str) else escaped


def _operations_at(module: ModuleOp, path: tuple[str, ...]) -> Iterator[Operation]:
    level: list[Operation] = [module]
    for anchor in path:
        inner = [op for outer in level for region in outer.regions for block in region.blocks for op in block.ops]
        level = [op for op in inner if name_of(op) == anchor or (anchor == ANY and op.regions)]
    yield from level


def _apply_alone(module_pass: ModulePass, context: Context, op: Operation) -> None:
    """Run a pass on a module with this operation alone, and put the result in the place of the operation."""
    block, following = op.parent, op.next_op
    assert block is not None, "an operation inside a module has a block"
    op.detach()
    alone = ModuleOp([op])
    alone.location = op.location
    try:
        module_pass.apply(context, alone)
    finally:
        for result in list(alone.body.block.ops):
            result.detach()
            if following is None:
                block.add_op(result)
            else:
                block.insert_op_before(result, following)


def parse_schedule(text: str, passes: Passes) -> tuple[ScheduledPass, ...]:
    """Parse passes on a module, `a,func.func(b)`. Raises `BadPipeline`."""
    _demand_closed_brackets(text)
    return tuple(_scheduled(text, passes, ()))


def parse_module_schedule(text: str, passes: Passes) -> tuple[ScheduledPass, ...]:
    """Parse a pipeline with its anchor, `builtin.module(a,func.func(b))`. Raises `BadPipeline`, also for another
    anchor."""
    match = _ANCHORED.fullmatch(text)
    if match is not None and match[1] in (MODULE, "module", ANY):
        return parse_schedule(match[2], passes)
    is_misspelt = match is not None and close_name(match[1], [MODULE]) is not None
    inside = match[2] if match is not None and is_misspelt else text
    if inside.strip() != MODULE:
        # An unknown pass or option is the more useful error.
        parse_schedule(inside, passes)
    else:
        inside = "..."
    raise BadPipeline(f"the pipeline '{text}' is not anchored at a module: write '{MODULE}({inside})'")


def pipeline_text(passes: tuple[ScheduledPass, ...]) -> str:
    """Return the pipeline as MLIR writes it."""
    return f"{MODULE}({','.join(map(str, passes))})"


def _scheduled(text: str, passes: Passes, path: tuple[str, ...]) -> Iterator[ScheduledPass]:
    elements = list(_elements(text))
    for element in elements:
        if not element.strip() and len(elements) > 1:
            raise BadPipeline(f"cannot read the pipeline '{text}': expected the name of a pass at each side of a comma")
        if (match := _ANCHORED.fullmatch(element)) is not None:
            yield from _scheduled(match[2], passes, (*path, match[1]))
            continue
        for spec in specs(element):
            module_pass = resolve(spec, passes, "pass")
            if path and path[-1] != MODULE and spec.name in UNIVERSE.all_passes:
                raise BadPipeline(
                    f"'{spec.name}' runs on {MODULE}, not on {path[-1]}: write it outside '{path[-1]}(...)'"
                )
            yield ScheduledPass(module_pass, path)


_CLOSED_BY = {"(": ")", "{": "}", "[": "]"}


def _demand_closed_brackets(text: str) -> None:
    """Raise `BadPipeline` at the first bracket without a counterpart."""
    opened = list[re.Match[str]]()
    for token in _TOKEN.finditer(text):
        if token[0] in _CLOSED_BY:
            opened.append(token)
        elif token[0] in _CLOSED_BY.values() and (not opened or _CLOSED_BY[opened.pop()[0]] != token[0]):
            raise BadPipeline(_at(text, token.start(), f"'{token[0]}' closes no bracket"))
    if opened:
        raise BadPipeline(_at(text, opened[-1].start(), f"'{opened[-1][0]}' is not closed"))


def _at(text: str, column: int, reason: str) -> str:
    """Return a message with the pipeline and a caret below the place of the error, where the pipeline is one line."""
    if "\n" in text:
        return f"cannot read the pipeline '{text}': {reason}"
    return f"cannot read the pipeline: {reason}\n  {text}\n  {' ' * column}^"


def _elements(text: str) -> Iterator[str]:
    """Split a pipeline at the commas outside of brackets and strings."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        elif token[0] == "," and not depth:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


Passes = Mapping[str, Callable[[], type[ModulePass]]]
# An unquoted option value with characters that xDSL's lexer reads as punctuation.
_BARE_PATTERN = re.compile(r"""=([^"{},\s]*(?:[^"{},\s\w.+-]|[A-Za-z_]\.|\.[A-Za-z_]|\d\.\d+[A-Za-z])[^"{},\s]*)""")


class BadPipeline(ValueError):
    """A pipeline with a syntax error or an unknown pass."""


def passes_known() -> Passes:
    """Return the passes by name: those of this project, and of all packages with an entry point `xdsl.universe`."""
    return Universe.get_multiverse().all_passes | UNIVERSE.all_passes


def passes_of(pipeline: Pipeline) -> tuple[ModulePass, ...]:
    """Return the passes of a pipeline, which is a text, or a sequence of texts and passes. Raises `BadPipeline`."""
    registered, passes = passes_known(), list[ModulePass]()
    for part in [pipeline] if isinstance(pipeline, str) else pipeline:
        if isinstance(part, ModulePass):
            passes.append(part)
        elif isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            passes.extend(resolve(spec, registered, "pass") for spec in specs(part))
        else:
            raise BadPipeline(f"a pipeline must consist of names and passes, not of {type(part).__name__}")
    return tuple(passes)


def specs(text: str) -> list[ArgSpec]:
    """Parse the specs of passes, `a{x=1},b`. Patterns need no quotes: `segments=block*` is `segments="block*"`.

    Raises `BadPipeline`."""
    quoted = _BARE_PATTERN.sub(r'="\1"', text)
    try:
        return list(parse_pipeline(quoted))
    except ArgSpecParseError as error:
        raise BadPipeline(_unreadable(text, quoted, str(error))) from error


_VALUE = "expected a value after '='; a text with special characters is quoted: option=\"…\""
_REASONS = {
    "Unknown argument value, wrap argument in quotes to pass arbitrary string values": _VALUE,
    "Malformed pass arguments, expected either a space or `}` here": "options are separated by spaces: {a=1 b=2}",
    "Expected argument name here": "expected the name of an option",
    "Expected equals, space or end of arguments here": "expected '=' after the name of an option, or '}'",
    "Expected pass name here": "expected the name of a pass",
    "Expected a comma or pass arguments here": "expected ',' and another pass, or options in '{…}'",
    "Unknown token": "unexpected character",
}
"""The errors of xDSL's parser of pipelines, and what this project says instead."""
_COLUMN = re.compile(r"pass-pipeline:\d+:(\d+)")


def _unreadable(text: str, parsed: str, error: str) -> str:
    """Return the message for a text that xDSL's parser rejects.

    Args:
        text: The text of the user.
        parsed: The text that was parsed: with quotes that the user need not write.
        error: The message of xDSL.
    """
    words = error.strip().splitlines()[-1].strip()
    reason, column = _REASONS.get(words, words), _COLUMN.search(error)
    shown = parsed if column is not None and not parsed.startswith(text[: int(column[1]) - 1]) else text
    return f"cannot read the pipeline '{text}': {reason}" if column is None else _at(shown, int(column[1]) - 1, reason)


def resolve(spec: ArgSpec, registered: Mapping[str, Callable[[], type[Any]]], kind: str) -> Any:
    """Make the pass or target that a spec names, with its options.

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
        ours = [name for name in registered if name in UNIVERSE.all_passes or name in UNIVERSE.all_targets]
        exist = f"; those of this project are {', '.join(ours)}"
        raise BadPipeline(f"unknown {kind} '{spec.name}'{did_you_mean(spec.name, registered) or exist}")
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
    try:
        return option_class.from_spec(spec)
    except ValueError as error:
        raise BadPipeline(f"{kind} '{spec.name}': {_ill_typed(option_class, spec) or error}") from error


def _ill_typed(option_class: type[Any], spec: ArgSpec) -> str | None:
    """Return a phrase on the first option whose value has the wrong type; None if there is none."""
    for field in fields(option_class):
        values = spec.parameters.get(field.name)
        if values is None:
            continue
        try:
            option_class.from_spec(ArgSpec(spec.name, {field.name: values}))
        except ValueError:
            option, given = spelling(field.name), ",".join(map(str, values)) or "nothing"
            types = type_of(field)
            return f"option '{option}' is {_type_text(types)}, not {given}{_quotes(option, types, values)}"
    return None


def type_of(option: Field[Any]) -> str:
    """Return the type of an option as Python spells it, with and without postponed annotations: `int | None`."""
    return option.type.__name__ if isinstance(option.type, type) else str(option.type)


def spelling(option: str) -> str:
    """Return the name of an option as pipelines spell it, with dashes."""
    return option.replace("_", "-")


_TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[str, ...]": "texts with commas between them",
    "tuple[int, ...]": "whole numbers with commas between them",
}


def _type_text(types: str) -> str:
    """Return the alternatives of a type `a | b` in words."""
    kinds = [kind for kind in types.split(" | ") if kind != "None" and not (kind == "int" and "float" in types)]
    return " or ".join(_TYPES.get(kind, kind) for kind in kinds)


def _quotes(option: str, types: str, values: ParameterListType) -> str:
    """Return the hint to quote values where the option takes text, or ""."""
    if "str" not in types or not values:
        return ""
    quoted = ",".join(f'"{value}"' for value in values) if "tuple" in types else f'"{",".join(map(str, values))}"'
    return f"; a text is quoted: {option}={quoted}"
