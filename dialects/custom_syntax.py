"""The custom forms of xDSL's operations, read without losing anything: what xDSL reads and drops is an error."""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.utils.lexer import Position

_RESULTS = re.compile(r"(?:%[^=]*=\s*)?")


def start_of_name(text: str, start: Position) -> Position:
    """Where the name of the operation stands whose results, if it has some, are named from `start` on."""
    match = _RESULTS.match(text, start)
    assert match is not None, "the pattern matches the empty text"
    return match.end()


class CustomSyntaxParser(Parser):
    """Knows which attributes the text gives to the operation that is being read."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._given: list[dict[str, Position]] = []
        """Where the dictionary stands that gives an attribute, for each operation that is being read."""
        self._open_dictionaries = 0

    def parse_operation(self) -> Operation:
        text, start = self.lexer.input.content, start_of_name(self.lexer.input.content, self.pos)
        self._given.append({})
        op = super().parse_operation()
        given = self._given.pop()
        if given and not text.startswith('"', start):
            self._check_that_all_were_taken(op, given)
        return op

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        start = self.pos
        self._open_dictionaries += 1
        found = super().parse_optional_dictionary_attr_dict()
        self._open_dictionaries -= 1
        if not self._open_dictionaries and self._given:
            self._given[-1].update(dict.fromkeys(found, start))
        return found

    def _check_that_all_were_taken(self, op: Operation, given: dict[str, Position]) -> None:
        if not type(op).__module__.startswith("xdsl.") or isinstance(op, FuncOp):
            # Ours take what they are given; the dictionaries in the signature of a function are not its own.
            return
        for name, start in given.items():
            if name not in op.attributes and name not in op.properties:
                self.raise_error(f"'{name}' would be lost: write {op.name} in generic form", start)
