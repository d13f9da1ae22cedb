"""Registration of operations of other dialects by users: their kernels, and that they are pure.

Both are trusted, and independent: a kernel does not make an operation pure, and registration with the passes
(`recompute.rules.register`) does not register an operation with the proof.
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
    """Execute the operations of that name with the kernels of `make`; a later registration replaces an earlier one.

    Scalars are arrays of rank 0. Kernels must not change arrays in place. The kernels choose the numpy arrays that
    represent values of foreign types. Raises `ValueError` for a name without a dialect.
    """
    _check_name(name)
    _kernels[name] = make


def register_pure(name: str) -> None:
    """Declare to the proof that the operations of that name are functions of operands, attributes and regions.

    Every proof that relies on it lists it. Raises `ValueError` for a name without a dialect.
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
    """Undo registrations inside of the context when it is left."""
    kernels, pure = dict(_kernels), set(_pure)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
        _pure.clear()
        _pure.update(pure)
