"""The registry of facts by operation name. Users can register facts about the operations of other dialects.

    from recompute.rules import pure, register

    register("acme.swish", pure())

Registered facts are checked for each operation. Facts that cannot be true of an operation are an error at that
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from typing_extensions import override
from xdsl.ir import Attribute, Operation

from ..dialects.placements import is_placement
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..support.diagnostics import Refusal
from ..support.operations import check_operation_name, name_of
from . import arith, aten, chlo, func, linalg, math, memref, scf, sdy, stablehlo, tensor
from .custom_calls import custom_call_facts
from .declaration_checks import number_from, why_misfit, with_checked_counts
from .facts import Facts, pure
from .traits import is_declared_pure

_ON_TENSORS = (stablehlo, chlo, aten)
_ON_ANYTHING = (sdy, arith, math, tensor, linalg, scf, memref, func)
BUILT_IN: dict[str, Facts] = {
    **{name: replace(f, on_tensors=True) for dialect in _ON_TENSORS for name, f in dialect.OPERATIONS.items()},
    **{name: facts for dialect in _ON_ANYTHING for name, facts in dialect.OPERATIONS.items()},
}
_CALL = "stablehlo.custom_call"
_declared: dict[str, Facts] = {}
_type_bytes: dict[str, Callable[[Attribute], int]] = {}


def register(name: str, facts: Facts) -> None:
    """Declare the facts about all operations with this name. A later declaration replaces an earlier one.

    If the facts cannot be true of an operation, or if a function in them fails, the passes raise `Refusal` at that
    operation.

    The proof does not read these facts: a pure operation also needs a call to `recompute.proof.register_pure`.

    Args:
        name: Name of the operation with its dialect, such as `acme.swish`.
        facts: The result of `pure`, `impure`, `random`, `view` or another function of this package.

    Raises:
        ValueError: The name contains no dialect, or the facts about the operation are built in.

    Example:
        >>> from recompute.proof import register_pure
        >>> from recompute.rules import impure, pure, register
        >>> register("acme.swish", pure())
        >>> register_pure("acme.swish")
        >>> register("acme.print", impure("it prints"))
    """
    check_operation_name(name)
    if name in BUILT_IN:
        raise ValueError(f"name: the facts about {name} are built in and cannot be replaced")
    if not isinstance(facts, Facts):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"facts: {name} needs facts, such as pure() or impure('why'), not {facts!r}")
    _declared[name] = with_checked_counts(name, facts)


def register_type(name: str, bytes_of: Callable[[Attribute], int]) -> None:
    """Declare the size of the values of a type from another dialect.

    Args:
        name: Name of the type, without `!`, such as `acme.tile`.
        bytes_of: Returns the size, in bytes, of a value of the type.

    Raises:
        ValueError: The name contains no dialect.
    """
    check_operation_name(name)

    def checked(type_: Attribute) -> int:
        number, wrong = number_from(bytes_of, type_)
        if number is None:
            raise ValueError(f"the byte-size function registered for type {name} {wrong}")
        return number

    _type_bytes[name] = checked


@contextmanager
def registrations_undone() -> Generator[None]:
    """Return a context manager that, on exit, undoes all registrations made inside it. Tests and tools with several
    inputs use it."""
    saved = dict(_declared), dict(_type_bytes)
    try:
        yield
    finally:
        for table, old in zip((_declared, _type_bytes), saved, strict=True):
            table.clear()
            table.update(old)  # pyright: ignore[reportArgumentType, reportCallIssue]


def registrations() -> tuple[dict[str, Facts], dict[str, Callable[[Attribute], int]]]:
    """Return the registered facts by operation name and the registered size functions by type name. Cached results
    depend on both tables."""
    return dict(_declared), dict(_type_bytes)


def facts_by_name(name: str) -> Facts | None:
    return BUILT_IN.get(name) or _declared.get(name)


def facts_of(op: Operation) -> Facts | None:
    """Return the facts about an operation, or None if they are unknown. An operation without registered facts is pure
    if its traits say so.

    Raises:
        Refusal: The registered facts cannot be true of the operation.
    """
    name = name_of(op)
    if name == _CALL and isinstance(op, CustomCallOp):
        return stablehlo.placement_facts(op) if is_placement(op) else custom_call_facts(op)
    if name in BUILT_IN:
        return BUILT_IN[name]
    facts = _declared.get(name)
    if facts is None:
        return pure() if is_declared_pure(op) else None
    if (misfit := why_misfit(op, facts)) is not None:
        raise Refusal(op, f"{name} {misfit}")
    return facts


def declared_type_bytes(name: str) -> Callable[[Attribute], int] | None:
    return _type_bytes.get(name)


_NameT = TypeVar("_NameT")


@dataclass(frozen=True, eq=False)
class OperationNames(Set[str]):
    """The set of names of all operations whose facts satisfy the predicate `holds`. It includes operations that are
    registered later."""

    holds: Callable[[Facts], bool]

    @classmethod
    @override
    def _from_iterable(cls, names: Iterable[_NameT]) -> frozenset[_NameT]:
        """Return the result of a set operation, such as a difference: the names that are registered at this moment."""
        return frozenset(names)

    @override
    def __contains__(self, name: object) -> bool:
        facts = facts_by_name(name) if isinstance(name, str) else None
        return facts is not None and self.holds(facts)

    @override
    def __iter__(self) -> Iterator[str]:
        return (name for name in (*BUILT_IN, *_declared) if name in self)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)
