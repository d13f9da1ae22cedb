"""Sharding rules: the correspondence between the dimensions of an operation's operands and results.

    %1 = stablehlo.reshape %0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=2, j=4}>} : …

A dimension is a product of factors, in major-to-minor order. A factor that occurs in more than one tensor is sharded in
the same way in all of them. Factors are called `i` to `z`, then `z_1`, `z_2`, …. Syntax and constraints follow Shardy's
`parsers.cc` and `verifiers.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...support.counted import counted
from ...support.type_guards import is_tensor

SHARDING_RULE = "sdy.sharding_rule"
GROUPS = ("reduction", "need_replication", "permutation", "blocked_propagation")
_EXCLUSIVE = ("reduction", "need_replication", "permutation")
_NUMBERED = ord("z") - ord("i")
_FACTOR = re.compile(r"z_([1-9]\d*)|[i-z](?!_)")

TensorMapping = tuple[tuple[int, ...], ...]
"""The factors of each dimension of a tensor."""


def factor_symbol(index: int) -> str:
    """Return the name of a factor: `i` for 0, `z` for 17, `z_1` for 18."""
    return chr(ord("i") + index) if index <= _NUMBERED else f"z_{index - _NUMBERED}"


@dataclass(frozen=True)
class ShardingRule:
    """A parsed sharding rule; factors are indices into `sizes`."""

    operands: tuple[TensorMapping, ...]
    results: tuple[TensorMapping, ...]
    sizes: tuple[int, ...] = ()
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Groups of factors with special treatment, as pairs of the group's name in `GROUPS` and its factors."""
    is_custom: bool = False

    def __str__(self) -> str:
        mappings = ["(" + ", ".join(map(_mapping_text, tensors)) + ")" for tensors in (self.operands, self.results)]
        sizes = ", ".join(f"{factor_symbol(index)}={size}" for index, size in enumerate(self.sizes))
        groups = [f"{name}={{{', '.join(map(factor_symbol, factors))}}}" for name, factors in self.groups]
        parts = [f"{mappings[0]}->{mappings[1]}", *([f"{{{sizes}}}"] if sizes else []), *groups]
        return " ".join(parts) + (", custom" if self.is_custom else "")


def _mapping_text(mapping: TensorMapping) -> str:
    return "[" + ", ".join("".join(map(factor_symbol, factors)) for factors in mapping) + "]"


@irdl_attr_definition
class OpShardingRuleAttr(Data[ShardingRule]):
    """The sharding rule of an operation: `#sdy.op_sharding_rule<([i, j])->([ij]) {i=2, j=4}>`"""

    name = "sdy.op_sharding_rule"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ShardingRule:
        with parser.in_angle_brackets():
            operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_mapping(parser))
            parser.parse_punctuation("->")
            results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_mapping(parser))
            sizes = _parse_sizes(parser)
            groups = tuple((name, factors) for name in GROUPS if (factors := _parse_group(parser, name)))
            is_custom = parser.parse_optional_punctuation(",") is not None
            if is_custom:
                parser.parse_keyword("custom")
        return ShardingRule(tuple(operands), tuple(results), sizes, groups, is_custom)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _parse_mapping(parser: AttrParser) -> TensorMapping:
    """Parse the mapping of a tensor, such as `[i, jk]`."""

    def dimension() -> tuple[int, ...]:
        # The verifier rejects a dimension without factors, as Shardy's verifier does.
        word = parser.parse_optional_identifier()
        return () if word is None else _factors(parser, word)

    if parser.parse_optional_punctuation("[") is None:
        parser.raise_error("expected '[' and the factors of each dimension")
    if parser.parse_optional_punctuation("]") is not None:
        return ()
    dimensions = parser.parse_comma_separated_list(parser.Delimiter.NONE, dimension)
    parser.parse_punctuation("]")
    return tuple(dimensions)


def _factors(parser: AttrParser, word: str) -> tuple[int, ...]:
    """Return the factors of a word such as `ijz_1`."""
    factors, position = list[int](), 0
    while position < len(word):
        if (match := _FACTOR.match(word, position)) is None:
            parser.raise_error(
                f"expected factors 'i' to 'z', or 'z_1', 'z_2', … without leading zeros, found '{word[position:]}'"
            )
        factors.append(int(match[1]) + _NUMBERED if match[1] else ord(match[0]) - ord("i"))
        position = match.end()
    return tuple(factors)


