"""Canonicalization patterns for `recompute.token` and `recompute.depend`.

The patterns preserve the order of operations, and the token for which each used value waits.

Rewrites:
    recompute.token %g, %g                      ->  recompute.token %g
    %x1 = recompute.depend %x after %t
    %y1 = recompute.depend %y after %t          ->  %x1, %y1 = recompute.depend %x, %y after %t
    %x2 = recompute.depend %x1 after %t         ->  %x1
    a token or a depend without uses            ->  erased
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from .recompute import DependOp, TokenOp


class DropUnreadToken(RewritePattern):
    """Erase a token without uses, because it orders no operations."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TokenOp, rewriter: PatternRewriter, /) -> None:
        if op.token.first_use is None:
            rewriter.erase(op)


class DropRepeatedGates(RewritePattern):
    """Remove duplicate gates from the operands of a token."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TokenOp, rewriter: PatternRewriter, /) -> None:
        distinct = tuple(dict.fromkeys(op.gates))
        if len(distinct) < len(op.gates):
            op.operands = distinct
            rewriter.notify_op_modified(op)


class DropUnreadDepend(RewritePattern):
    """Erase a `depend` operation whose results have no uses."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DependOp, rewriter: PatternRewriter, /) -> None:
        if all(result.first_use is None for result in op.delayed):
            rewriter.erase(op)


class DropRepeatedDelay(RewritePattern):
    """Replace a result of a `depend` operation with its operand, if another `depend` already delays the operand after
    the same token."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DependOp, rewriter: PatternRewriter, /) -> None:
        for value, delayed in zip(op.values, op.delayed, strict=True):
            is_delayed = isinstance(value.owner, DependOp) and value.owner.token is op.token
            if is_delayed and delayed.first_use is not None:
                rewriter.replace_all_uses_with(delayed, value)


class MergeDepends(RewritePattern):
    """Merge two `depend` operations on the same token in the same block, at the position of the first one.

    All delayed values must be defined before that position.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DependOp, rewriter: PatternRewriter, /) -> None:
        first = next((depend for depend in _mergeable(op) if depend.is_before_in_block(op)), None)
        if first is None or not all(_is_before(value, first) for value in op.values):
            return
        values = tuple(dict.fromkeys((*first.values, *op.values)))
        merged = DependOp(values, first.token)
        merged.attributes, merged.location = dict(first.attributes), first.location
        rewriter.insert(merged, InsertPoint.before(first))
        delayed = dict[SSAValue, SSAValue](zip(values, merged.delayed, strict=True))
        for old in (op, first):
            for value, result in zip(old.values, old.delayed, strict=True):
                delayed[value].name_hint = result.name_hint
            rewriter.replace(old, [], [delayed[value] for value in old.values])


def _mergeable(op: DependOp) -> list[DependOp]:
    """Return the other `depend` operations with the same block, token and attributes."""
    users = (use.operation for use in op.token.uses)
    return [
        user
        for user in users
        if isinstance(user, DependOp)
        and user is not op
        and user.parent is op.parent
        and user.attributes == op.attributes
    ]


def _is_before(value: SSAValue, op: Operation) -> bool:
    """Return whether the value is defined before `op`. The value must be visible in the block of `op`."""
    owner = value.owner
    return not isinstance(owner, Operation) or owner.parent is not op.parent or owner.is_before_in_block(op)


TOKEN_PATTERNS = (DropUnreadToken(), DropRepeatedGates())
DEPEND_PATTERNS = (DropUnreadDepend(), DropRepeatedDelay(), MergeDepends())
