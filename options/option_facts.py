"""Facts about each option as metadata of its field. Passes, frontends and the cache derive their lists from them.

copies: int = field(default=2, metadata=option_facts(JIT, RECOMPUTE_PASS, PLAN_PASS, minimum=1))

The passes take their fields from this metadata (`has_options`). A test checks that the signatures of the frontends
agree with the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields
from enum import Enum
from typing import Any

_KEY = "recompute"


class EntryPoint(Enum):
    """An interface with options; the value is its name in messages."""

    RECOMPUTE_PASS = "recompute"
    PLAN_PASS = "recompute-plan"
    REWRITE = "recompute.rewrite"
    JIT = "recompute.jax.jit"
    TORCH = "recompute.torch"

    def spelling(self, option: str) -> str:
        """Return the name of an option as users of this interface write it: `time-limit` or `time_limit=`."""
        is_pass = self in (EntryPoint.RECOMPUTE_PASS, EntryPoint.PLAN_PASS)
        return option.replace("_", "-") if is_pass else f"{option}="


@dataclass(frozen=True)
class OptionFacts:
    """The facts about an option.

    Attributes:
        entry_points: The interfaces that have this option; empty for the fields of `Selection`, which all interfaces
            have.
        minimum: The smallest valid number; None if there is none.
        is_duration: Whether the value is a number of seconds, which must be positive.
        is_plain_data: Whether the value can be part of a cache key, because it determines the result in every process.
        selects: Whether the option selects the operations to recompute, so that a plan replaces it.
        pass_type: The type that a pipeline parses, as Python spells it, if it differs from the type of the field.
    """

    entry_points: frozenset[EntryPoint] = frozenset()
    minimum: int | None = None
    is_duration: bool = False
    is_plain_data: bool = True
    selects: bool = True
    pass_type: str | None = None

    def demand_in_range(self, name: str, value: Any) -> None:
        """Raise `ValueError` for a number out of the range of the option. `name`: the name of the option in the
        message."""
        if self.minimum is not None and value < self.minimum:
            raise ValueError(f"{name} must be at least {self.minimum}, not {value}")
        if self.is_duration and value is not None and not value > 0:
            raise ValueError(f"{name} must be a positive number of seconds, not {value:g}")


def option_facts(*entry_points: EntryPoint, **facts: Any) -> Mapping[str, OptionFacts]:
    """Return the metadata of a field: its `entry_points` and the other attributes of `OptionFacts`."""
    return {_KEY: OptionFacts(frozenset(entry_points), **facts)}


def option_facts_of(option: Field[Any]) -> OptionFacts:
    """Return the facts in the metadata of an option's field."""
    return option.metadata.get(_KEY, OptionFacts())


def options_with(options: type[Any], entry_point: EntryPoint) -> Iterator[Field[Any]]:
    """Yield the fields of an options class that are options of an interface, in declaration order."""
    return (option for option in fields(options) if entry_point in option_facts_of(option).entry_points)
