"""Information that recompute-opt prints instead of running passes: lists of passes and dialects, help and
completion."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from xdsl.utils.target import Target

from ...dialects.context import make_context
from ...dialects.recompute import RECOMPUTE
from ...driver.pipelines.pipeline import Passes, unknown_name
from ...universe import UNIVERSE
from ..help.completion import completion
from ..help.irdl import irdl_of
from ..help.pass_help import explain_pass, explain_target, pass_list
from .opt_arguments import MLIR
from .usage_error import UsageError

TargetClasses = Mapping[str, Callable[[], type[Target]]]
"""Classes of targets, by name."""


def information(
    parser: argparse.ArgumentParser, options: argparse.Namespace, passes: Passes, targets: TargetClasses
) -> str | None:
    """Return the output of an option that prints information instead of running passes, such as `--list-passes`; None
    if no such option is given.

    Raises:
        UsageError: `--help-pass` names neither a pass nor a target.
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
        values = {name: names for name in ("-p", "--print-ir-before", "--print-ir-after")}
        values |= {"-t": [MLIR, *UNIVERSE.all_targets], "--help-pass": [*names, *UNIVERSE.all_targets]}
        return completion(parser, options.completion, values)
    if options.help_pass is None:
        return None
    if options.help_pass in passes:
        return explain_pass(passes[options.help_pass]())
    if options.help_pass in targets:
        return explain_target(targets[options.help_pass]())
    error = unknown_name(options.help_pass, [*passes, *UNIVERSE.all_targets], "pass or target")
    raise UsageError(error)
