"""What the `recompute.` attributes may hold. xDSL has no hook for discardable attributes, so we check them here."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Operation

from .diagnostics import Refusal
from .recompute import Names

PHASES = ("primal", "residual", "gradient", "update")


def _is_bool(value: Attribute) -> bool:
    return isinstance(value, IntegerAttr) and value.type == i1


def _is_number(value: Attribute) -> bool:
    return isinstance(value, IntegerAttr) and value.type == i64 and value.value.data >= 0


def _is_phase(value: Attribute) -> bool:
    return isinstance(value, StringAttr) and value.data in PHASES


def _is_path(value: Attribute) -> bool:
    return isinstance(value, StringAttr)


def _is_unit(value: Attribute) -> bool:
    return isinstance(value, UnitAttr)


# attribute -> (what it must be, in words; the test)
KNOWN: dict[str, tuple[str, Callable[[Attribute], bool]]] = {
    Names.RECOMPUTE: ("true or false", _is_bool),
    Names.REGION: ('a region path, such as "block0"', _is_path),
    Names.PHASE: ("one of " + ", ".join(f'"{phase}"' for phase in PHASES), _is_phase),
    Names.ID: ("a number >= 0 of type i64", _is_number),
    Names.COPY: ("a number >= 0 of type i64", _is_number),
    Names.DUPLICATED: ("a unit attribute", _is_unit),
    Names.NEED_CSE: ("a unit attribute", _is_unit),
    Names.TARGET_GRAD: ("a unit attribute", _is_unit),
    Names.CHECKPOINT: ("a unit attribute", _is_unit),
}


def _unknown(name: str) -> str:
    close = get_close_matches(name, KNOWN, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "known are " + ", ".join(sorted(KNOWN))
    return f"unknown attribute '{name}'; {hint}"


def verify_attributes(root: Operation) -> None:
    """Raise a `Refusal` at the first operation with an unknown or ill-typed `recompute.` attribute."""
    for op in root.walk():
        for name, value in op.attributes.items():
            if not name.startswith(Names.PREFIX):
                continue
            if name not in KNOWN:
                raise Refusal(op, _unknown(name))
            words, holds = KNOWN[name]
            if not holds(value):
                raise Refusal(op, f"attribute '{name}' must be {words}, not {value}")
