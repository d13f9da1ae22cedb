"""Writes modules as text that MLIR and this project read back to the same program, constants to the bit.

With debug information every location is an alias, `loc(#loc7)`, defined at the end of the file as MLIR does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import Builtin, LocationAttr, ModuleOp, NoneAttr, UnknownLoc
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from .dense import standard_text
from .guards import is_standard_dense, is_tensor
from .locations import is_plain, location_text
from .lossy_syntax import own_syntax_loses


def print_module(module: ModuleOp, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of the module, the same to the byte each time."""
    stream = StringIO()
    printer = ModulePrinter(stream, print_generic_format=generic, print_debuginfo=debuginfo)
    printer.print_op(module)
    printer.print_string("\n")
    for definition in printer.definitions:
        printer.print_string(definition + "\n")
    printer.print_metadata([Builtin])
    return stream.getvalue()


def attribute_text(attribute: Attribute) -> str:
    """The attribute as it stands in the text of a module."""
    stream = StringIO()
    ModulePrinter(stream).print_attribute(attribute)
    return stream.getvalue()


@dataclass(eq=False, repr=False)
class ModulePrinter(Printer):
    """xDSL's printer with exact constants and locations as aliases."""

    definitions: list[str] = field(default_factory=list[str], init=False)
    """`#loc3 = loc(…)`, each after those that it is built on."""

    _alias_of_text: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _alias_of_object: dict[int, str] = field(default_factory=dict[int, str], init=False)
    _tensors: dict[Attribute, str] = field(default_factory=dict[Attribute, str], init=False)
    _in_attributes: bool = field(default=False, init=False)

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, LocationAttr):
            # MLIR looks an alias up late at an operation or a block argument only, not inside attributes.
            aliased = self.print_debuginfo and not self._in_attributes
            text = self._alias(attribute) if aliased else location_text(attribute)
            self.print_string(f"loc({text})")
        elif is_standard_dense(attribute) and (text := standard_text(attribute)) is not None:
            self.print_string(f"{text} : ")
            super().print_attribute(attribute.type)
        elif is_tensor(attribute) and isinstance(attribute.encoding, NoneAttr):
            self.print_string(self._tensors.get(attribute) or self._tensor_text(attribute))
        else:
            # Some are text that was read, whose lines are its own: it would move to the right each time.
            outer, self._indent = self._indent, 0
            super().print_attribute(attribute)
            self._indent = outer

    def _tensor_text(self, type_: Attribute) -> str:
        """A module has few tensor types, and names them at every operation."""
        outer, self.stream = self.stream, StringIO()
        super().print_attribute(type_)
        text, self.stream = self.stream.getvalue(), outer
        return self._tensors.setdefault(type_, text)

    def print_string_literal(self, string: str) -> None:
        if is_plain(string):
            self.print_string(f'"{string}"')
        else:
            super().print_string_literal(string)

    def print_op(self, op: Operation) -> None:
        """In generic form where xDSL's own syntax would lose something."""
        outer = self.print_generic_format
        self.print_generic_format = outer or own_syntax_loses(op)
        super().print_op(op)
        self.print_generic_format = outer

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        outer, self._in_attributes = self._in_attributes, True
        super().print_attr_dict(attr_dict)
        self._in_attributes = outer

    def _alias(self, location: Attribute) -> str:
        if isinstance(location, UnknownLoc):
            return "unknown"
        # Nested locations take long to hash: look at the object, and then at the text.
        if (known := self._alias_of_object.get(id(location))) is not None:
            return known
        text = location_text(location, self._alias)
        known = self._alias_of_text.get(text)
        if known is None:
            known = f"#loc{len(self.definitions) or ''}"
            self.definitions.append(f"{known} = loc({text})")
            self._alias_of_text[text] = known
        self._alias_of_object[id(location)] = known
        return known
