"""The documentation of passes and targets for `--list-passes` and `--help-pass`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from ...driver.pipelines.pipeline import Passes
from ...universe import UNIVERSE
from .option_help import help_lines, options_of, summary


def pass_list(names: Iterable[str], passes: Passes) -> str:
    """Return a line for each pass: its name and the first sentence of its documentation."""
    names = list(names)
    width = max(map(len, names), default=0)
    return "".join(f"  {name:<{width}} {one_line(passes[name]())}".rstrip() + "\n" for name in names)


def one_line(pass_class: type[ModulePass]) -> str:
    """Return the first sentence of the documentation of a pass, after a dash; "" if there is no documentation."""
    text = _documentation(pass_class)
    first = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{pass_class.name}: ")
    return f"- {first.partition('. ')[0].rstrip('.:')}" if first else ""


def _documentation(pass_class: type[ModulePass]) -> str:
    """Return the documentation of a pass: the docstring of its module if the pass belongs to this project, otherwise
    the docstring of its class; "" if there is none."""
    module = inspect.getmodule(pass_class)
    if module is not None and module.__doc__ and pass_class.name in UNIVERSE.all_passes:
        return module.__doc__
    return _own_summary(pass_class)


def _own_summary(kind: type[ModulePass] | type[Target]) -> str:
    """Return the docstring of a class without the descriptions of its options; "" if it has no docstring."""
    # For a class without a docstring, `dataclass` writes its signature as the docstring.
    own = summary(kind)
    return "" if own.startswith(f"{kind.__name__}(") else own


def explain_pass(pass_class: type[ModulePass]) -> str:
    """Return the documentation of a pass and its options."""
    text = _documentation(pass_class) or f"{pass_class.name}: this pass has no documentation."
    return _with_options(text, pass_class)


def explain_target(target_class: type[Target]) -> str:
    """Return the documentation of a target of `-t` and its options."""
    text = _own_summary(target_class) or "this target has no documentation."
    return _with_options(f"{target_class.name}: {text}", target_class)


def _with_options(text: str, kind: type[ModulePass] | type[Target]) -> str:
    options = list(help_lines(options_of(kind)))
    return "\n".join([text.rstrip(), *(["", "Options:", *options] if options else []), ""])
