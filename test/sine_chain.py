"""A small step whose peak and copies are easy to count: a chain of sines, and gradients that read its values."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.parser import parse_module

VALUE_BYTES = 4096
"""The bytes of each value."""
_KIND = "tensor<1024xf32>"
_FORWARD, _BACKWARD = ('{recompute.phase = "primal"', '{recompute.phase = "gradient"')


def sine_chain(length: int = 8, name: str = "step", mark: str = "") -> ModuleOp:
    """Return a module with one step, in which `length` values of the forward pass are saved for the backward pass.

    Args:
        length: The number of sines.
        name: The name of the function.
        mark: Further attributes of the second sine.
    """
    return parse_module(sine_chain_text(length, name, mark), "chain.mlir")


def sine_chain_text(length: int = 8, name: str = "step", mark: str = "") -> str:
    """Return the function of `sine_chain` as text."""
    lines = [f"func.func public @{name}(%a0: {_KIND}) -> ({_KIND}, {_KIND}) {{"]
    for number in range(length):
        attributes = f"{_FORWARD}{f', {mark}' if mark and number == 1 else ''}}}"
        lines.append(f"  %a{number + 1} = stablehlo.sine %a{number} {attributes} : {_KIND}")
    lines.append(f"  %y = stablehlo.tanh %a{length} {_FORWARD}}} : {_KIND}")
    gradient = f"%a{length}"
    for number in range(length - 1, 0, -1):
        lines.append(f"  %g{number} = stablehlo.multiply {gradient}, %a{number} {_BACKWARD}}} : {_KIND}")
        gradient = f"%g{number}"
    return "\n".join([*lines, f"  func.return %y, {gradient} : {_KIND}, {_KIND}", "}"])
