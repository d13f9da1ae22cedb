"""Shardy: https://openxla.org/shardy. A constraint says how its operand lies over the devices, and hands it on."""

from __future__ import annotations

from .facts import Facts, View, nothing, pure, terminator, view

OPERATIONS: dict[str, Facts] = {
    "sdy.mesh": pure(flops=nothing),
    "sdy.return": terminator(),
    "sdy.sharding_constraint": view(layout=View.DENSE),
}
