"""The new names of renamed passes and pipeline options, for error messages."""

from __future__ import annotations

from xdsl.utils.arg_spec import ArgSpec

RENAMED_PASSES = {"recompute-pace": "recompute-stagger"}
RENAMED_OPTIONS = {"regions": "segments", "pace": "stagger"}


def new_name_of_pass(name: str) -> str | None:
    """Return a phrase with the new name of a renamed pass; None if no pass was renamed from this name."""
    return f"was renamed to '{RENAMED_PASSES[name]}'" if name in RENAMED_PASSES else None


def new_name_of_option(spec: ArgSpec) -> str | None:
    """Return a phrase with the new name of the first renamed option in a spec; None if there is none."""
    if not spec.name.startswith("recompute") and spec.name != "explain":
        return None
    for option, values in spec.parameters.items():
        if option in RENAMED_OPTIONS:
            return f"option '{option}' was renamed to '{RENAMED_OPTIONS[option]}'"
        if option == "segments" and any(isinstance(value, int) for value in values):
            return "'segments' is now a pattern; the option for the number of segments is 'segment-count'"
    return None
