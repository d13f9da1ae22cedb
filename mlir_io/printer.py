"""The printer of modules. MLIR and this project parse the printed text to the same program, with bit-exact constants.

With debug information, every location is printed as an alias, such as `loc(#loc7)`. As in MLIR, the definitions of
location aliases are at the end of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import Builtin, LocationAttr, ModuleOp, UnknownLoc, UnregisteredAttr
from xdsl.ir import Attribute, Operation

from ..dialects.constants.dense import standard_text
from ..support.caching_printer import CachingPrinter
from ..support.locations import is_plain, location_pieces, location_text, parts_first
from ..support.type_guards import is_standard_dense
from .custom_forms import is_lossless

EMPTY_BODY = "<>"
"""The text that represents the empty body of an opaque attribute, such as `#foo.set<>`, in xDSL's attribute."""
MAX_CACHED_LENGTH = 200
"""The maximum length of the attribute texts in the cache. Longer ones, such as weights, occur only once."""


def print_module(module: ModuleOp, *, generic: bool = False, debuginfo: bool = False) -> str:
    """Return the text of the module. The same module always gives the same text.

    Args:
        module: The module to print.
        generic: Print all operations in generic form.
        debuginfo: Print locations.
    """
    stream = StringIO()
    printer = ModulePrinter(stream, print_generic_format=generic, print_debuginfo=debuginfo)
    printer.print_op(module)
    printer.print_string("\n")
    for definition in printer.definitions:
        printer.print_string(definition + "\n")
    printer.print_metadata([Builtin])
    return stream.getvalue()


def attribute_text(attribute: Attribute) -> str:
    """Return the text of the attribute as it appears in a module."""
    stream = StringIO()
    ModulePrinter(stream).print_attribute(attribute)
    return stream.getvalue()


@dataclass(eq=False, repr=False)
class ModulePrinter(CachingPrinter):
    """xDSL's printer with bit-exact constants and location aliases."""

    definitions: list[str] = field(default_factory=list[str], init=False)
    """The alias definitions to print at the end, such as `#loc3 = loc(…)`. Each follows the definitions to which it
    refers."""

    _alias_of_text: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _alias_of_object: dict[int, str] = field(default_factory=dict[int, str], init=False)
    _attribute_texts: dict[tuple[int, bool], tuple[Attribute, str]] = field(
        default_factory=dict[tuple[int, bool], tuple[Attribute, str]], init=False
    )
    """The attribute and its text, by the attribute's id and by whether it is nested in another attribute. A module
    repeats a few distinct attributes."""
    _in_attributes: bool = field(default=False, init=False)

    def print_attribute(self, attribute: Attribute) -> None:
        if (cached := self._attribute_texts.get((id(attribute), self._in_attributes))) is not None:
            return self.print_string(cached[1], indent=0)
        if isinstance(attribute, LocationAttr):
            return self._print_location(attribute)
        text = self.text_of(lambda _: self._print_uncached(attribute))
        if len(text) <= MAX_CACHED_LENGTH:
            self._attribute_texts[id(attribute), self._in_attributes] = attribute, text
        # Print without indentation: an unregistered attribute contains its own line breaks, and each round trip would
        # indent it further.
        self.print_string(text, indent=0)

    def _print_location(self, location: LocationAttr) -> None:
        # Only operations and block arguments may use an alias before its definition; attributes may not.
        aliased = self.print_debuginfo and not self._in_attributes
        text = self._alias(location) if aliased else location_text(location)
        self.print_string(f"loc({text})")

    def _print_uncached(self, attribute: Attribute) -> None:
        if is_standard_dense(attribute) and (text := standard_text(attribute)) is not None:
            self.print_string(f"{text} : ")
            super().print_attribute(attribute.type)
        elif isinstance(attribute, UnregisteredAttr) and attribute.value.data == EMPTY_BODY:
            self.print_string(f"{'!' if attribute.is_type.data else '#'}{attribute.attr_name.data}{EMPTY_BODY}")
        else:
            super().print_attribute(attribute)

    def print_string_literal(self, string: str) -> None:
        if is_plain(string):
            self.print_string(f'"{string}"')
        else:
            super().print_string_literal(string)

    def print_op(self, op: Operation) -> None:
        """Print the operation, in generic form if its custom form would lose information."""
        outer = self.print_generic_format
        self.print_generic_format = outer or not is_lossless(op, self.print_debuginfo)
        super().print_op(op)
        self.print_generic_format = outer

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        outer, self._in_attributes = self._in_attributes, True
        super().print_attr_dict(attr_dict)
        self._in_attributes = outer

    def _alias(self, location: Attribute) -> str:
        """Return the alias of the location, such as `#loc3`, after defining aliases for its nested locations."""
        # Locations are looked up by id, and then by text, because nested locations are slow to hash.
        for part in parts_first(location, self._alias_of_object):
            self._alias_of_object[id(part)] = self._define(part)
        return self._alias_of_object[id(location)]

    def _define(self, location: Attribute) -> str:
        """Return the alias of a location whose nested locations already have aliases."""
        if isinstance(location, UnknownLoc):
            return "unknown"
        pieces = location_pieces(location)
        text = "".join(piece if isinstance(piece, str) else self._alias_of_object[id(piece)] for piece in pieces)
        alias = self._alias_of_text.get(text)
        if alias is None:
            alias = self._alias_of_text[text] = f"#loc{len(self.definitions) or ''}"
            self.definitions.append(f"{alias} = loc({text})")
        return alias
