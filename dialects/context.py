"""The dialects that this project reads and writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from ..support.diagnostics import Refusal, Remark
from .chlo import CHLO
from .recompute import RECOMPUTE
from .sdy import SDY
from .stablehlo import STABLEHLO


@dataclass
class RecomputeContext(Context):
    """A context that collects what passes say, in order: their remarks, and the plans that they carry out, as text."""

    remarks: list[Remark] = field(default_factory=list[Remark])
    plans: list[str] = field(default_factory=list[str])


def tell(context: Context, remarks: Iterable[Remark]) -> None:
    """Hand remarks to who runs the pass; to standard error where nobody collects them, as under stock `xdsl-opt`."""
    if isinstance(context, RecomputeContext):
        context.remarks.extend(remarks)
        return
    for remark in remarks:
        print(remark, file=sys.stderr)


def demand_effect(remarks: Sequence[Remark], strict: bool) -> Sequence[Remark]:
    """The remarks on what has no effect; with `strict` the first of them is an error. Raises `Refusal`."""
    if strict and remarks:
        raise Refusal(remarks[0].operation, f"{remarks[0].reason} (strict)")
    return remarks


def make_context() -> RecomputeContext:
    """A fresh context with the dialects loaded; operations of others pass through in the generic form."""
    context = RecomputeContext(allow_unregistered=True)
    for dialect in (Builtin, Func, Arith, Math, Tensor, Scf, Linalg, MemRef, STABLEHLO, CHLO, SDY, RECOMPUTE):
        context.load_dialect(dialect)
    return context
