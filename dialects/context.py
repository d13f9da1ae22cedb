"""The dialects that this project reads and writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.ir import Operation

from ..support.diagnostics import Refusal, Remark, Topic, lines_of
from .arith import ARITH
from .chlo import CHLO
from .recompute import RECOMPUTE
from .sdy import SDY
from .stablehlo import STABLEHLO
from .torch import PREFIX, TORCH, operation_class


@dataclass
class RecomputeContext(Context):
    """A context that collects the remarks of passes, and the plans that they apply, as text, in order."""

    remarks: list[Remark] = field(default_factory=list[Remark])
    plans: list[str] = field(default_factory=list[str])

    @override
    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """Look up an operation as xDSL does; the operations of PyTorch, which are not listed, have classes by their
        names."""
        return (
            operation_class(name)
            if name.startswith(PREFIX)
            else super().get_optional_op(name, dialect_stack=dialect_stack)
        )


def tell(context: Context, remarks: Iterable[Remark]) -> None:
    """Report remarks to the context; to standard error if it does not collect them, as under stock `xdsl-opt`.

    Standard error gets only those that need no request."""
    if isinstance(context, RecomputeContext):
        context.remarks.extend(remarks)
        return
    for line in lines_of(remark for remark in remarks if remark.topic is not Topic.RECOMPUTED):
        print(line, file=sys.stderr)


def strict_refusal(op: Operation, reason: str) -> Refusal:
    """Return the error for an option that has no effect on the operation, under the option `strict`."""
    return Refusal(op, f"{reason} (strict)")


def demand_effect(remarks: Sequence[Remark], strict: bool) -> Sequence[Remark]:
    """Return the remarks on ineffective options. With `strict`, raises the first of them as a `Refusal`."""
    if strict and remarks:
        raise strict_refusal(remarks[0].operation, remarks[0].reason)
    return remarks


def make_context() -> RecomputeContext:
    """Return a new context with the dialects loaded; operations of other dialects pass through in the generic form."""
    context = RecomputeContext(allow_unregistered=True)
    for dialect in (Builtin, Func, ARITH, Math, Tensor, Scf, Linalg, MemRef, STABLEHLO, CHLO, SDY, TORCH, RECOMPUTE):
        context.load_dialect(dialect)
    return context
