"""Run-time conditions: when an operation without effects fails or is undefined, when a loop may not end, and where the
proof lets such operations run.

An operation with such a condition may vanish, but it may not run where it did not run before. Every operation has one,
unless it is shown here that it has none:

* Dynamic extents. "Constraints will be verified statically if possible, otherwise they are deferred to runtime and
  mismatches will result in undefined behavior" (StableHLO, Dynamism). So every operation with a type of unknown extents
  has a condition, except those in `_TOTAL`.
* Operations that the specification or the documentation of the dialect names (`_ALWAYS`), or names for some attributes,
  element types or operands (`run_time_condition`).
* A loop that is not proved to count towards a bound. The order of such a loop and the effects around it matters.
* Operations that only the user declares to be pure.

Implementation-defined results are values: integers wrap around, and indices are clamped where StableHLO clamps them.

Sources: https://openxla.org/stablehlo/spec (the sections of the operations, Dynamism, Errors) and
https://mlir.llvm.org/docs/Dialects/.

    scf.if %c { %q = arith.divsi %x, %y … }     the division runs if %c: risk[scf.if, region 0: divsi(#x, #y)](#c)
    %q = arith.divsi %x, %y                     it always runs: divsi(#x, #y)

The value of such an operation is an ordinary term. The scope notes each one that the program runs, once, since an
operation that ran before does not fail later. The program after must not run more than the program before. A loop that
may not end is noted together with the state, so that it stays after the effects before it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BoolAttr, IndexType, UnrankedMemRefType, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ..dialects.dense import DenseAttr, to_numpy
from ..dialects.placements import is_placement
from ..support.type_guards import is_integer_attribute, is_integer_type, is_standard_dense, is_tensor
from .operation_parts import attributes_of, name_of
from .scope import RegionScope
from .terms import ENDLESS, Closed, Closure, Head, Inside, RegionTerm, Terms

_DIVISION = "its divisor is not 0"
_RANGE = "its indices, sizes and offsets are in range"
_SHAPE = "the shape that it is given matches its types"
_ALWAYS = {
    **dict.fromkeys(
        "arith.ceildivsi arith.ceildivui arith.divsi arith.divui arith.floordivsi arith.remsi arith.remui".split(),
        _DIVISION,
    ),
    "math.ipowi": "0 is not raised to a negative power",
    **dict.fromkeys(
        """
        tensor.dim tensor.extract tensor.extract_slice tensor.gather tensor.insert tensor.insert_slice tensor.scatter
        stablehlo.real_dynamic_slice stablehlo.set_dimension_size stablehlo.torch_index_select
        """.split(),
        _RANGE,
    ),
    **dict.fromkeys(
        """
        tensor.cast tensor.reshape stablehlo.dynamic_broadcast_in_dim stablehlo.dynamic_conv stablehlo.dynamic_gather
        stablehlo.dynamic_iota stablehlo.dynamic_pad stablehlo.dynamic_reshape
        """.split(),
        _SHAPE,
    ),
    "stablehlo.cholesky": "its operand is positive definite",
    "chlo.ragged_dot": "the sizes of its groups fit",
    "stablehlo.custom_call": "the call returns",
}
"""Operations with a condition for all types."""

_TOTAL = frozenset("recompute.token sdy.sharding_constraint stablehlo.get_dimension_size tensor.rank".split())
"""Operations that are defined for all extents."""

_ASSUMED_SORTED = "its indices are sorted"
_BY_FLAG = {
    "stablehlo.gather": {"indices_are_sorted": _ASSUMED_SORTED},
    "stablehlo.scatter": {"indices_are_sorted": _ASSUMED_SORTED, "unique_indices": "its indices are unique"},
    "stablehlo.triangular_solve": {"unit_diagonal": "the diagonal is 1"},
}
"""Attributes by which the program asserts a condition: "otherwise the behavior is undefined"."""

_INTEGER_DIVISION = frozenset(
    """
    stablehlo.divide stablehlo.remainder chlo.broadcast_divide chlo.broadcast_remainder
    linalg.div linalg.div_unsigned linalg.elementwise
    """.split()
)


class RunTimeConditions:
    """Finds the run-time condition of operations; caches which types have unknown extents."""

    def __init__(self, terms: Terms):
        self._terms = terms
        # The type is kept beside the answer, so that its id is not reused.
        self._dynamic = dict[int, tuple[Attribute, bool]]()

    def of(self, op: Operation, operands: Sequence[int]) -> str | None:
        """Return the condition under which the operation is defined for these operands (terms), or None if it always
        is."""
        name = name_of(op)
        if (condition := _ALWAYS.get(name)) is not None:
            return None if is_placement(op) else condition
        if name in _INTEGER_DIVISION and self._may_divide_by_zero(op, operands):
            return _DIVISION
        if (flags := _BY_FLAG.get(name)) is not None:
            attributes = attributes_of(op)
            for flag, condition in flags.items():
                if attributes.get(flag, BoolAttr.from_bool(False)) != BoolAttr.from_bool(False):
                    return condition
        if name == "scf.for" and not (len(operands) > 2 and self._is_positive(operands[2])):
            return "its step is positive"
        if name.startswith("tensor.") and name != "tensor.from_elements" and _has_index(op.operands):
            return _RANGE
        if name not in _TOTAL and self._is_dynamic((*op.operands, *op.results)):
            return "the extents of its operands and results match"
        return None

    def _may_divide_by_zero(self, op: Operation, operands: Sequence[int]) -> bool:
        if not any(_is_of_integers(value.type) for value in op.operands):
            return False
        divisor = operands[1] if name_of(op).startswith("stablehlo.") else None
        if divisor is None or (elements := self._constant(divisor)) is None:
            return True
        # The quotient of the smallest number by -1 overflows.
        return bool(np.any(elements == 0)) or bool(np.any(elements == -1))

    def _is_positive(self, number: int) -> bool:
        elements = self._constant(number)
        return elements is not None and bool(np.all(elements > 0))

    def _constant(self, number: int) -> NDArray[Any] | None:
        """Return the elements of a constant, also behind broadcasts; for a select between two constants those
        of both."""
        while (head := self._terms.head_of(number)).kind == "operation" and (
            head.name in _COPIES_ELEMENTS or (head.name == "stablehlo.convert" and self._keeps_type(number))
        ):
            (number,) = self._terms.operands_of(number)
        if (head.kind, head.name) == ("operation", "stablehlo.select"):
            choices = [self._constant(choice) for choice in self._terms.operands_of(number)[1:]]
            constants = [elements.reshape(-1) for elements in choices if elements is not None]
            return np.concatenate(constants) if len(constants) == len(choices) else None
        if head.kind != "operation" or head.name not in ("stablehlo.constant", "arith.constant"):
            return None
        value = next((value for name, value in head.attributes if name == "value"), None)
        return None if value is None else _integers(self._terms.attributes.attribute(value))

    def _keeps_type(self, number: int) -> bool:
        (operand,) = self._terms.operands_of(number)
        return self._terms.types_of(operand) == self._terms.types_of(number)

    def _is_dynamic(self, values: Sequence[SSAValue]) -> bool:
        for value in values:
            type_ = value.type
            if (entry := self._dynamic.get(id(type_))) is None:
                entry = self._dynamic[id(type_)] = type_, _has_unknown_extents(type_)
            if entry[1]:
                return True
        return False


_COPIES_ELEMENTS = frozenset("stablehlo.broadcast stablehlo.broadcast_in_dim stablehlo.reshape".split())


def _has_unknown_extents(type_: Attribute) -> bool:
    if isinstance(type_, UnrankedTensorType | UnrankedMemRefType):
        return True
    return is_tensor(type_) and not type_.has_static_shape()


def _is_of_integers(type_: Attribute) -> bool:
    element = type_.element_type if is_tensor(type_) else type_
    return isinstance(element, IndexType) or is_integer_type(element)


def _integers(constant: Attribute) -> NDArray[Any] | None:
    """Return the elements of a constant of integers."""
    if is_integer_attribute(constant):
        return np.array(constant.value.data)
    if isinstance(constant, DenseAttr) or is_standard_dense(constant):
        return to_numpy(constant) if is_integer_type(constant.type.element_type) else None
    return None


def _has_index(values: Sequence[SSAValue]) -> bool:
    return any(isinstance(value.type, IndexType) for value in values)


def why_endless(op: Operation) -> str | None:
    """Return the reason why a loop may not end, or None for a loop that ends and for everything else."""
    match name_of(op):
        case "stablehlo.while":
            return None if _counts(op) else "it is not seen to count towards a bound"
        case "scf.while":
            return "it is not seen to count towards a bound"
        case _:
            return None


def _counts(op: Operation) -> bool:
    """Return whether one of the conditions of a `stablehlo.while`, all of which have to hold, compares a counter."""
    if len(op.regions) != 2 or any(len(region.blocks) != 1 for region in op.regions):
        return False
    cond, body = (region.blocks[0] for region in op.regions)
    if cond.last_op is None or len(cond.last_op.operands) != 1:
        return False
    return any(_is_bound(compare, cond, body) for compare in _conjuncts(cond.last_op.operands[0]))


def _conjuncts(value: SSAValue) -> Iterator[Operation]:
    """Yield the comparisons that all hold if the value is true."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation):
            continue
        if name_of(op) == "stablehlo.and":
            pending.extend(op.operands)
        elif name_of(op) == "stablehlo.compare":
            yield op


