"""Compute digests of Python values for cache keys. A digest is the same in every process.

Data is identified by its content; a function by its code, its defaults and the values that its code refers to; a class
or a module by its name and its source file. Functions and classes of the packages in `VERSIONED` are identified by name
alone, so a cache key must also contain the versions of these packages.

`NoFingerprint` is raised for a value that cannot be identified this way. Results that depend on it cannot be cached.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

VERSIONED = (__name__.partition(".")[0], "xdsl", "builtins")
"""Packages whose functions and classes are identified by name."""


class NoFingerprint(ValueError):
    """Raised for a value whose digest could differ between processes, such as an object identified only by its
    address."""


def fingerprint(value: object) -> str:
    """Return the hexadecimal digest of the value.

    Raises:
        NoFingerprint: The value, or a value that it refers to, has no digest that is stable across processes.
    """
    return _Digest(()).digest(value).hex()


class _Digest:
    """A recursive computation of digests.

    `around` contains the ids of the values that are being digested, so that the recursion stops at a cycle of
    references.
    """

    def __init__(self, around: tuple[int, ...]):
        self._around = around

    def digest(self, value: object) -> bytes:
        if id(value) in self._around:
            return sha256(f"back {self._around.index(id(value))}".encode()).digest()
        inner = _Digest((*self._around, id(value)))
        return sha256(b"".join(_frame(inner.parts(value)))).digest()

    def parts(self, value: object) -> Iterator[bytes]:
        """Yield the content of a value as bytes: its type, then the digests of its components."""
        yield type(value).__qualname__.encode()
        match value:
            case None | bool() | int() | float() | str() | bytes() | complex():
                yield repr(value).encode()
            case Enum():
                yield from (self.digest(type(value)), value.name.encode())
            case functools.partial():
                yield from map(self.digest, (value.func, value.args, value.keywords))
            case type() | ModuleType() | BuiltinFunctionType():
                yield from _parts_of_named(value)
            case FunctionType():
                yield from self._parts_of_function(value)
            case MethodType():
                yield from (self.digest(value.__func__), self.digest(value.__self__))
            case CodeType():
                yield from self._parts_of_code(value)
            case _:
                yield from self._parts_of_container(value)

    def _parts_of_container(self, value: object) -> Iterator[bytes]:
        if is_dataclass(value) and not isinstance(value, type):
            yield self.digest(type(value))
            for field in fields(value):
                yield from (field.name.encode(), self.digest(getattr(value, field.name)))
        elif isinstance(value, Mapping):
            items = cast(Mapping[object, object], value).items()
            yield from sorted(self.digest(key) + self.digest(content) for key, content in items)
        elif isinstance(value, Set):
            yield from sorted(map(self.digest, cast(Set[object], value)))
        elif isinstance(value, Sequence):
            yield from map(self.digest, cast(Sequence[object], value))
        else:
            raise NoFingerprint(f"a {type(value).__name__} has no content that identifies it")

    def _parts_of_function(self, function: FunctionType) -> Iterator[bytes]:
        yield from (function.__module__.encode(), function.__qualname__.encode())
        if not _is_versioned(function.__module__):
            yield self.digest(function.__code__)
            for name in _names_in(function.__code__):
                if name in function.__globals__:
                    yield from (name.encode(), self.digest(function.__globals__[name]))
        yield from (self.digest(function.__defaults__), self.digest(function.__kwdefaults__))
        yield from (self.digest(_content(cell)) for cell in function.__closure__ or ())

    def _parts_of_code(self, code: CodeType) -> Iterator[bytes]:
        yield code.co_code
        yield from map(self.digest, (code.co_consts, code.co_names, code.co_varnames, code.co_freevars))


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


def _names_in(code: CodeType) -> list[str]:
    """Return the names that the code and its nested functions look up, sorted."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return sorted({*code.co_names, *(name for nested in inner for name in _names_in(nested))})


def _parts_of_named(value: type | ModuleType | BuiltinFunctionType) -> Iterator[bytes]:
    """Yield the name of a class, a module or a built-in function, and the digest of its source file."""
    module = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
    yield from (module.encode(), getattr(value, "__qualname__", "").encode())
    if not _is_versioned(module):
        owner = sys.modules.get(module)
        yield str(getattr(owner, "__version__", "")).encode()
        yield _source_digest(str(getattr(owner, "__file__", None) or ""))


@functools.cache
def _source_digest(path: str) -> bytes:
    try:
        return sha256(Path(path).read_bytes() if path else b"").digest()
    except OSError:
        return b""


def _is_versioned(module: str) -> bool:
    return module.partition(".")[0] in VERSIONED


def _frame(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each part after its length, so that different sequences of parts never concatenate to the same bytes."""
    for part in parts:
        yield len(part).to_bytes(8, "big")
        yield part
