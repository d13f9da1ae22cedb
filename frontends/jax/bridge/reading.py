"""Convert an MLIR module to an xDSL module. It prints to the same bytes as the module parsed from JAX's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation

from ....dialects.context import make_context
from ....dialects.dense import to_small
from ....dialects.stablehlo.creation import DenseConstantOp
from ....mlir_io.normalize import CHECKS, UNKNOWN_PROPERTIES, normalize
from ....support.garbage import no_collection
from ....support.type_guards import is_standard_dense
from .attributes_in import AttributesIn
from .defaults import defaults_of
from .locations_in import LocationsIn
from .making import can_be_made, fill, make
from .names import ValueHints
from .not_bridged import NotBridged
from .texts import Dictionary


def read(module: ir.Module) -> ModuleOp:
    """The xDSL module. Raises `NotBridged` for a module that can only be converted through its text."""
    try:
        with no_collection():
            converted = _OpReader(module).operation(module.operation)
    except NotBridged:
        raise
    except Exception as error:
        # The bindings and xDSL's checks raise errors of many types; for all of them the caller falls back to text.
        raise NotBridged(f"{type(error).__name__}: {error}") from error
    assert isinstance(converted, ModuleOp), "the outermost operation of a module is one"
    return converted


@dataclass(frozen=True)
class _Kind:
    """Facts shared by all operations of one name."""

    op_class: type[Operation]
    properties: dict[str, object]
    """Definitions by name; empty without an IRDL definition."""
    has_definition: bool
    is_constant: bool
    is_checked: bool
    """Needs `normalize`."""
    is_plain: bool
    """Can be created by `make`."""
    omitted: tuple[tuple[str, Attribute], ...]
    """Properties that MLIR does not print if they have this value, the default."""
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
        self._kinds: dict[str, _Kind] = {}

    def operation(self, view: Any) -> Operation:
        op = view.operation
        name = op.name
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = self._kind(name)
        values = self._values
        results = list(op.results)
        types = self._types(results)
        try:
            operands = [values[value] for value in op.operands]
        except KeyError:
            raise NotBridged("a value is used in front of its definition") from None
        location = self._locations.get(op.location)
        regions = [self._region(region) for region in op.regions]
        # Only if a region has several blocks can an operation have successors.
        successors = [self._blocks[block] for block in op.successors] if self._blocks else ()
        properties, attributes = self._dictionaries(op, kind)
        if kind.is_plain and not successors:
            made = make(kind.op_class, operands, types, properties, attributes, location, regions)
        else:
            made = kind.op_class.create(
                operands=operands,
                result_types=types,
                properties=properties,
                attributes=attributes,
                location=location,
                regions=regions,
                successors=successors,
            )
        if results:
            values.update(zip(results, made.results, strict=True))
            self._names.give(name, results, made.results)
        if kind.is_checked:
            # In the order of their definition, as the parser creates them.
            made.properties = {name: made.properties[name] for name in kind.properties if name in made.properties}
            normalize(made)
        return made

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

    def _kind(self, name: str) -> _Kind:
        op_class = self._context.get_op(name)
        has_definition = issubclass(op_class, IRDLOperation)
        properties = dict[str, object](op_class.get_irdl_definition().properties) if has_definition else {}
        is_constant = issubclass(op_class, DenseConstantOp)
        converted = self._attributes.values if is_constant else self._attributes.attributes
        return _Kind(
            op_class,
            properties,
            has_definition,
            is_constant,
            op_class in CHECKS or op_class in UNKNOWN_PROPERTIES,
            can_be_made(op_class),
            defaults_of(name),
            converted,
        )

    def _dictionaries(self, op: Any, kind: _Kind) -> tuple[Dictionary, Dictionary]:
        """Properties and attributes, which the bindings do not distinguish."""
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

    def _dictionaries_from_text(self, op: Any, kind: _Kind) -> tuple[Dictionary, Dictionary]:
        """Through text, for an operation with a constant of complex numbers, which the bindings do not expose."""
        properties, attributes = self._attributes.texts.dictionaries(op)
        dictionary = properties | attributes
        value = dictionary.get("value")
        if kind.is_constant and value is not None and is_standard_dense(value):
            dictionary["value"] = to_small(value)
        return _split(dictionary, kind)


def _split(dictionary: Dictionary, kind: _Kind) -> tuple[Dictionary, Dictionary]:
    """Properties and attributes, by the definition of the operation."""
    return (
        {name: value for name, value in dictionary.items() if name in kind.properties},
        {name: value for name, value in dictionary.items() if name not in kind.properties},
    )
