"""Write docs/api.md from the signatures and docstrings of the public names.

    python docs/generate_api.py

The public names of `recompute` and `recompute.jax` are imported, because only imported objects contain default values
and inherited dataclass fields. flax, equinox and PyTorch need not be installed, so the modules for them are parsed
instead. A test compares the file with the output of this script.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import recompute
from recompute.options.recompute_options import DEFAULT_OPTIONS
from recompute.options.selection import AUTO

OUTPUT = Path(__file__).with_name("api.md")
HEAD = """# Python API

This page lists the public names of `recompute`, `recompute.jax`, `recompute.eqx`, `recompute.nnx` and
`recompute.torch` with their signatures. It is generated from the code by `docs/generate_api.py`; do not edit.
[embedding.md](embedding.md), [jax.md](jax.md) and [torch.md](torch.md) have examples.
"""
FRONTENDS = Path(recompute.__file__).parent / "frontends"
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Example|Examples|Note):\s*(.*)$")
_OPTIONS_OBJECTS = (("AUTO", AUTO), ("RecomputeOptions()", DEFAULT_OPTIONS))
"""Default values that are shown by name."""
ENTRY = re.compile(r"^ {4}(\S[^:]*): (.*)$")


def api() -> str:
    return "\n".join(
        [
            HEAD,
            *imported_names(recompute, "recompute"),
            *imported_names(recompute.jax, "recompute.jax"),
            *parsed_names(FRONTENDS / "jax" / "eqx.py", "recompute.eqx"),
            *parsed_names(FRONTENDS / "jax" / "nnx.py", "recompute.nnx"),
            *parsed_names(FRONTENDS / "torch" / "__init__.py", "recompute.torch"),
        ]
    )


def parsed_names(path: Path, prefix: str) -> Iterator[str]:
    """Parse a module instead of importing it, and yield its section of the page."""
    module = ast.parse(path.read_text())
    yield f"## `{prefix}`\n"
    for name in sorted(_public_names(module), key=str.lower):
        yield f"### `{prefix}.{name}`\n"
        yield from definition(_definition_of(name, module, path.parent))


def _public_names(module: ast.Module) -> list[str]:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    raise ValueError("the module has no __all__")


Definition = ast.ClassDef | ast.FunctionDef


def _definition_of(name: str, module: ast.Module, folder: Path) -> Definition:
    """Return the class or function of this name from the module, or from the module that it is imported from.

    For an overloaded function, return the implementation, which comes last.
    """
    for node in reversed(module.body):
        if isinstance(node, Definition) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.level and any(alias.name == name for alias in node.names):
            package = folder if node.level == 1 else folder.parents[node.level - 2]
            source = package.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            return _definition_of(name, ast.parse(source.read_text()), source.parent)
    raise ValueError(f"{name} is public, but not defined in {folder}")


def definition(node: Definition) -> Iterator[str]:
    """Yield the signature, the docstring, and the documented public methods of a class."""
    yield f"```text\n{parsed_signature(node)}\n```\n"
    yield from markdown(ast.get_docstring(node) or "")
    for member in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_") and ast.get_docstring(member):
            yield f"**`{node.name}.{member.name}`**\n"
            yield from markdown(ast.get_docstring(member) or "")


def parsed_signature(node: Definition) -> str:
    """Return the signature of a parsed definition. The parameters of a dataclass are its fields."""
    if isinstance(node, ast.FunctionDef):
        parameters, arrow = _parameters(node.args), f" -> {ast.unparse(node.returns)}" if node.returns else ""
    else:
        methods = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
        fields = [ast.unparse(member) for member in node.body if isinstance(member, ast.AnnAssign)]
        initializer = methods.get("__init__")
        parameters, arrow = fields if initializer is None else _parameters(initializer.args)[1:], ""
    return _call(node.name, parameters, arrow)


def _parameters(arguments: ast.arguments) -> list[str]:
    """Return the text of each parameter, including `/` and `*`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    values = [None] * required + list(arguments.defaults)
    parameters = [_parameter(argument, value) for argument, value in zip(positional, values, strict=True)]
    if arguments.posonlyargs:
        parameters.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg is not None:
        parameters.append(f"*{ast.unparse(arguments.vararg)}")
    elif arguments.kwonlyargs:
        parameters.append("*")
    parameters += [_parameter(a, v) for a, v in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        parameters.append(f"**{ast.unparse(arguments.kwarg)}")
    return parameters


def _parameter(argument: ast.arg, value: ast.expr | None) -> str:
    equals = " = " if argument.annotation else "="
    return ast.unparse(argument) + ("" if value is None else f"{equals}{ast.unparse(value)}")


def _call(name: str, parameters: list[str], arrow: str) -> str:
    """Return the signature on one line, or with a line for each parameter if it is longer than 100 characters."""
    line = f"{name}({', '.join(parameters)}){arrow}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){arrow}"


def imported_names(module: ModuleType, prefix: str) -> Iterator[str]:
    """Yield the section on a module that can be imported: the documentation of its public names."""
    yield f"## `{prefix}`\n"
    for name in sorted(module.__all__, key=str.lower):
        public = getattr(module, name)
        if isinstance(public, ModuleType):
            continue
        yield f"### `{prefix}.{name}`\n"
        if callable(public):
            yield f"```text\n{imported_signature(name, public)}\n```\n"
            yield from markdown(documentation(public))
        yield from methods(name, public)


def imported_signature(name: str, public: Any) -> str:
    """Return the signature of an imported function or class. Long defaults are shown by name, as in the source."""
    try:
        inspected = inspect.signature(public)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = [_unquoted(str(_with_named_default(parameter))) for parameter in inspected.parameters.values()]
    keyword_only = [parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in inspected.parameters.values()]
    variadic = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in inspected.parameters.values())
    if any(keyword_only) and not variadic:
        parameters.insert(keyword_only.index(True), "*")
    result = inspected.return_annotation
    arrow = "" if result is inspect.Signature.empty or isinstance(public, type) else f" -> {_text(result)}"
    return _call(name, parameters, arrow)


