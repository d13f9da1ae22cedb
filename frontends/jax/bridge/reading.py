"""A module of MLIR as ours: the same IR, to the byte of its text, that parsing what JAX prints would give."""

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
from .names import Names
from .not_bridged import NotBridged
from .texts import Dictionary


def read(module: ir.Module) -> ModuleOp:
    """Raises `NotBridged` for what only the text can say."""
    try:
        with no_collection():
            found = _Reader(module).operation(module.operation)
    except NotBridged:
        raise
    except Exception as error:
        # The bindings, and xDSL's checks, raise whatever they raise; all mean that the text is asked.
        raise NotBridged(f"{type(error).__name__}: {error}") from error
    assert isinstance(found, ModuleOp), "the outermost operation of a module is one"
    return found


@dataclass(frozen=True)
class _Kind:
    """What is known of all operations of one name."""

    of: type[Operation]
    properties: dict[str, object]
    is_known: bool
    is_constant: bool
    is_checked: bool
    is_plain: bool
    left_out: tuple[tuple[str, Attribute], ...]
    """Properties that MLIR does not print where they have this value, which goes without saying."""
    seen: dict[ir.Attribute, Attribute]
    """What was converted, as the operations of this name hold it."""


class _Reader:
    def __init__(self, module: ir.Module):
        self._context = make_context()
        self._attributes = AttributesIn(self._context)
        self._locations = LocationsIn(self._attributes.get)
        self._names = Names(module)
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
        # Only where a region has several blocks, any operation can go to one.
        successors = [self._blocks[block] for block in op.successors] if self._blocks else ()
        properties, attributes = self._dictionaries(op, kind)
        if kind.is_plain and not successors:
            made = make(kind.of, operands, types, properties, attributes, location, regions)
        else:
            made = kind.of.create(
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
            # In the order of their definition, in which the parser makes them.
            made.properties = {name: made.properties[name] for name in kind.properties if name in made.properties}
            normalize(made)
        return made

    def _types(self, values: list[Any]) -> list[TypeAttribute]:
        known = self._attributes.types
        try:
            return [known[value.type] for value in values]
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
        of = self._context.get_op(name)
        is_known = issubclass(of, IRDLOperation)
        defined = dict[str, object](of.get_irdl_definition().properties) if is_known else {}
        is_constant = issubclass(of, DenseConstantOp)
        seen = self._attributes.values if is_constant else self._attributes.known
        return _Kind(
            of,
            defined,
            is_known,
            is_constant,
            of in CHECKS or of in UNKNOWN_PROPERTIES,
            can_be_made(of),
            defaults_of(name),
            seen,
        )

    def _dictionaries(self, op: Any, kind: _Kind) -> tuple[Dictionary, Dictionary]:
        """Properties and attributes, which the bindings do not tell apart."""
        given = op.attributes
        if not len(given):
            return {}, {}
        if not kind.is_known:
            return self._attributes.texts.dictionaries(op)
        try:
            items = given.items()
        except TypeError:
            return self._divided(op, kind)
        get = self._attributes.value if kind.is_constant else self._attributes.get
        try:
            found = {name: kind.seen[value] for name, value in items}
        except KeyError:
            found = {
                name: get(value) if name in kind.properties else self._attributes.get(value) for name, value in items
            }
        for name, default in kind.left_out:
            if found.get(name) == default:
                del found[name]
        return (found, {}) if found.keys() <= kind.properties.keys() else _split(found, kind)

    def _divided(self, op: Any, kind: _Kind) -> tuple[Dictionary, Dictionary]:
        """By way of the text, where an attribute is a constant of complex numbers, which the bindings do not show."""
        properties, attributes = self._attributes.texts.dictionaries(op)
        found = properties | attributes
        value = found.get("value")
        if kind.is_constant and value is not None and is_standard_dense(value):
            found["value"] = to_small(value)
        return _split(found, kind)


def _split(found: Dictionary, kind: _Kind) -> tuple[Dictionary, Dictionary]:
    return (
        {name: value for name, value in found.items() if name in kind.properties},
        {name: value for name, value in found.items() if name not in kind.properties},
    )
