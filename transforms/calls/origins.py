"""Record the origin of each operation of an inlined module: the inlined call, and the operation's index in the callee.

    %1 = call @f(%x)      // the instance: @f, called here
    %2 = call @f(%1)      // another instance

After inlining, an operation that had index 3 in `@f` has the origin (instance, 3). The table maps operations to
origins, and is stored outside the module. Attributes of the operations would be printed and compared, and might be left
behind in the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from ...analysis.step.marks import is_copy
from ...dialects.names import Names
from ...support.operations import every_operation

MAX_DEPTH = 64
"""Maximum depth of nested calls that are recorded. Deeper calls stay inlined, because each level copies the origins of
all deeper levels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class InlinedCall:
    """A call that was inlined.

    Attributes:
        callee: The name of the called function.
        at: The origin of the call operation itself.
        location, attributes, operands: The location, attributes and operands of the call.
        names: The SSA names of its results.
    """

    callee: str
    at: Origin
    location: LocationAttr
    attributes: Mapping[str, Attribute]
    operands: tuple[SSAValue, ...]
    names: tuple[str | None, ...]

    @property
    def depth(self) -> int:
        """The nesting depth of the call: 1 for a call in a function that was not inlined itself."""
        return 1 if self.at.instance is None else self.at.instance.depth + 1


@dataclass(frozen=True)
class Origin:
    """The inlined call that an operation comes from, and the operation's index in the called function.

    Attributes:
        instance: The inlined call; None if the operation was not inlined.
        index: The index of the operation in its function, in pre-order.
        copy: The number of the copy; 0 if the operation is not a copy.
    """

    instance: InlinedCall | None
    index: int
    copy: int = 0


@dataclass(frozen=True)
class Origins:
    """The origin of each operation of a module."""

    of: dict[Operation, Origin] = field(default_factory=dict[Operation, Origin])

    def instance_of(self, op: Operation) -> InlinedCall | None:
        """Return the inlined call that the operation comes from; None if it was not inlined."""
        origin = self.of.get(op)
        return None if origin is None else origin.instance

    def record_functions(self, functions: Iterable[FuncOp]) -> None:
        """Record every operation of these functions as not inlined. Must be called before inlining."""
        for function in functions:
            self.of.update((op, Origin(None, index)) for index, op in enumerate(every_operation(function)))

    def record_inlining(
        self, call: CallOp, body: Iterable[tuple[Operation, Operation]], mapping: Mapping[int, SSAValue]
    ) -> None:
        """Record that clones of a callee's operations replace a call.

        Calls nested deeper than `MAX_DEPTH` are not recorded, and stay inlined. Recording them would be slow, because
        each level copies the origins of all deeper levels.

        Args:
            call: The call.
            body: Each operation of the callee, with its clone. The callee contains no calls.
            mapping: The cloned value for each value of the callee, by the id of the callee's value.
        """
        callee = call.callee.string_value()
        operands, names = tuple(call.operands), tuple(result.name_hint for result in call.results)
        outer = InlinedCall(
            callee=callee,
            at=self.of.pop(call),
            location=call.location,
            attributes=dict(call.attributes),
            operands=operands,
            names=names,
        )
        new_instances = dict[InlinedCall, InlinedCall]()
        for op, clone in body:
            for inner_op, inner_clone in zip(every_operation(op), every_operation(clone), strict=True):
                origin = self.of.get(inner_op)
                if origin is None or (origin.instance is not None and _is_deep(origin.instance)):
                    continue
                inner = (
                    outer
                    if origin.instance is None
                    else _nested_instance(outer, origin.instance, mapping, new_instances)
                )
                self.of[inner_clone] = Origin(inner, origin.index)

    def follow_loops(self, replaced: Mapping[SSAValue, SSAValue]) -> None:
        """Update the table after loops were replaced.

        The operations of calls that read an erased value without a replacement are removed from the table, and stay
        inlined.

        `replaced`: maps each result of an erased loop to its replacement.
        """
        mapping = dict(replaced)
        new_instances = dict[InlinedCall, InlinedCall]()
        for value in list(mapping):
            while mapping[value] in replaced:
                mapping[value] = replaced[mapping[value]]
        for op, origin in list(self.of.items()):
            if origin.instance is not None:
                instance = _copy_instance(origin.instance, mapping, new_instances)
                self.of[op] = replace(origin, instance=instance)
                if any(_is_erased(value) for call in _with_enclosing_calls(instance) for value in call.operands):
                    del self.of[op]

    def follow_copies(self, module: ModuleOp) -> None:
        """Record for each copy the origin of its original. Both have the same `recompute.id`.

        A copy gets no origin, and stays inlined, in three cases: several originals share its id, it is in a different
        block from its original (as in rerun loops), or it no longer contains the same operations as its original.
        """
        # Keyed by integer, because attributes are slow to hash.
        originals = dict[object, list[Operation]]()
        copies = list[Operation]()
        for op in every_operation(module):
            if is_copy(op):
                copies.append(op)
            elif (identity := op.attributes.get(Names.ID)) is not None:
                originals.setdefault(_number(identity), []).append(op)
        for copy in copies:
            candidates = originals.get(_number(copy.attributes[Names.ID]), [])
            if (
                len(candidates) == 1
                and candidates[0].parent is copy.parent
                and _contain_same_operations(candidates[0], copy)
            ):
                self._follow(candidates[0], copy)

    def _follow(self, original: Operation, copy: Operation) -> None:
        number = copy.attributes[Names.COPY]
        assert isinstance(number, IntegerAttr), "a copy has a number"
        mapping = _inner_value_map(original, copy)
        new_instances = dict[InlinedCall, InlinedCall]()
        if (top := self.instance_of(original)) is not None:
            new_instances[top] = top
        for inner_op, inner_copy in zip(every_operation(original), every_operation(copy), strict=True):
            if (origin := self.of.get(inner_op)) is not None:
                inner = None if origin.instance is None else _copy_instance(origin.instance, mapping, new_instances)
                self.of[inner_copy] = Origin(inner, origin.index, number.value.data)


