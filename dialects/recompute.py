"""The recompute dialect: an ordering token, the operation that waits for it, and the regions of `structured.py`.

    %t = recompute.token %cotangent : tensor<8xf32>
    %y = recompute.depend %x after %t : tensor<8xf32>

A token is available once its gradient values are computed. `depend` returns its values unchanged, but only after the
token is available, so a use of `%y` cannot run before the gradient is computed. Neither operation has data of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Block, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

from .structured import GradientOp, GroupOp, SegmentOp, YieldOp


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The type of tokens, `!recompute.token`: an ordering dependency without data."""

    name = "recompute.token"


class AllocatesItsToken(MemoryEffect):
    """The memory effect of `recompute.token`: an unused token may be erased, but equal tokens are never merged."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        return frozenset({EffectInstance(MemoryEffectKind.ALLOC, op.results[0])})


def _parse_values(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)


def _parse_attributes_and_types(parser: Parser) -> tuple[dict[str, Attribute], list[Attribute]]:
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return attributes, parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)


def _print_attributes_and_types(printer: Printer, op: Operation, values: Sequence[SSAValue]) -> None:
    if op.attributes:
        printer.print_string(" ")
        printer.print_attribute(DictionaryAttr(op.attributes))
    printer.print_string(" : ")
    printer.print_list(values, lambda value: printer.print_attribute(value.type))


@irdl_op_definition
class TokenOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Return a token that is available once the values of `gates` are computed."""

    name = "recompute.token"

    gates = var_operand_def()
    token = result_def(TokenType)

    traits = traits_def(AllocatesItsToken())

    def __init__(self, gates: Sequence[SSAValue]):
        super().__init__(operands=[gates], result_types=[TokenType()])

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .canonicalization import TOKEN_PATTERNS

        return TOKEN_PATTERNS

    def verify_(self) -> None:
        if not self.gates:
            raise VerifyException("a token must have at least one operand, a gradient value to wait for")

    @classmethod
    def parse(cls, parser: Parser) -> TokenOp:
        position = parser.pos
        operands = _parse_values(parser)
        attributes, types = _parse_attributes_and_types(parser)
        op = cls(parser.resolve_operands(operands, types, position))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.gates, printer.print_operand)
        _print_attributes_and_types(printer, self, self.gates)


def _block_of(op: Operation) -> Block | None:
    """Return the innermost block around the operation, ignoring the bodies of segments and gradients.

    The operations of segments and gradients run in place, as part of that block.
    """
    while isinstance(parent := op.parent_op(), GroupOp):
        op = parent
    return op.parent


@irdl_op_definition
class DependOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Return the values unchanged, but only after the token is available; result i is value i."""

    name = "recompute.depend"

    values = var_operand_def()
    token = operand_def(TokenType)
    delayed = var_result_def()

    traits = traits_def(Pure())

    def __init__(self, values: Sequence[SSAValue], token: SSAValue):
        super().__init__(operands=[values, token], result_types=[[value.type for value in values]])

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from .canonicalization import DEPEND_PATTERNS

        return DEPEND_PATTERNS

    def verify_(self) -> None:
        if not self.values:
            raise VerifyException("recompute.depend must have at least one value to delay")
        if tuple(value.type for value in self.values) != tuple(value.type for value in self.delayed):
            raise VerifyException("result i of recompute.depend must have the type of value i")
        owner = self.token.owner
        if not isinstance(owner, Operation):
            raise VerifyException("a token must not be an argument: create it with recompute.token where it is needed")
        if _block_of(owner) is not _block_of(self):
            raise VerifyException(
                "a token orders the operations of one block: put recompute.token "
                "into the block of this recompute.depend"
            )

    @classmethod
    def parse(cls, parser: Parser) -> DependOp:
        position = parser.pos
        operands = _parse_values(parser)
        parser.parse_keyword("after")
        token = parser.resolve_operand(parser.parse_unresolved_operand(), TokenType())
        attributes, types = _parse_attributes_and_types(parser)
        op = cls(parser.resolve_operands(operands, types, position), token)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_operand)
        printer.print_string(" after ")
        printer.print_operand(self.token)
        _print_attributes_and_types(printer, self, self.values)


RECOMPUTE = Dialect("recompute", [TokenOp, DependOp, SegmentOp, GradientOp, YieldOp], [TokenType])
