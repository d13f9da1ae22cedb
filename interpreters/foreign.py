"""What users say about operations of dialects that we do not know: how to compute them, and that they are pure.

Both are taken at their word, and apart: a kernel does not make an operation pure, and what the passes are told
(`recompute.rules.register`) is not told to the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Operation

MakeKernel: TypeAlias = Callable[[Operation], Callable[..., tuple[Any, ...]]]
"""From an operation to what computes it: numpy arrays in, one for each operand; a tuple out, one for each result."""

_kernels: dict[str, MakeKernel] = {}
_pure: set[str] = set()


def register_kernel(name: str, make: MakeKernel) -> None:
    """Execute the operations of that name with what `make` makes for each; a later one replaces an earlier one.

    Scalars are arrays of rank 0. Arrays may not be changed in place. Values of foreign types are whatever the kernels
    make of them, as numpy arrays. `ValueError` for a name without a dialect.
    """
    _check_name(name)
    _kernels[name] = make


def register_pure(name: str) -> None:
    """Vouch to the proof that the operations of that name are functions of operands, attributes and regions.

    Every proof that makes use of it says so. `ValueError` for a name without a dialect.
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
    """Forget, on leaving, what was registered inside."""
    kernels, pure = dict(_kernels), set(_pure)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
        _pure.clear()
        _pure.update(pure)