def _is_bound(compare: Operation, cond: Block, body: Block) -> bool:
    """Return whether a comparison holds for finitely many iterations only: an integer that grows by 1 is less than an
    invariant bound (or falls by 1, and is greater). Steps of 1 reach the bound before they wrap around."""
    direction = str(attributes_of(compare).get("comparison_direction")).strip("<>").split()[-1]
    if direction not in ("LT", "GT") or len(compare.operands) != 2:
        return False
    left, right = compare.operands
    for counter, bound, operation in (
        (left, right, "stablehlo.add" if direction == "LT" else "stablehlo.subtract"),
        (right, left, "stablehlo.subtract" if direction == "LT" else "stablehlo.add"),
    ):
        if counter.owner is cond and _stays(bound, cond, body) and _is_stepped(counter, operation, cond, body):
            return True
    return False


def _stays(bound: SSAValue, cond: Block, body: Block) -> bool:
    """Return whether a value is loop-invariant: defined outside, a constant, or a carry that is yielded unchanged."""
    if bound.owner is cond:
        index = next(index for index, argument in enumerate(cond.args) if argument is bound)
        return body.last_op is not None and index < len(body.args) and body.last_op.operands[index] is body.args[index]
    if isinstance(bound.owner, Operation) and bound.owner.parent is cond:
        return name_of(bound.owner) == "stablehlo.constant"
    return True


