"""The fake values of nodes: tensors with sizes and storages, but without elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def hint_of(size: Any) -> Any:
    """Return the size at hand of a symbolic size, and any other value unchanged.

    Reading a symbolic size by other means would specialize the step.
    """
    return size.node.hint if isinstance(size, torch.SymInt) else size


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of the result of a call: the result itself, or elements of the tuple that it is."""
    for part in value if isinstance(value, tuple | list) else (value,):
        if isinstance(part, torch.Tensor):
            yield part
