"""How copies are made: the options of `recompute-clone` as data."""

from __future__ import annotations

from dataclasses import dataclass

from ...rules.permission import Permission


@dataclass(frozen=True)
class Copying:
    """copies: at most so many of one operation. chain: each unit also waits for the gradient operation before it, which
    keeps units apart that would all be ready at once. collectives, preserve_rng_state: see `rules/permission.py`.
    """

    copies: int = 2
    chain: bool = False
    collectives: bool = False
    preserve_rng_state: bool = True

    @property
    def permission(self) -> Permission:
        return Permission(self.collectives, self.preserve_rng_state)


DEFAULT = Copying()
