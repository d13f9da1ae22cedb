"""The documentation of passes for `--list-passes` and `--help-pass`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from xdsl.passes import ModulePass

from ..driver.pipeline import Passes
from ..universe import UNIVERSE
from .option_help import help_lines, options_of, summary


def pass_list(names: Iterable[str], passes: Passes) -> str:
    """Return a line for each pass: its name and the first sentence of its documentation."""
    names = list(names)
    width = max(map(len, names), default=0)
    return "".join(f"  {name:<{width}} {one_line(passes[name]())}".rstrip() + "\n" for name in names)


def one_line(pass_class: type[ModulePass]) -> str:
    """Return the first sentence of the documentation of a pass, after a dash; "" without any."""
    text = _documentation(pass_class)
    first = " ".join(text.split("\n\n")[0].split()).removeprefix(f"{pass_class.name}: ")
    return f"- {first.partition('. ')[0].rstrip('.:')}" if first else ""


def _documentation(pass_class: type[ModulePass]) -> str:
    """Return the docstring of the module of a pass of this project, and of the class of another; "" without one."""
    module = inspect.getmodule(pass_class)
    if module is not None and module.__doc__ and pass_class.name in UNIVERSE.all_passes:
        return module.__doc__
    # A class without a docstring has the signature that `dataclass` writes.
    own = summary(pass_class)
    return "" if own.startswith(f"{pass_class.__name__}(") else own


def explain_pass(pass_class: type[ModulePass]) -> str:
    """Return the documentation of a pass and its options."""
    text = _documentation(pass_class) or f"{pass_class.name}: this pass has no documentation."
    options = list(help_lines(options_of(pass_class)))
    return "\n".join([text.rstrip(), *(["", "Options:", *options] if options else []), ""])
