"""Kernels that users register for operations of other dialects.

A kernel does not make an operation pure: the proof has declarations of its own (`recompute.proof.register_pure`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Operation

from ..support.operations import check_operation_name

MakeKernel: TypeAlias = Callable[[Operation], Callable[..., tuple[Any, ...]]]
"""Makes the kernel of an operation: it takes a numpy array per operand, and returns a tuple with one per result."""

_kernels: dict[str, MakeKernel] = {}


def register_kernel(name: str, make: MakeKernel) -> None:
    """Execute the operations with this name by the kernels that `make` returns; a later registration replaces an
    earlier one.

    A kernel takes and returns numpy arrays; scalars are arrays of rank 0. It must not modify its arguments in place.
    The kernels define how arrays represent values of foreign types.

    Args:
        name: Name of the operation with its dialect, such as `acme.swish`.
        make: Makes the kernel of an operation.

    Raises:
        ValueError: The name has no dialect.
    """
    check_operation_name(name)
    _kernels[name] = make


def registered_kernel(name: str) -> MakeKernel | None:
    return _kernels.get(name)


@contextmanager
def registrations_undone() -> Generator[None]:
    """Provide a context that undoes on exit all registrations made inside it."""
    kernels = dict(_kernels)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
