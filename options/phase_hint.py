"""Hints from which the phases of a step follow where its operations do not tell them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PhaseHint:
    """Numbers of `results` that the forward pass computes, names of `values` that it computes, and numbers of arguments
    that are `cotangents`."""

    results: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    cotangents: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.results or self.values or self.cotangents)

    def __str__(self) -> str:
        parts = (("primal-results", self.results), ("primal-values", self.values), ("cotangents", self.cotangents))
        return " ".join(f"{name}={','.join(map(str, listed))}" for name, listed in parts if listed)
