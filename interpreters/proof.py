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
    loops, or not even they were enough. `added_constraints`: sharding constraints that only the program after has, and
    that are assumed to leave the values as they are.
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
    added_constraints: int = 0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof rests on besides its own rules, as sentences."""
        sentences = list[str]()
        if self.believed:
            sentences.append(f"assuming, unverified, that these operations are pure: {', '.join(self.believed)}")
        if self.added_constraints:
            sentences.append(
                f"assuming, unverified, that added sharding constraints change no value: {self.added_constraints}"
            )
        return tuple(sentences)

    def __bool__(self) -> bool:
        return self.proved