def _number(identity: Attribute) -> object:
    return identity.value.data if isinstance(identity, IntegerAttr) else identity


def _is_deep(instance: InlinedCall) -> bool:
    return any(depth >= MAX_DEPTH for depth, _ in enumerate(_with_enclosing_calls(instance), 1))


def _with_enclosing_calls(instance: InlinedCall) -> Iterator[InlinedCall]:
    """Yield the instance and its enclosing calls, the innermost first."""
    current: InlinedCall | None = instance
    while current is not None:
        yield current
        current = current.at.instance


def _is_erased(value: SSAValue) -> bool:
    if isinstance(value, OpResult):
        return value.op.parent is None
    return isinstance(value, BlockArgument) and value not in value.block.args


def _contain_same_operations(original: Operation, copy: Operation) -> bool:
    """Return whether an original and its copy still contain the same operations. This is false, for example, if both
    are loops and one of them was cut."""
    if not (original.regions or copy.regions):
        return original.name == copy.name and len(original.operands) == len(copy.operands)
    originals, copies = every_operation(original), every_operation(copy)
    return [op.name for op in originals] == [op.name for op in copies] and all(
        len(a.operands) == len(b.operands) for a, b in zip(originals, copies, strict=True)
    )


def _inner_value_map(original: Operation, copy: Operation) -> dict[SSAValue, SSAValue]:
    """Map the values that the regions of an operation define to the values of its clone."""
    values = dict[SSAValue, SSAValue]()
    if not original.regions:
        return values
    for inner_op, inner_copy in zip(every_operation(original), every_operation(copy), strict=True):
        values.update(zip(inner_op.results, inner_copy.results, strict=True))
        for region, copy_region in zip(inner_op.regions, inner_copy.regions, strict=True):
            for block, copy_block in zip(region.blocks, copy_region.blocks, strict=True):
                values.update(zip(block.args, copy_block.args, strict=True))
    return values


def _copy_instance(
    instance: InlinedCall, mapping: Mapping[SSAValue, SSAValue], new_instances: dict[InlinedCall, InlinedCall]
) -> InlinedCall:
    """Return the instance that represents an inlined call after its loop was copied or replaced.

    Args:
        instance: The instance in the original loop.
        mapping: The value in the new loop for each value of the original loop.
        new_instances: The instances in the new loop so far, by their originals; the new instance is added.
    """
    if instance not in new_instances:
        at = instance.at
        if at.instance is not None:
            at = Origin(_copy_instance(at.instance, mapping, new_instances), at.index)
        operands = tuple(mapping.get(value, value) for value in instance.operands)
        new_instances[instance] = replace(instance, at=at, operands=operands)
    return new_instances[instance]


def _nested_instance(
    outer: InlinedCall,
    inner: InlinedCall,
    mapping: Mapping[int, SSAValue],
    new_instances: dict[InlinedCall, InlinedCall],
) -> InlinedCall:
    """Return the instance that represents a callee's call `inner` after the callee was inlined for the call `outer`."""
    if inner not in new_instances:
        nearest = (
            outer if inner.at.instance is None else _nested_instance(outer, inner.at.instance, mapping, new_instances)
        )
        operands = tuple(mapping.get(id(value), value) for value in inner.operands)
        new_instances[inner] = replace(inner, at=Origin(nearest, inner.at.index), operands=operands)
    return new_instances[inner]
