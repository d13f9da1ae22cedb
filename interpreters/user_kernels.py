"""The registry of user-given kernels for operations of other dialects.

A kernel does not declare its operation pure; the proof needs a call to `recompute.proof.register_pure`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeAlias

from xdsl.ir import Operation

from ..dialects.stablehlo.custom_call import CustomCallOp
from ..support.operations import check_operation_name, name_of

MakeKernel: TypeAlias = Callable[[Operation], Callable[..., tuple[Any, ...]]]
"""A function that makes the kernel of an operation. The kernel takes one numpy array for each operand. It returns a
tuple with one array for each result."""

CUSTOM_CALL = "stablehlo.custom_call"

_kernels: dict[tuple[str, str | None], MakeKernel] = {}


def register_kernel(name: str, make: MakeKernel, *, target: str | None = None) -> None:
    """Register a function that makes the kernels of all operations with this name. A later registration replaces an
    earlier one.

    A kernel takes and returns numpy arrays; scalars are arrays of rank 0. A kernel must not modify its arguments. The
    kernels define how arrays represent values of types from other dialects.

    Args:
        name: Name of the operation with its dialect, such as `acme.swish`.
        make: Returns the kernel of an operation.
        target: For `stablehlo.custom_call`, the target whose calls are run, such as `lapack_spotrf_ffi`; None for all
            operations with the name.

    Raises:
        ValueError: The name contains no dialect, or an operation other than a custom call has a target.
    """
    check_operation_name(name)
    if target is not None and name != CUSTOM_CALL:
        raise ValueError(f"target='{target}' is given for '{name}': only {CUSTOM_CALL} has targets")
    _kernels[name, target] = make


def registered_kernel(op: Operation) -> MakeKernel | None:
    """Return the registered kernel for an operation; None if there is none. A kernel for the target of the call takes
    precedence."""
    name, target = name_of(op), target_of(op)
    by_target = None if target is None else _kernels.get((name, target))
    return by_target or _kernels.get((name, None))


def target_of(op: Operation) -> str | None:
    """Return the target of a custom call; None for other operations."""
    return op.call_target_name.data if isinstance(op, CustomCallOp) else None


@contextmanager
def registrations_undone() -> Generator[None]:
    """Return a context manager that, on exit, undoes all registrations made inside it."""
    kernels = dict(_kernels)
    try:
        yield
    finally:
        _kernels.clear()
        _kernels.update(kernels)
