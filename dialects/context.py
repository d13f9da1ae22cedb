"""The dialects that this project reads and writes."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from .recompute import RECOMPUTE
from .stablehlo import STABLEHLO


def make_context() -> Context:
    """A fresh context with the dialects loaded; operations of others pass through in the generic form."""
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Arith, Math, Tensor, Scf, Linalg, STABLEHLO, RECOMPUTE):
        context.load_dialect(dialect)
    return context
