"""Read the fake values of nodes: tensors with sizes and storages, but without elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def hint_of(size: Any) -> Any:
    """Return the current value (hint) of a symbolic size. Any other value is returned unchanged.

    Converting a symbolic size to an integer instead would specialize the step.
    """
    return size.node.hint if isinstance(size, torch.SymInt) else size


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in the result of a call. The result is a tensor or a tuple of results."""
    for part in value if isinstance(value, tuple | list) else (value,):
        if isinstance(part, torch.Tensor):
            yield part
