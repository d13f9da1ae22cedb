"""Convert an xDSL module to an MLIR module, the same as MLIR would parse from its text, and verify it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ....mlir_io.parser import NAME_OF_UNKNOWN
from ....support.garbage import no_collection
from .attributes_out import AttributesOut
from .building import build
from .locations_out import LocationsOut
from .not_bridged import NotBridged


def write(module: ModuleOp, context: ir.Context) -> ir.Module:
    """The MLIR module in this context. Raises `NotBridged` for a module that can only be converted through its text,
    and for one that MLIR rejects."""
    try:
        with no_collection(), context, build.Location.unknown():
            made = _ModuleWriter().module(module)
        made.operation.verify()
    except NotBridged:
        raise
    except Exception as error:
        # The bindings raise errors of many types; parsing the text gives better messages if MLIR rejects the module.
        raise NotBridged(f"{type(error).__name__}: {error}") from error
    return made


class _ModuleWriter:
    """Inserts every operation before it creates the next one: MLIR aborts the process if a value with uses is
    destroyed."""

    def __init__(self):
        self._attributes = AttributesOut()
        self._locations = LocationsOut(self._attributes.get)
        self._values: dict[int, Any] = {}
        """By the identity of the xDSL value."""
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
                raise NotBridged("a value is used in front of its definition") from None
            made: Any = create(
                self._names.get(type(op)) or self._name(op),
                self._types(results),
                operands,
                self._dictionary(op),
                # Only if a region has several blocks can an operation have successors.
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
        """The operation's name, cached by class. xDSL has a class for each unregistered operation too."""
        name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
        self._names[type(op)] = name
        return name
