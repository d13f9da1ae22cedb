"""Information that recompute-opt prints instead of running passes: lists of passes and dialects, help, completion."""

from __future__ import annotations

import argparse

from ..dialects.context import make_context
from ..dialects.recompute import RECOMPUTE
from ..driver.pipeline import Passes
from ..support.suggestions import did_you_mean
from ..universe import UNIVERSE
from .completion import completion
from .irdl import irdl_of
from .opt_arguments import MLIR
from .pass_help import explain_pass, pass_list
from .usage_error import UsageError


def information(parser: argparse.ArgumentParser, options: argparse.Namespace, passes: Passes) -> str | None:
    """Return the text that the options request instead of a run; None if they request a run.

    Raises:
        UsageError: `--help-pass` names an unknown pass.
    """
    ours = list(UNIVERSE.all_passes)
    names = [*ours, *sorted(set(passes) - set(ours))]
    if options.list_passes:
        others = [name for name in names if name not in ours]
        sections = {"Passes of recompute": ours, "Passes of xDSL and of other packages": others}
        return "\n".join(f"{title}:\n{pass_list(listed, passes)}" for title, listed in sections.items())
    if options.show_dialects:
        dialects = sorted(dialect.name for dialect in make_context().loaded_dialects)
        return f"Available Dialects: {','.join(dialects)}\n"
    if options.emit_irdl:
        return irdl_of(RECOMPUTE)
    if options.completion is not None:
        values = {name: names for name in ("-p", "--help-pass", "--print-ir-before", "--print-ir-after")}
        return completion(parser, options.completion, values | {"-t": [MLIR, *UNIVERSE.all_targets]})
    if options.help_pass is None:
        return None
    if options.help_pass not in passes:
        raise UsageError(f"unknown pass '{options.help_pass}'{did_you_mean(options.help_pass, passes)}")
    return explain_pass(passes[options.help_pass]())
