"""Registry of kernels that users register for operations of other dialects.

A kernel does not declare its operation pure; the proof needs a call of `recompute.proof.register_pure`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Operation

from ..support.operations import check_operation_name

MakeKernel: TypeAlias = Callable[[Operation], Callable[..., tuple[Any, ...]]]
"""A function that makes the kernel of an operation. The kernel takes one numpy array for each operand, and returns a
tuple with one array for each result."""

_kernels: dict[str, MakeKernel] = {}


def register_kernel(name: str, make: MakeKernel) -> None:
    """Register a function that makes the kernels of all operations with this name. A later registration replaces an
    earlier one.

    A kernel takes and returns numpy arrays; scalars are arrays of rank 0. It must not modify its arguments. The kernels
    define how arrays represent values of types from other dialects.

    Args:
        name: Name of the operation with its dialect, such as `acme.swish`.
        make: Returns the kernel of an operation.

    Raises:
        ValueError: The name contains no dialect.
    """
    check_operation_name(name)
    _kernels[name] = make


def registered_kernel(name: str) -> MakeKernel | None:
    return _kernels.get(name)


@contextmanager
def registrations_undone() -> Generator[None]:
    """Return a context manager that, on exit, undoes all registrations made inside it."""
    kernels = dict(_kernels)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
