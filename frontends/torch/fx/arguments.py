"""Convert the arguments of FX nodes to text and back. In the text, `%i` denotes operand i."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ....dialects.torch import Argument, Operand, TorchObject
from .unsupported import Unsupported

_OBJECTS = (torch.dtype, torch.layout, torch.memory_format)


def text_of(node: torch.fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any], operand: Callable[[Any], int]) -> str:
    """Return the argument list of a call as text.

    `operand`: maps a node to its operand index. Raises `Unsupported` for an argument that has no text form.
    """
    parts = [_text(argument, node, operand) for argument in args]
    parts += [f"{name}={_text(argument, node, operand)}" for name, argument in kwargs.items()]
    return ", ".join(parts)


def _text(argument: Any, node: torch.fx.Node, operand: Callable[[Any], int]) -> str:
    if isinstance(argument, torch.fx.Node):
        return f"%{operand(argument)}"
    if argument is None or type(argument) in (bool, int, str):
        return repr(argument)
    if type(argument) is float:
        return repr(argument) if math.isfinite(argument) or math.isnan(argument) else str(argument)
    if type(argument) is complex:
        return f"complex({_text(argument.real, node, operand)}, {_text(argument.imag, node, operand)})"
    if isinstance(argument, list | tuple):
        parts = [_text(part, node, operand) for part in argument]
        if isinstance(argument, list):
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(argument, _OBJECTS):
        return str(argument)
    if isinstance(argument, torch.device):
        return f"device({str(argument)!r})"
    raise Unsupported(node, f"the argument {argument!r} has the type {type(argument).__name__}, which is not supported")


def value_of(argument: Argument, operands: Sequence[torch.fx.Node]) -> Any:
    """Return the argument that a parsed text describes. `operands`: the nodes to which `%i` refers."""
    match argument:
        case Operand(index):
            return operands[index]
        case TorchObject("device", name):
            return torch.device(name)
        case TorchObject(_, name):
            return getattr(torch, name)
        case list():
            return [value_of(part, operands) for part in argument]
        case tuple():
            return tuple(value_of(part, operands) for part in argument)
        case _:
            return argument
