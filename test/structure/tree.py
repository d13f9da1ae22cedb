"""Programs as trees: reader and writer of MLIR's generic form, as jaxlib prints it with local scope.

It is independent of the project's parser on purpose. Attributes and types remain text, since nothing here interprets
them.

    %0:2 = "foo.bar"(%a)[^bb1] <{p = 1 : i32}> ({ ^bb0(%v: i32): ... }) {k, "odd key" = "x"} : (i32) -> (i32, i32)
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from .balance import end_of, pieces

UNIT = ""
"""The value of an attribute that is only a name."""


@dataclass(eq=False)
class Value:
    type: str


@dataclass(eq=False)
class Block:
    arguments: list[Value] = field(default_factory=list[Value])
    operations: list[Operation] = field(default_factory=list["Operation"])


@dataclass(eq=False)
class Operation:
    """Operation of a tree. The keys of `properties` and `attributes` are as in the text, quotes included."""

    name: str
    operands: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])
    properties: dict[str, str] = field(default_factory=dict[str, str])
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    regions: list[list[Block]] = field(default_factory=list[list[Block]])
    successors: list[Block] = field(default_factory=list[Block])

    def blocks(self) -> Iterator[Block]:
        for region in self.regions:
            yield from region

    def walk(self) -> Iterator[Operation]:
        """Yield the operation and all operations below it, in textual order."""
        yield self
        for block in self.blocks():
            for op in block.operations:
                yield from op.walk()


@dataclass(eq=False)
class Program:
    """Module, with the text of the resource section after it."""

    module: Operation
    resources: str = ""

    @property
    def body(self) -> Block:
        return self.module.regions[0][0]

    def functions(self) -> list[Operation]:
        return [op for op in self.body.operations if op.name == "func.func"]


class TreeError(Exception):
    """Error for a text that is not in generic form."""


def read(text: str) -> Program:
    """Return a new tree of a program that jaxlib has printed. Raises `TreeError`."""
    program: Program = pickle.loads(_pickled(text))
    return program


@lru_cache(64)
def _pickled(text: str) -> bytes:
    """Return the pickled tree of a text. It is cached, since a text is read repeatedly in a row."""
    return pickle.dumps(_read(text))


def _read(text: str) -> Program:
    start = text.find("\n{-#")
    body, resources = (text, "") if start < 0 else (text[:start], text[start + 1 :].rstrip())
    reader = _Reader(body)
    module = reader.operation()
    if module.name != "builtin.module" or len(module.regions) != 1:
        raise TreeError("expected one module")
    if not module.regions[0]:
        module.regions[0].append(Block())
    return Program(module, resources)


_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_DEFINED = re.compile(r"%([\w$.-]+)(?::(\d+))?\s*=")
_USED = re.compile(r"%([\w$.-]+)(?:#(\d+))?")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|[\w$.-]+')
_LABEL = re.compile(r"\^([\w$.-]+)")

Place = tuple[str, int]
"""`%name#number`"""


@dataclass
class _Scope:
    """Region while it is read. A value that is used before its definition waits here, then in the enclosing scope."""

    values: dict[Place, Value] = field(default_factory=dict[Place, Value])
    waiting: dict[Place, Value] = field(default_factory=dict[Place, Value])
    blocks: dict[str, Block] = field(default_factory=dict[str, Block])


class _Reader:
    def __init__(self, text: str):
        self._text, self._at = text, 0
        self._scopes = [_Scope()]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self._skip_space()
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._at)
        assert space is not None, "the pattern matches the empty text"
        self._at = space.end()

    def _must(self, pattern: re.Pattern[str]) -> re.Match[str]:
        if (match := self._take(pattern)) is None:
            raise self._error(pattern.pattern)
        return match

    def _optional(self, word: str) -> bool:
        self._skip_space()
        result = self._text.startswith(word, self._at)
        self._at += len(word) if result else 0
        return result

    def _expect(self, word: str) -> None:
        if not self._optional(word):
            raise self._error(word)

    def _error(self, expected: str) -> TreeError:
        return TreeError(f"expected {expected} before {self._text[self._at : self._at + 40]!r}")

    def _raw(self, stops: str) -> str:
        end = end_of(self._text, self._at, stops)
        result, self._at = self._text[self._at : end].strip(), end
        return result

    def operation(self) -> Operation:
        defined = self._take(_DEFINED)
        op = Operation(self._must(_NAME)[1])
        self._expect("(")
        while not self._optional(")"):
            op.operands.append(self._use())
            self._optional(",")
        if self._optional("["):
            while not self._optional("]"):
                op.successors.append(self._block_named(self._must(_LABEL)[1]))
                self._optional(",")
        if self._optional("<{"):
            op.properties = self._dictionary()
            self._expect(">")
        if self._optional("("):
            while not self._optional(")"):
                op.regions.append(self._region())
                self._optional(",")
        if self._optional("{"):
            op.attributes = self._dictionary()
        self._signature(op)
        op.results = [self._define(defined, index, value) for index, value in enumerate(op.results)]
        return op

    def _signature(self, op: Operation) -> None:
        self._expect(":")
        self._expect("(")
        taken = pieces(self._raw(")"))
        self._expect(")")
        self._expect("->")
        self._skip_space()
        listed = self._optional("(")
        given = pieces(self._raw(")")) if listed else [self._raw("\n")]
        if listed:
            self._expect(")")
        for value, type_ in zip(op.operands, taken, strict=True):
            value.type = type_
        op.results = [Value(type_) for type_ in given]

    def _dictionary(self) -> dict[str, str]:
        entries: dict[str, str] = {}
        while not self._optional("}"):
            key = self._must(_KEY)[0]
            entries[key] = self._raw(",}") if self._optional("=") else UNIT
            self._optional(",")
        return entries

    def _region(self) -> list[Block]:
        self._expect("{")
        self._scopes.append(_Scope())
        blocks: list[Block] = []
        while not self._optional("}"):
            if (label := self._take(_LABEL)) is not None:
                blocks.append(self._block_named(label[1]))
                self._arguments(blocks[-1])
                continue
            if not blocks:
                blocks.append(Block())
            blocks[-1].operations.append(self.operation())
        inner = self._scopes.pop()
        for place, value in inner.waiting.items():
            self._scopes[-1].waiting.setdefault(place, value)
        return blocks

    def _arguments(self, block: Block) -> None:
        if self._optional("("):
            while not self._optional(")"):
                defined = self._must(_USED)
                self._expect(":")
                self._skip_space()
                block.arguments.append(self._define(defined, 0, Value(self._raw(",)"))))
                self._optional(",")
        self._expect(":")

    def _block_named(self, label: str) -> Block:
        return self._scopes[-1].blocks.setdefault(label, Block())

    def _use(self) -> Value:
        name, number = self._must(_USED).groups()
        place = name, int(number or 0)
        for scope in reversed(self._scopes):
            if (value := scope.values.get(place) or scope.waiting.get(place)) is not None:
                return value
        return self._scopes[-1].waiting.setdefault(place, Value(""))

    def _define(self, defined: re.Match[str] | None, index: int, value: Value) -> Value:
        if defined is None:
            raise TreeError(f"a result without a name before {self._text[self._at : self._at + 40]!r}")
        place = defined[1], index
        scope = self._scopes[-1]
        waiting = scope.waiting.pop(place, None)
        if waiting is not None:
            waiting.type, value = value.type, waiting
        scope.values[place] = value
        return value
