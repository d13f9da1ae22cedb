"""Kernels and declarations of purity that users register for operations of other dialects.

Both are trusted, and independent of each other: a kernel does not make an operation pure, and registration with the
passes (`recompute.rules.register`) does not register the operation with the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Operation

MakeKernel: TypeAlias = Callable[[Operation], Callable[..., tuple[Any, ...]]]
"""Makes the kernel of an operation: it takes a numpy array per operand, and returns a tuple with one per result."""

_kernels: dict[str, MakeKernel] = {}
_pure: set[str] = set()


def register_kernel(name: str, make: MakeKernel) -> None:
    """Execute the operations with this name by the kernels that `make` returns; a later registration replaces an
    earlier one.

    A kernel takes and returns numpy arrays; scalars are arrays of rank 0. It must not modify its arguments in place.
    For foreign types it chooses which arrays represent the values.

    Args:
        name: Name of the operation with its dialect, as `acme.swish`.
        make: Makes the kernel of an operation.

    Raises:
        ValueError: The name has no dialect.
    """
    _check_name(name)
    _kernels[name] = make


def register_pure(name: str) -> None:
    """Declare to the proof that operations with this name are functions of their operands, attributes and regions.

    A proof that relies on the declaration reports it.

    Raises:
        ValueError: The name has no dialect.
    """
    _check_name(name)
    _pure.add(name)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not all(name.partition(".")):
        raise ValueError(f"name: expected a name such as 'acme.swish', not {name!r}")


def registered_kernel(name: str) -> MakeKernel | None:
    return _kernels.get(name)


def registered_pure() -> frozenset[str]:
    return frozenset(_pure)


@contextmanager
def registrations_undone() -> Generator[None]:
    """Provide a context that undoes on exit all registrations made inside it."""
    kernels, pure = dict(_kernels), set(_pure)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
        _pure.clear()
        _pure.update(pure)
