"""The dialects, passes and targets of installed packages with an entry point `xdsl.universe`.

A package that cannot be loaded is skipped with a warning, so that commands that do not need it still run.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from importlib.metadata import EntryPoint, distributions, entry_points

from xdsl.universe import Universe

from ...support.interface import is_command_line

GROUP = "xdsl.universe"


def installed_universe() -> Universe:
    """Return the universe of all installed packages.

    If two packages define a dialect, pass or target of the same name, the package that comes later in alphabetical
    order is skipped.
    """
    merged = Universe()
    for plugin in sorted(entry_points(group=GROUP), key=lambda plugin: plugin.name):
        try:
            universe = _universe_of(plugin)
            if taken := _names_in(merged) & _names_in(universe):
                raise ValueError(f"the {min(taken)} is also defined by another plugin")
        except Exception as error:
            words = " ".join(str(error).split())
            _warn(f"plugin '{plugin.name}' ({plugin.value}) is left out: {type(error).__name__}: {words}")
            continue
        merged.all_dialects.update(universe.all_dialects)
        merged.all_passes.update(universe.all_passes)
        merged.all_targets.update(universe.all_targets)
    return merged


def _names_in(universe: Universe) -> set[str]:
    kinds = {"dialect": universe.all_dialects, "pass": universe.all_passes, "target": universe.all_targets}
    return {f"{kind} '{name}'" for kind, members in kinds.items() for name in members}


def _universe_of(plugin: EntryPoint) -> Universe:
    universe = plugin.load()
    if not isinstance(universe, Universe):
        raise TypeError(f"expected an xDSL Universe, not {type(universe).__name__}")
    return universe


def unread_entry_points_hint() -> str:
    """Return a hint that names packages whose passes are registered in a group other than `GROUP`, such as
    `xdsl.passes`; "" if there are none."""
    points = (point for package in distributions() for point in package.entry_points)
    unread = sorted({point.group for point in points if point.group.startswith("xdsl.") and point.group != GROUP})
    if not unread:
        return ""
    return f"; entry points of '{', '.join(unread)}' are not read: a pass is registered by '{GROUP}' (docs/plugins.md)"


@cache
def _warn(message: str) -> None:
    """Print the warning once per process."""
    if is_command_line():
        print(f"recompute-opt: warning: {message}", file=sys.stderr)
    else:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
