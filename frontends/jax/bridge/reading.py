"""Convert an MLIR module to the xDSL module that would result from printing it and parsing the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    FusedLoc,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation

from ....dialects.constants.dense import to_small
from ....dialects.context import make_context
from ....dialects.making import can_be_made, fill, make, name_location
from ....dialects.stablehlo.creation import DenseConstantOp
from ....mlir_io.normalize import CHECKS, UNKNOWN_PROPERTIES, normalize
from ....support.garbage import no_collection
from ....support.locations import file_range, is_plain
from ....support.type_guards import is_standard_dense
from .bindings import Dictionary, NotBridged, Texts, defaults_of
from .dense_bits import dense_attr, exposed_bits, standard_dense


class ValueHints:
    """Gives xDSL values the names that MLIR prints."""

    def __init__(self, module: ir.Module):
        self._state = ir.AsmState(module.operation)
        self._are_numbers: dict[str, bool] = {}
        """For each operation name, whether MLIR only numbers the results. MLIR names either all results of an operation
        or none."""

    def give(self, name: str, results: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        if self._are_numbers.get(name):
            return
        hints = [self._hint(result) for result in results]
        self._are_numbers[name] = not any(hints)
        _give(hints, ours)

    def give_arguments(self, arguments: Sequence[Any], ours: Sequence[SSAValue]) -> None:
        _give([self._hint(argument) for argument in arguments], ours)

    def _hint(self, value: Any) -> str | None:
        """Return the name of a value; None if it has only a number, as in `%0` or `%0#1`."""
        name = value.get_name(self._state)[1:].partition("#")[0]
        return None if name.isdecimal() else name


def _give(hints: Sequence[str | None], ours: Sequence[SSAValue]) -> None:
    for hint, value in zip(hints, ours, strict=True):
        if hint is not None:
            value.name_hint = hint


class LocationsIn:
    """Converts locations to xDSL, with a cache.

    `metadata`: the converter of the attribute inside a fused location.
    """

    def __init__(self, metadata: Callable[[ir.Attribute], Attribute]):
        self._metadata = metadata
        # The bindings hash a location by its address in Python, and its attribute by its address in MLIR, which is
        # the same for equal locations.
        self._locations: dict[ir.Attribute, LocationAttr] = {}

    def get(self, location: ir.Location) -> LocationAttr:
        key = location.attr
        converted = self._locations.get(key)
        if converted is None:
            converted = self._locations[key] = self._convert(location)
        return converted

    def _convert(self, location: ir.Location) -> LocationAttr:
        if isinstance(location, ir.NameLoc):
            child = self.get(location.child_loc)
            # `loc("name")` contains an unknown location, which MLIR does not print.
            return name_location(location.name_str, NoneAttr() if child is UNKNOWN_LOC else child)
        if isinstance(location, ir.CallSiteLoc):
            return CallSiteLoc(self.get(location.callee), self.get(location.caller))
        if isinstance(location, ir.FileLineColLoc):
            start, end = (location.start_line, location.start_col), (location.end_line, location.end_col)
            return file_range(location.filename, start, end)
        if isinstance(location, ir.UnknownLoc):
            return UNKNOWN_LOC
        if isinstance(location, ir.FusedLoc):
            metadata = NoneAttr() if location.metadata is None else self._metadata(location.metadata)
            parts: list[Any] = list(location.locations)
            return FusedLoc(tuple(self.get(part) for part in parts), metadata)
        raise NotBridged(f"unsupported kind of location: {location}")


class AttributesIn:
    """Converts types and attributes to xDSL. The methods `type`, `get` and `value` each cache their results."""

    def __init__(self, context: Context):
        self.texts = Texts(context)
        self.types: dict[ir.Type, TypeAttribute] = {}
        self.attributes: dict[ir.Attribute, Attribute] = {}
        self.values: dict[ir.Attribute, Attribute] = {}
        self._kinds: dict[type[ir.Attribute], Callable[[Any], Attribute]] = {
            ir.IntegerAttr: self._integer,
            ir.StringAttr: self._string,
            ir.FlatSymbolRefAttr: self._symbol,
            ir.TypeAttr: lambda attribute: self.type(attribute.value),
            ir.UnitAttr: lambda _: UnitAttr(),
            ir.ArrayAttr: self._array,
            ir.DictAttr: self._dictionary,
            ir.DenseI64ArrayAttr: lambda attribute: DenseArrayBase.from_list(i64, list(attribute)),
            ir.DenseIntElementsAttr: lambda attribute: standard_dense(*self._bits(attribute)),
            ir.DenseFPElementsAttr: lambda attribute: standard_dense(*self._bits(attribute)),
            ir.DenseResourceElementsAttr: _resource,
        }

    def type(self, type: ir.Type) -> TypeAttribute:
        converted = self.types.get(type)
        if converted is None:
            converted = self.types[type] = self._type(type)
        return converted

    def _type(self, type: ir.Type) -> TypeAttribute:
        if isinstance(type, ir.RankedTensorType) and type.has_static_shape and type.encoding is None:
            return TensorType(self.type(type.element_type), type.shape)
        if isinstance(type, ir.FunctionType):
            return FunctionType.from_lists([*map(self.type, type.inputs)], [*map(self.type, type.results)])
        return self.texts.type(type)

    def get(self, attribute: ir.Attribute) -> Attribute:
        converted = self.attributes.get(attribute)
        if converted is None:
            convert = self._kinds.get(type(attribute), self.texts.attribute)
            converted = self.attributes[attribute] = convert(attribute)
        return converted

    def value(self, constant: ir.Attribute) -> Attribute:
        """Convert the value of a `stablehlo.constant`. A dense constant becomes a `DenseAttr`."""
        converted = self.values.get(constant)
        if converted is None:
            dense = isinstance(constant, ir.DenseElementsAttr)
            converted = self.values[constant] = dense_attr(*self._bits(constant)) if dense else self.get(constant)
        return converted

    def _bits(self, constant: Any) -> tuple[Any, bytes]:
        shaped: Any = self.type(constant.type)
        bits = exposed_bits(constant, shaped)
        return self.texts.dense(constant) if bits is None else (shaped, bits)

    def _integer(self, attribute: Any) -> Attribute:
        kind: Any = self.type(attribute.type)
        # Other types are rare, and the bindings cannot return integers wider than 64 bits.
        return IntegerAttr(attribute.value, kind) if kind in (i32, i64) else self.texts.attribute(attribute)

    def _string(self, attribute: Any) -> Attribute:
        raw = attribute.value_bytes
        if not (raw.isascii() and isinstance(attribute.type, ir.NoneType)):
            return self.texts.attribute(attribute)
        text = raw.decode()
        return StringAttr(text) if is_plain(text) else self.texts.attribute(attribute)

    def _symbol(self, attribute: Any) -> Attribute:
        return SymbolRefAttr(attribute.value) if is_plain(attribute.value) else self.texts.attribute(attribute)

    def _array(self, attribute: Any) -> Attribute:
        try:
            return ArrayAttr([self.get(element) for element in attribute])
        except TypeError:
            # The bindings do not expose complex constants.
            return self.texts.attribute(attribute)

    def _dictionary(self, attribute: Any) -> Attribute:
        names = [attribute[index].name for index in range(len(attribute))]
        try:
            return DictionaryAttr({name: self.get(attribute[name]) for name in names})
        except TypeError:
            return self.texts.attribute(attribute)


def _resource(attribute: ir.Attribute) -> Attribute:
    raise NotBridged("the data of a constant is a dialect resource")


def read(module: ir.Module) -> ModuleOp:
    """Convert an MLIR module to xDSL. Raises `NotBridged` for a module that can be converted only through its text."""
    try:
        with no_collection():
            converted = _OpReader(module).operation(module.operation)
    except NotBridged:
        raise
    except Exception as error:
        # The bindings and xDSL's checks raise errors of many types. In all cases, the caller falls back to text.
        raise NotBridged(f"{type(error).__name__}: {error}") from error
    assert isinstance(converted, ModuleOp), "the outermost operation of a module is a module"
    return converted


@dataclass(frozen=True, kw_only=True)
class _OperationKind:
    """The data that all operations with the same name share."""

    op_class: type[Operation]
    properties: dict[str, object]
    """Property definitions by name; empty without an IRDL definition."""
    has_definition: bool
    may_have_regions: bool
    is_constant: bool
    is_checked: bool
    """Whether `normalize` must run."""
    is_plain: bool
    """Whether `make` can create the operation."""
    omitted: tuple[tuple[str, Attribute], ...]
    """The properties that MLIR omits at their default values, with these values."""
    converted: dict[ir.Attribute, Attribute]
    """The cache of converted attributes, in the form that operations of this name hold."""


class _OpReader:
    def __init__(self, module: ir.Module):
        self._context = make_context()
        self._attributes = AttributesIn(self._context)
        self._locations = LocationsIn(self._attributes.get)
        self._names = ValueHints(module)
        self._values: dict[Any, SSAValue] = {}
        self._blocks: dict[ir.Block, Block] = {}
        self._kinds: dict[str, _OperationKind] = {}

    def operation(self, view: Any) -> Operation:
        op = view.operation
        name = op.name
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = self._kind(name)
        results = list(op.results)
        made = self._create(op, kind, self._types(results))
        if results:
            self._values.update(zip(results, made.results, strict=True))
            self._names.give(name, results, made.results)
        if kind.is_checked:
            # The parser creates the properties in the order of their definition.
            made.properties = {name: made.properties[name] for name in kind.properties if name in made.properties}
            normalize(made)
        return made

    def _create(self, op: Any, kind: _OperationKind, types: list[TypeAttribute]) -> Operation:
        """Return the operation with its operands, attributes and regions. Its results have no names yet."""
        values = self._values
        try:
            operands = [values[value] for value in op.operands]
        except KeyError:
            raise NotBridged("a value is used before its definition") from None
        location = self._locations.get(op.location)
        regions = [self._region(region) for region in op.regions] if kind.may_have_regions else ()
        # An operation can have successors only if the region has several blocks.
        successors = [self._blocks[block] for block in op.successors] if self._blocks else ()
        dictionaries = self._dictionaries(op, kind)
        if kind.is_plain and not successors:
            return make(
                kind.op_class,
                operands,
                result_types=types,
                dictionaries=dictionaries,
                location=location,
                regions=regions,
            )
        properties, attributes = dictionaries
        return kind.op_class.create(
            operands=operands,
            result_types=types,
            properties=properties,
            attributes=attributes,
            location=location,
            regions=regions,
            successors=successors,
        )

    def _types(self, values: list[Any]) -> list[TypeAttribute]:
        types = self._attributes.types
        try:
            return [types[value.type] for value in values]
        except KeyError:
            return [self._attributes.type(value.type) for value in values]

    def _region(self, region: Any) -> Region:
        theirs = list(region.blocks)
        blocks = [self._block(block) for block in theirs]
        if len(blocks) > 1:
            self._blocks.update(zip(theirs, blocks, strict=True))
        for block, source in zip(blocks, theirs, strict=True):
            fill(block, [self.operation(view) for view in source.operations])
        return Region(blocks)

    def _block(self, source: Any) -> Block:
        arguments = list(source.arguments)
        block = Block(arg_types=self._types(arguments))
        for argument, made in zip(arguments, block.args, strict=True):
            made.location = self._locations.get(argument.location)
            self._values[argument] = made
        self._names.give_arguments(arguments, block.args)
        return block

    def _kind(self, name: str) -> _OperationKind:
        op_class = self._context.get_op(name)
        has_definition = issubclass(op_class, IRDLOperation)
        properties = dict[str, object](op_class.get_irdl_definition().properties) if has_definition else {}
        is_constant = issubclass(op_class, DenseConstantOp)
        converted = self._attributes.values if is_constant else self._attributes.attributes
        return _OperationKind(
            op_class=op_class,
            properties=properties,
            has_definition=has_definition,
            may_have_regions=not has_definition or bool(op_class.get_irdl_definition().regions),
            is_constant=is_constant,
            is_checked=op_class in CHECKS or op_class in UNKNOWN_PROPERTIES,
            is_plain=can_be_made(op_class),
            omitted=defaults_of(name),
            converted=converted,
        )

    def _dictionaries(self, op: Any, kind: _OperationKind) -> tuple[Dictionary, Dictionary]:
        """Return the properties and the attributes of an operation. The bindings do not distinguish them."""
        source = op.attributes
        if not len(source):
            return {}, {}
        if not kind.has_definition:
            return self._attributes.texts.dictionaries(op)
        try:
            items = source.items()
        except TypeError:
            return self._dictionaries_from_text(op, kind)
        get = self._attributes.value if kind.is_constant else self._attributes.get
        try:
            dictionary = {name: kind.converted[value] for name, value in items}
        except KeyError:
            dictionary = {
                name: get(value) if name in kind.properties else self._attributes.get(value) for name, value in items
            }
        for name, default in kind.omitted:
            if dictionary.get(name) == default:
                del dictionary[name]
        return (dictionary, {}) if dictionary.keys() <= kind.properties.keys() else _split(dictionary, kind)

    def _dictionaries_from_text(self, op: Any, kind: _OperationKind) -> tuple[Dictionary, Dictionary]:
        """Return the properties and attributes of an operation with complex constants from its text.

        The bindings do not expose complex constants.
        """
        properties, attributes = self._attributes.texts.dictionaries(op)
        dictionary = properties | attributes
        value = dictionary.get("value")
        if kind.is_constant and value is not None and is_standard_dense(value):
            dictionary["value"] = to_small(value)
        return _split(dictionary, kind)


def _split(dictionary: Dictionary, kind: _OperationKind) -> tuple[Dictionary, Dictionary]:
    """Separate properties from attributes, according to the definition of the operation."""
    return (
        {name: value for name, value in dictionary.items() if name in kind.properties},
        {name: value for name, value in dictionary.items() if name not in kind.properties},
    )