def _parse_sizes(parser: AttrParser) -> tuple[int, ...]:
    """Parse the sizes of the factors, such as `{i=2, j=4}`, if present."""
    sizes = list[int]()

    def size() -> None:
        word, expected = parser.parse_identifier(), len(sizes)
        if _factors(parser, word) != (expected,):
            parser.raise_error(
                f"expected the size of factor '{factor_symbol(expected)}', found '{word}': sizes must be in the order "
                "of the factors, {i=…, j=…, …}"
            )
        parser.parse_punctuation("=")
        sizes.append(parser.parse_integer(allow_boolean=False))

    if parser.parse_optional_punctuation("{") is not None and parser.parse_optional_punctuation("}") is None:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, size)
        parser.parse_punctuation("}")
    return tuple(sizes)


def _parse_group(parser: AttrParser, name: str) -> tuple[int, ...]:
    """Parse a named group of factors, such as `reduction={i, j}`, if present."""
    if parser.parse_optional_keyword(name) is None:
        return ()
    parser.parse_punctuation("=")

    def factor() -> int:
        # Shardy reads the first factor of a word, and ignores the rest of it.
        return _factors(parser, parser.parse_identifier())[0]

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, factor))


def check_sharding_rule(op: Operation, attribute: Attribute) -> None:
    """Raise `VerifyException` unless the attribute is a valid sharding rule for the operation."""
    if not isinstance(attribute, OpShardingRuleAttr):
        raise VerifyException(f"{SHARDING_RULE} is {attribute}, expected the form #sdy.op_sharding_rule<…>")
    rule = attribute.data
    in_operands = _check_mappings("operand", op.operand_types, rule.operands, rule.sizes)
    in_results = _check_mappings("result", op.result_types, rule.results, rule.sizes)
    for index, size in enumerate(rule.sizes):
        if index not in in_operands | in_results:
            raise VerifyException(f"factor {factor_symbol(index)}={size} occurs in no operand and no result")
    for name, factors in rule.groups:
        _check_group(name, factors, len(rule.sizes))
    exclusive = [factor for name, factors in rule.groups if name in _EXCLUSIVE for factor in factors]
    if len(set(exclusive)) != len(exclusive):
        raise VerifyException(f"a factor must belong to at most one of the groups {', '.join(_EXCLUSIVE)}")
    if in_results.intersection(dict(rule.groups).get("reduction", ())):
        raise VerifyException("a factor of the group reduction must not occur in a result")


def _check_mappings(
    role: str, types: Sequence[Attribute], mappings: Sequence[TensorMapping], sizes: Sequence[int]
) -> set[int]:
    """Return the factors of all operands, or of all results. Raises `VerifyException` for the first invalid mapping."""
    if len(types) != len(mappings):
        raise VerifyException(f"the rule has {counted(len(mappings), role)}, but the operation has {len(types)}")
    if not mappings:
        raise VerifyException(f"a sharding rule needs at least one {role}")
    used = set[int]()
    for index, (type_, mapping) in enumerate(zip(types, mappings, strict=True)):
        subject = role if len(types) == 1 else f"{role} {index}"
        if not is_tensor(type_) or DYNAMIC_INDEX in type_.get_shape():
            raise VerifyException(f"{subject} has type {type_}, expected a ranked tensor with a static shape")
        if len(mapping) != (rank := len(type_.get_shape())):
            raise VerifyException(f"{subject} has rank {len(mapping)} in the rule, but the tensor has rank {rank}")
        used |= _check_mapping(subject, mapping, sizes)
    return used


def _check_mapping(subject: str, mapping: TensorMapping, sizes: Sequence[int]) -> set[int]:
    """Return the factors of a tensor. Raises `VerifyException` if its mapping is invalid."""
    used = set[int]()
    for factors in mapping:
        if not factors:
            raise VerifyException(f"{subject}: each dimension must have at least one factor")
        for factor in factors:
            if factor >= len(sizes):
                raise VerifyException(f"{subject}: the rule gives no size for factor {factor_symbol(factor)}")
            if factor in used:
                raise VerifyException(f"{subject}: factor {factor_symbol(factor)} occurs more than once")
            if sizes[factor] == 1 and len(factors) > 1:
                raise VerifyException(
                    f"{subject}: factor {factor_symbol(factor)} has size 1, but its dimension has other factors"
                )
            used.add(factor)
    return used


def _check_group(name: str, factors: Sequence[int], count: int) -> None:
    if list(factors) != sorted(factors):
        raise VerifyException(f"the factors of the group {name} must be in ascending order")
    if len(set(factors)) != len(factors):
        raise VerifyException(f"the factors of the group {name} must be distinct")
    if factors and factors[-1] >= count:
        raise VerifyException(f"the rule gives no size for factor {factor_symbol(factors[-1])} of the group {name}")
