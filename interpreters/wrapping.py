"""Attributes of transparent operations (calls, barriers, segments), as terms around the values that pass them.

    %0:2 = barrier %x, %y {a}           #3: attributed[barrier, a](#x, #y); %0#0 is result 0 of #3, %0#1 result 1

An attribute may refer to a value by its position, or to several values together. So each value becomes a result of one
term over all of them, in their order. Only the attributes in `_FOR_EACH_VALUE` are known to apply to each value alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation

from ..dialects.placements import FRONTEND
from .anatomy import position_attributes
from .heads import Heads
from .terms import Head, Terms

_FOR_EACH_VALUE = frozenset({"_xla_compute_type"})
"""Frontend attributes that apply to every operation of a call alone (XLA: xla/side_effect_util.h)."""
_REPEAT_THE_TYPE = frozenset({"jax.token"})
"""Attributes of arguments and results of private functions that only repeat the type `_TOKEN`: JAX writes this one on
each token (jax/_src/interpreters/mlir.py), and reads it on public functions only."""
_TOKEN = "!stablehlo.token"
Part = tuple[str, Operation, Mapping[str, Attribute]]
"""The role of the operation, the operation for error messages, and the attributes to compare."""


class Wrapping:
    def __init__(self, terms: Terms, heads: Heads):
        self._terms = terms
        self._heads = heads

    def around(self, *parts: Part, always: bool = False) -> list[Head]:
        """Heads of the terms around the values: one for each part with attributes, or for every part with `always`."""
        return [
            Head("attributed", role, self._heads.attributes(op, attributes))
            for role, op, attributes in parts
            if attributes or always
        ]

    def wrapped(self, around: Sequence[Head], numbers: Sequence[int]) -> list[int]:
        """Each value as the result at its position of one term over all values."""
        values = tuple(numbers)
        for head in around:
            if self._is_for_each_value(head):
                values = tuple(self._terms.term(head, (value,)) for value in values)
                continue
            term = self._terms.term(head, values)
            values = tuple(self._terms.term(Head("result", str(index)), (term,)) for index in range(len(values)))
        return list(values)

    def wrapped_state(self, around: Sequence[Head], state: int, numbers: Sequence[int]) -> int:
        """The state in a term with the values that pass the boundary with it."""
        for head in around:
            values = () if self._is_for_each_value(head) else numbers
            state = self._terms.term(head, (state, *values))
        return state

    def _is_for_each_value(self, head: Head) -> bool:
        """Whether the attributes apply to each value alone, whatever its position."""
        attributes = {name: self._terms.attributes.attribute(number) for name, number in head.attributes}
        frontend = attributes.pop(FRONTEND, None)
        is_known = frontend is None or (isinstance(frontend, DictionaryAttr) and set(frontend.data) <= _FOR_EACH_VALUE)
        return is_known and not attributes

    def by_position(self, role: str, function: Operation, name: str, numbers: Sequence[int]) -> list[int]:
        """The values with `arg_attrs` or `res_attrs` (`name`) of the callee."""
        extras = position_attributes(function, name, len(numbers))
        attributes = {
            f"{index}: {key}": value
            for index, extra in enumerate(extras)
            for key, value in extra.items()
            if not (key in _REPEAT_THE_TYPE and _is_token(function, name, index))
        }
        return self.wrapped(self.around((role, function, attributes)), numbers)


def _is_token(function: Operation, name: str, index: int) -> bool:
    """Whether an argument (`arg_attrs`) or a result of a function is a token."""
    block = function.regions[0].block
    values = block.args if name == "arg_attrs" or block.last_op is None else block.last_op.operands
    return str(values[index].type) == _TOKEN


def into(around: Sequence[Head]) -> list[Head]:
    """The heads around values that enter a call, distinct from those around values that leave it."""
    return [head._replace(name=f"{head.name}, entered") for head in around]


def without(attributes: Mapping[str, Attribute], names: Collection[str]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if name not in names}