def _is_stepped(counter: SSAValue, operation: str, cond: Block, body: Block) -> bool:
    index = next(index for index, argument in enumerate(cond.args) if argument is counter)
    if body.last_op is None or index >= len(body.args) or index >= len(body.last_op.operands):
        return False
    following, argument = body.last_op.operands[index], body.args[index]
    if not isinstance(following, OpResult) or name_of(following.op) != operation:
        return False
    if not (is_tensor(argument.type) and is_integer_type(argument.type.element_type)):
        return False
    left, right = following.op.operands
    return (left is argument and _is_one(right)) or (
        operation == "stablehlo.add" and right is argument and _is_one(left)
    )


def _is_one(value: SSAValue) -> bool:
    if not isinstance(value, OpResult) or name_of(value.op) != "stablehlo.constant":
        return False
    constant = attributes_of(value.op).get("value")
    elements = None if constant is None else _integers(constant)
    return elements is not None and bool(np.all(elements == 1))


_BY_FIRST_OPERAND = frozenset("scf.if scf.index_switch stablehlo.case stablehlo.if".split())
MAX_CLOSED_APART = 64
"""Closing a region for each of its risks takes time in proportion to their number times the size of the region."""


def note(terms: Terms, scope: RegionScope, term: int, *, ordered: bool = False) -> None:
    """Note that the operation of a term runs, unless it ran before. `ordered`: it runs after the effects so far."""
    if term in all_that_ran(scope):
        return
    scope.ran[term] = ordered
    scope.risks[terms.term(Head("risk", ENDLESS), (term, scope.state)) if ordered else term] = None


