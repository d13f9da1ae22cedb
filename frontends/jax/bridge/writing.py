"""Convert an xDSL module to the MLIR module that would result from printing it and parsing the text. The MLIR module is
verified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FunctionType,
    FusedLoc,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    UnregisteredOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects.constants.dense import DenseAttr, small_bits
from ....mlir_io.parser import NAME_OF_UNKNOWN
from ....mlir_io.printer import attribute_text
from ....support.garbage import no_collection
from ....support.locations import RangeEnd, is_plain
from ....support.type_guards import is_tensor
from .bindings import RESOURCE, NotBridged, build
from .dense_bits import elements_attr


class LocationsOut:
    """Converts locations to MLIR, in the current context and with a cache.

    `metadata`: the converter of the attribute inside a fused location.
    """

    def __init__(self, metadata: Callable[[Attribute], ir.Attribute]):
        self._metadata = metadata
        # Keyed by identity: nested locations are slow to hash. The value keeps the key alive.
        self._locations: dict[int, tuple[Attribute, ir.Location]] = {}

    def get(self, location: Attribute) -> ir.Location:
        entry = self._locations.get(id(location))
        if entry is None:
            entry = self._locations[id(location)] = location, self._convert(location)
        return entry[1]

    def _convert(self, location: Attribute) -> ir.Location:
        if type(location) is NameLoc:
            # This kind is tested first, since nearly all locations are of this kind.
            child = location.location
            return build.NameLoc.get(location.desc.data, None if type(child) is NoneAttr else self.get(child))
        match location:
            case CallSiteLoc():
                return build.CallSiteLoc.get(self.get(location.callee), [self.get(location.caller)])
            case FileLineColLoc():
                line, column = location.line.data, location.column.data
                return build.FileLineColLoc.get(location.filename.data, line, column)
            case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
                positions = start.line.data, start.column.data, end.line.data, end.column.data
                return build.FileLineColLoc.get(start.filename.data, *positions)
            case FusedLoc(locations=ArrayAttr() as parts, metadata=metadata):
                inner = None if isinstance(metadata, NoneAttr) else self._metadata(metadata)
                return build.Location.fused([self.get(part) for part in parts.data], inner)
            case UnknownLoc():
                return build.UnknownLoc.get()
            case _:
                raise NotBridged(f"unsupported kind of location: {location}")


class AttributesOut:
    """Converts types and attributes to MLIR, in the current context and with a cache."""

    def __init__(self):
        # Keyed by identity, which is fast. Equal attributes that are distinct objects are converted separately.
        self.types: dict[int, ir.Type] = {}
        self._alive: list[Attribute] = []
        """The types whose identities are keys. This list keeps them alive."""
        self._attributes: dict[int, tuple[Attribute, ir.Attribute]] = {}
        self._parsed_texts: dict[str, ir.Attribute] = {}
        self._kinds: dict[type[Attribute], Callable[[Any], ir.Attribute]] = {
            DenseAttr: lambda attribute: self._constant(attribute, attribute.data.data),
            DenseIntOrFPElementsAttr: self._dense,
            StringAttr: self._string,
            SymbolRefAttr: self._symbol,
            IntegerAttr: self._integer,
            DenseArrayBase: self._numbers,
            UnitAttr: lambda _: build.UnitAttr.get(),
            FunctionType: lambda attribute: build.TypeAttr.get(self.type(attribute)),
            ArrayAttr: lambda attribute: build.ArrayAttr.get([*map(self.get, attribute.data)]),
            DictionaryAttr: lambda attribute: build.DictAttr.get({k: self.get(v) for k, v in attribute.data.items()}),
        }

    def type(self, type: Attribute) -> ir.Type:
        converted = self.types.get(id(type))
        if converted is None:
            self._alive.append(type)
            converted = self.types[id(type)] = self._type(type)
        return converted

    def _type(self, type: Any) -> ir.Type:
        if is_tensor(type) and type.has_static_shape() and isinstance(type.encoding, NoneAttr):
            return build.RankedTensorType.get(type.get_shape(), self.type(type.element_type))
        if isinstance(type, FunctionType):
            return build.FunctionType.get([*map(self.type, type.inputs)], [*map(self.type, type.outputs)])
        other: Attribute = type
        return build.Type.parse(attribute_text(other))

    def get(self, attribute: Attribute) -> ir.Attribute:
        entry = self._attributes.get(id(attribute))
        if entry is None:
            convert: Any = self._kinds.get(type(attribute), self._parse)
            entry = self._attributes[id(attribute)] = attribute, convert(attribute)
        return entry[1]

    def _dense(self, attribute: Any) -> ir.Attribute:
        # Only tensors have bits that MLIR accepts. Other constants are converted through their text.
        is_plain_tensor = isinstance(attribute.type, TensorType)
        return self._constant(attribute, small_bits(attribute)) if is_plain_tensor else self._parse(attribute)

    def _string(self, attribute: StringAttr) -> ir.Attribute:
        return build.StringAttr.get(attribute.data) if is_plain(attribute.data) else self._parse(attribute)

    def _symbol(self, attribute: SymbolRefAttr) -> ir.Attribute:
        name = attribute.root_reference.data
        is_simple = not attribute.nested_references.data and is_plain(name)
        return build.FlatSymbolRefAttr.get(name) if is_simple else self._parse(attribute)

    def _integer(self, attribute: Any) -> ir.Attribute:
        if attribute.type in (i32, i64):
            return build.IntegerAttr.get(self.type(attribute.type), attribute.value.data)
        return self._parse(attribute)

    def _numbers(self, attribute: Any) -> ir.Attribute:
        if attribute.elt_type == i64:
            return build.DenseI64ArrayAttr.get(attribute.get_values())
        return self._parse(attribute)

    def _constant(self, attribute: Any, bits: bytes) -> ir.Attribute:
        return elements_attr(self.type(attribute.type), attribute.type.element_type, bits)

    def _parse(self, attribute: Attribute) -> ir.Attribute:
        text = attribute_text(attribute)
        if RESOURCE in text:
            raise NotBridged("the data of a constant is a dialect resource")
        parsed = self._parsed_texts.get(text)
        if parsed is None:
            parsed = self._parsed_texts[text] = build.Attribute.parse(text)
        return parsed


def write(module: ModuleOp, context: ir.Context) -> ir.Module:
    """Convert the module to an MLIR module in this context.

    Raises `NotBridged` if the module can be converted only through its text, or if MLIR rejects it.
    """
    try:
        with no_collection(), context, build.Location.unknown():
            made = _ModuleWriter().module(module)
        made.operation.verify()
    except NotBridged:
        raise
    except Exception as error:
        # The bindings raise errors of many types. If MLIR rejects the module, parsing its text gives better messages.
        raise NotBridged(f"{type(error).__name__}: {error}") from error
    return made


class _ModuleWriter:
    """A writer of modules, which inserts each operation before it creates the next one. Otherwise, an error could
    destroy a value that still has uses, and MLIR would abort the process.
    """

    def __init__(self):
        self._attributes = AttributesOut()
        self._locations = LocationsOut(self._attributes.get)
        self._values: dict[int, Any] = {}
        """The MLIR values by the identity of the xDSL value."""
        self._names: dict[type[Operation], str] = {}
        self._blocks: dict[Block, ir.Block] = {}
        self._dictionaries: dict[tuple[object, ...], dict[str, ir.Attribute]] = {}

    def module(self, module: ModuleOp) -> ir.Module:
        made = build.Module.create(self._locations.get(module.location))
        for name, value in (module.properties | module.attributes).items():
            made.operation.attributes[name] = self._attributes.get(value)
        self._fill(made.body, module.body.block)
        return made

    def _fill(self, body: ir.Block, block: Block) -> None:
        append, create = body.append, build.Operation.create
        values, location_of = self._values, self._locations.get
        op = block.first_op
        while op is not None:
            results, regions = op.results, op.regions
            try:
                operands = [values[id(value)] for value in op._operands]  # pyright: ignore[reportPrivateUsage]
            except KeyError:
                raise NotBridged("a value is used before its definition") from None
            made: Any = create(
                self._names.get(type(op)) or self._name(op),
                self._types(results),
                operands,
                self._dictionary(op),
                # An operation can have successors only if a region has several blocks.
                [self._blocks[successor] for successor in op.successors] if self._blocks else None,
                len(regions),
                location_of(op.location),
                False,
            )
            append(made)
            if len(results) == 1:
                for result in results:
                    values[id(result)] = made.result
            elif results:
                values.update(zip(map(id, results), made.results, strict=True))
            if regions:
                for region, theirs in zip(regions, made.regions, strict=True):
                    self._region(theirs, region)
            op = op.next_op

    def _types(self, values: Sequence[SSAValue]) -> list[ir.Type]:
        types = self._attributes.types
        try:
            return [types[id(value._type)] for value in values]  # pyright: ignore[reportPrivateUsage]
        except KeyError:
            return [self._attributes.type(value.type) for value in values]

    def _region(self, made: Any, region: Region) -> None:
        blocks = [(block, self._block(made, block)) for block in region.blocks]
        if len(blocks) > 1:
            self._blocks.update(blocks)
        for block, theirs in blocks:
            self._fill(theirs, block)

    def _block(self, made: Any, block: Block) -> ir.Block:
        theirs = made.blocks.append(
            *self._types(block.args), arg_locs=[self._locations.get(arg.location) for arg in block.args]
        )
        self._values.update(zip(map(id, block.args), theirs.arguments, strict=True))
        return theirs

    def _dictionary(self, op: Operation) -> dict[str, ir.Attribute] | None:
        named = op.properties | op.attributes if op.attributes else op.properties
        if not named:
            return None
        key = (*named, *map(id, named.values()))
        converted = self._dictionaries.get(key)
        if converted is None:
            get = self._attributes.get
            converted = {name: get(value) for name, value in named.items() if name != NAME_OF_UNKNOWN}
            self._dictionaries[key] = converted
        return converted

    def _name(self, op: Operation) -> str:
        """Return the name of an operation, and cache it by class. Each unregistered operation has its own class."""
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        self._names[type(op)] = name
        return name
