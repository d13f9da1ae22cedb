"""A digest of a Python value that is the same in every process, to key what is computed from it.

Data counts by its content. A function counts by its code, its defaults, and the values that the code refers to; a class
or a module by its name and the source file. Functions and classes of the packages in `VERSIONED` count by their name:
a key must contain the versions of these packages as well.

Values that have no such content raise `NoFingerprint`: what depends on them cannot be cached.
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


class NoFingerprint(ValueError):
    """The value has no content that identifies it across processes."""


def fingerprint(value: object) -> str:
    """Return the hexadecimal digest of the value. Raises `NoFingerprint`."""
    return _Digest(()).of(value).hex()


class _Digest:
    """Digests values; `around` are the functions and objects that refer to the value, against endless recursion."""

    def __init__(self, around: tuple[int, ...]):
        self._around = around

    def of(self, value: object) -> bytes:
        if id(value) in self._around:
            return sha256(f"back {self._around.index(id(value))}".encode()).digest()
        inner = _Digest((*self._around, id(value)))
        return sha256(b"".join(_framed(inner.parts(value)))).digest()

    def parts(self, value: object) -> Iterator[bytes]:
        """Yield the content of a value: its kind, then its parts."""
        yield type(value).__qualname__.encode()
        match value:
            case None | bool() | int() | float() | str() | bytes() | complex():
                yield repr(value).encode()
            case Enum():
                yield from (self.of(type(value)), value.name.encode())
            case functools.partial():
                yield from map(self.of, (value.func, value.args, value.keywords))
            case type() | ModuleType() | BuiltinFunctionType():
                yield from _parts_of_named(value)
            case FunctionType():
                yield from self._parts_of_function(value)
            case MethodType():
                yield from (self.of(value.__func__), self.of(value.__self__))
            case CodeType():
                yield from self._parts_of_code(value)
            case _:
                yield from self._parts_of_container(value)

    def _parts_of_container(self, value: object) -> Iterator[bytes]:
        if is_dataclass(value) and not isinstance(value, type):
            yield self.of(type(value))
            for field in fields(value):
                yield from (field.name.encode(), self.of(getattr(value, field.name)))
        elif isinstance(value, Mapping):
            items = cast(Mapping[object, object], value).items()
            yield from sorted(self.of(key) + self.of(content) for key, content in items)
        elif isinstance(value, Set):
            yield from sorted(map(self.of, cast(Set[object], value)))
        elif isinstance(value, Sequence):
            yield from map(self.of, cast(Sequence[object], value))
        else:
            raise NoFingerprint(f"a {type(value).__name__} has no content that can be compared")

    def _parts_of_function(self, function: FunctionType) -> Iterator[bytes]:
        yield from (function.__module__.encode(), function.__qualname__.encode())
        if not _is_versioned(function.__module__):
            yield self.of(function.__code__)
            for name in _names_in(function.__code__):
                if name in function.__globals__:
                    yield from (name.encode(), self.of(function.__globals__[name]))
        yield from (self.of(function.__defaults__), self.of(function.__kwdefaults__))
        yield from (self.of(_content(cell)) for cell in function.__closure__ or ())

    def _parts_of_code(self, code: CodeType) -> Iterator[bytes]:
        yield code.co_code
        yield from map(self.of, (code.co_consts, code.co_names, code.co_varnames, code.co_freevars))


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


def _names_in(code: CodeType) -> list[str]:
    """Return the names that the code and the functions inside of it look up, sorted."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return sorted({*code.co_names, *(name for each in inner for name in _names_in(each))})


def _parts_of_named(value: type | ModuleType | BuiltinFunctionType) -> Iterator[bytes]:
    """Yield a class, a module or a function without Python code: its name, and the source file that defines it."""
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


def _framed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts with their lengths, so that different sequences of parts differ as bytes."""
    for part in parts:
        yield len(part).to_bytes(8, "big")
        yield part