def all_that_ran(scope: RegionScope) -> Mapping[int, bool]:
    """Return the operations noted in a scope and those around it."""
    scopes = list[dict[int, bool]]()
    around: RegionScope | None = scope
    while around is not None:
        scopes.append(around.ran)
        around = around.around
    return ChainMap(*scopes)


def note_regions(terms: Terms, scope: RegionScope, op: Operation, regions: Iterable[Closed], term: int) -> list[int]:
    """Note that an operation (`term`) runs the operations noted in its regions, if and when it runs these.

    Returns the noted terms.
    """
    decides = terms.operands_of(term)[0] if is_decided_by_first_operand(terms, term) else term
    return note_closures(terms, scope, name_of(op), [region.risks for region in regions], decides)


def note_closures(
    terms: Terms, scope: RegionScope, name: str, regions: Sequence[Iterable[Closure]], decides: int
) -> list[int]:
    """Note regions as `note_regions` does, for an operation of this name. `decides`: the term that determines which
    region runs."""
    noted = list[int]()
    for index, closures in enumerate(regions):
        for body, captures in closures:
            head = Head("risk", f"{name}, region {index} of {len(regions)}", bodies=(body,))
            noted.append(terms.term(head, (decides, *captures)))
            note(terms, scope, noted[-1], ordered=_is_ordered(terms, body))
    return noted


def is_decided_by_first_operand(terms: Terms, term: int) -> bool:
    """Return whether the first operand alone decides which region runs, once."""
    head = terms.head_of(term)
    return head.kind == "operation" and head.name in _BY_FIRST_OPERAND


def _is_ordered(terms: Terms, body: int) -> bool:
    """Return whether a region notes a loop that may not end."""
    closed = terms.bodies[body]
    entries = (closed.entries[root - len(closed.types) - 1] for root in closed.roots if root > len(closed.types))
    heads = (terms.heads[entry[0]] for entry in entries if entry is not None)
    return any((head.kind, head.name) == ("risk", ENDLESS) for head in heads)


def is_implied(terms: Terms, risk: int, earlier: Collection[int]) -> bool:
    """Return whether a risk is one of the `earlier` ones, or runs one of them conditionally in a region."""
    inner: int | None = risk
    while inner is not None and inner not in earlier:
        inner = _inner(terms, inner)
    return inner is not None


def _inner(terms: Terms, risk: int) -> int | None:
    """Return the operation that a risk runs in a region, if it is the same in each execution of the region;
    else None."""
    head, operands = terms.head_of(risk), terms.operands_of(risk)
    if head.name == ENDLESS:
        inner = _inner(terms, operands[0])
        return None if inner is None else terms.term(head, (inner, operands[1]))
    if not head.bodies:
        return None
    body, root = terms.bodies[head.bodies[0]], 0
    if head.kind == "pattern":
        root = 1 if head.name.startswith("until") else 0
    position = body.roots[root]
    if (entry := _entry(body, position)) is not None and terms.heads[entry[0]].name == ENDLESS:
        position = entry[1][0]
    if position <= len(body.types) or _entry(body, position) is not None:
        return None
    captures = [place for place, entry in enumerate(body.entries, len(body.types) + 1) if entry is None]
    return operands[len(operands) - len(captures) + captures.index(position)]


def _entry(body: RegionTerm, position: int) -> tuple[int, tuple[int, ...]] | None:
    return body.entries[position - len(body.types) - 1] if position > len(body.types) else None


def closed_risks(
    terms: Terms, scope: RegionScope, arguments: Sequence[int], types: tuple[int, ...]
) -> tuple[Closure, ...]:
    """Return the noted risks of a region with their captures: one closure for each, or one for all if there are
    many."""
    risks = tuple(scope.risks)
    groups = [risks] if len(risks) > MAX_CLOSED_APART else [(risk,) for risk in risks]
    return tuple(terms.close(Inside(tuple(arguments), group), types, -1, scope.depth) for group in groups)