class _Name:
    """The name of a default value, which is printed without quotes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _with_named_default(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter. If its default is a function or an options object, replace the default by the object's
    name."""
    if inspect.isfunction(parameter.default):
        return parameter.replace(default=_Name(parameter.default.__name__))
    name = next((name for name, options in _OPTIONS_OBJECTS if parameter.default is options), None)
    return parameter if name is None else parameter.replace(default=_Name(name))


def _unquoted(parameter: str) -> str:
    """Return a parameter without the quotes of its annotation, which is a string if annotations are not evaluated.

    A string as the default keeps its quotes.
    """
    return re.sub(r"^(\**\w+): '([^']*)'", r"\1: \2", parameter)


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def documentation(public: Any) -> str:
    """Return the docstring of an object, or "" if it is the signature that `dataclass` generates.

    If the docstring of a class has no section on attributes, the section of its base class is appended.
    """
    text = inspect.cleandoc(public.__doc__ or "")
    if not isinstance(public, type):
        return text
    if text.startswith(f"{public.__name__}("):
        return ""
    sections = [section for base in _own_bases(public) if (section := _attributes_section(base))]
    return f"{text}\n\n{sections[0]}" if sections and not _attributes_section(public) else text


def _own_bases(public: type) -> list[type]:
    """Return the class and its base classes that this project defines, the class first."""
    return [base for base in public.__mro__ if base.__module__.startswith("recompute.")]


def _attributes_section(public: type) -> str:
    _, title, section = inspect.cleandoc(public.__doc__ or "").partition("Attributes:\n")
    return f"{title}{section}"


def markdown(docstring: str) -> Iterator[str]:
    """Yield the lines of a docstring as Markdown: sections become bold titles and lists, other lines stay unchanged."""
    inside = listed = False
    for line in docstring.splitlines():
        if match := SECTION.match(line):
            inside, listed = match[1] not in ("Example", "Examples"), False
            yield f"**{match[1]}:** {match[2]}".rstrip() + ("" if match[2] else "\n")
        elif inside and (match := ENTRY.match(line)):
            listed = True
            yield f"- `{match[1]}`: {match[2]}"
        else:
            inside = inside and (not line or line.startswith(" "))
            yield f"{'  ' if listed else ''}{line.strip()}" if inside and line else line
    yield ""


def methods(name: str, public: Any) -> Iterator[str]:
    """Yield the documented public methods and properties of a class."""
    if not isinstance(public, type):
        return
    members = dict[str, Any]()
    for base in _own_bases(public):
        members = {**members, **{name: member for name, member in vars(base).items() if name not in members}}
    for attribute, member in members.items():
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not attribute.startswith("_") and inspect.isfunction(member) and member.__doc__:
            yield f"**`{name}.{attribute}`**\n"
            yield from markdown(inspect.cleandoc(member.__doc__))


if __name__ == "__main__":
    OUTPUT.write_text(api())
    sys.exit(0)
