"""The verdict of a proof."""

from __future__ import annotations

from dataclasses import dataclass

from .first_difference import Difference


@dataclass(frozen=True)
class Proof:
    """The verdict, the reason where there is no proof, and the sizes of what was compared.

    `where` names the result (`result #3 of @main`) and `difference` the path from it to the first difference, where
    the programs were comparable at all. `believed`: operations that are pure on the user's word alone. `identical`:
    proved because the text is the same, not because it was understood. `tier`: 2 where it took the rules for
    loops, or not even they were enough.
    """

    proved: bool
    reason: str
    where: str = ""
    difference: Difference | None = None
    results: int = 0
    operations_before: int = 0
    operations_after: int = 0
    believed: tuple[str, ...] = ()
    identical: bool = False
    tier: int = 1

    def __bool__(self) -> bool:
        return self.proved
