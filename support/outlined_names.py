"""Names of the functions to which steps are outlined while passes run: `main/0` for a nested step of `main`, `main+1`
for the step after the first one."""

from __future__ import annotations

import re

from xdsl.dialects.func import FuncOp

_SUFFIX = re.compile(r"(?:[/+]\d+)+\Z")


def name_of_origin(name: str) -> str:
    """Return the name of the function from which a step is outlined: `main` for `main/0` and `main+1`; any other name
    unchanged."""
    return _SUFFIX.sub("", name)


def is_outlined(function: FuncOp) -> bool:
    """Return whether the name is the name of an outlined step."""
    return name_of_origin(function.sym_name.data) != function.sym_name.data
