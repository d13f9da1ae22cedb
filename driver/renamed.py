"""What passes and options were called before: the old words are errors that name the new ones."""

from __future__ import annotations

from xdsl.utils.arg_spec import ArgSpec

PASSES = {"recompute-pace": "recompute-stagger"}
OPTIONS = {"regions": "segments", "pace": "stagger"}


def new_name_of_pass(name: str) -> str | None:
    """In words; None where the name was never another one's."""
    return f"is called '{PASSES[name]}' now" if name in PASSES else None


def new_name_of_option(spec: ArgSpec) -> str | None:
    """The first option of ours that is spelled as it was before, in words; None where there is none."""
    if not spec.name.startswith("recompute") and spec.name != "explain":
        return None
    for given, values in spec.parameters.items():
        if given in OPTIONS:
            return f"option '{given}' is called '{OPTIONS[given]}' now"
        if given == "segments" and any(isinstance(value, int) for value in values):
            return "'segments' is a pattern now, and the number of segments is 'segment-count'"
    return None
