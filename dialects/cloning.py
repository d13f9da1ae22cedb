"""Clone operations as xDSL's `Operation.clone` does, in a quarter of the time.

    copy = clone_of(op)                       # in place of op.clone()

    cloner = Cloner({id(argument): value})  # for operations that read each other's results
    copies = [cloner.clone(op) for op in body]

xDSL looks up values with a hash function written in Python, sets the operands of each operation twice, and checks each
operation that it inserts into a block. A clone needs none of this, because its operations are new and are valid if the
original operations are valid.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from xdsl.ir import Block, IRWithName, Operation, OpResult, Region, SSAValue, SSAValues

from ..support.locations import TEXT_POSITION, keep_text_position
from .making import can_be_made, fill, give_operands

OperationT = TypeVar("OperationT", bound=Operation)


def clone_of(op: OperationT) -> OperationT:
    """Return a clone of the operation with its regions, as `op.clone()` does."""
    return Cloner().clone(op)


_can_be_made = cache(can_be_made)


class Cloner:
    """Clones operations that may read each other's results.

    Attributes:
        values: Maps the id of each cloned or replaced value to the value that the clones use. The ids are valid as long
            as the cloned operations live.
    """

    def __init__(self, values: dict[int, SSAValue] | None = None):
        self.values: dict[int, SSAValue] = {} if values is None else values
        self._blocks = dict[Block, Block]()

    def clone(self, op: OperationT) -> OperationT:
        """Return a clone of the operation with its regions.

        Operands are replaced according to `values`. The results are added to `values`.
        """
        made = list[tuple[Any, Any]]()
        copy = self._clone(op, made)
        # Operands are set last, and in program order, since an operation may read a value that is defined after it.
        values = self.values
        for old, new in made:
            operands: tuple[SSAValue, ...] = old._operands
            if operands:
                give_operands(new, [values.get(id(value), value) for value in operands])
        return copy

    def _clone(self, op: Any, made: list[tuple[Any, Any]]) -> Any:
        kind = cast(type[Operation], type(op))
        if _can_be_made(kind) and not op._successors:
            copy: Any = object.__new__(kind)
            copy.properties, copy.attributes = op.properties.copy(), op.attributes.copy()
            copy.location = op.location
            self._add_results(op, copy)
        else:
            mapping = dict[SSAValue, SSAValue]()
            copy = cast(Operation, op).clone_without_regions(mapping, self._blocks, clone_operands=False)
            copy.regions = ()
            self.values.update({id(value): new for value, new in mapping.items()})
        if (position := op.__dict__.get(TEXT_POSITION)) is not None:
            keep_text_position(copy, position)
        made.append((op, copy))
        if op.regions:
            copy.regions = tuple([self._region(region, made) for region in op.regions])
            for region in copy.regions:
                region.parent = copy
        return copy

    def _add_results(self, op: Any, copy: Any) -> None:
        results = list[OpResult]()
        for index, result in enumerate(op.results):
            new: Any = OpResult(result._type, copy, index)
            if (name := result._name) is not None:
                new._name = _cloned_name(name)
            self.values[id(result)] = new
            results.append(new)
        copy.results = SSAValues(results)

    def _region(self, region: Region, made: list[tuple[Any, Any]]) -> Region:
        # Create all blocks first, because operations may refer to later blocks.
        pairs = [(block, self._block(block)) for block in region.blocks]
        for block, new_block in pairs:
            copies, op = list[Any](), block.first_op
            while op is not None:
                copies.append(self._clone(op, made))
                op = op._next_op  # pyright: ignore[reportPrivateUsage]
            fill(new_block, copies)
        return Region([new_block for _, new_block in pairs])

    def _block(self, block: Block) -> Block:
        new_block = self._blocks[block] = Block(arg_types=[argument.type for argument in block.args])
        for argument, new in zip(block.args, new_block.args, strict=True):
            new.location = argument.location
            new.name_hint = argument.name_hint
            self.values[id(argument)] = new
        return new_block


@lru_cache(maxsize=10_000)
def _cloned_name(name: str) -> str | None:
    """Return the name that xDSL gives to the clone of a value: the name without a trailing number, so `x` for `x_1`."""
    return IRWithName.extract_valid_name(name)
