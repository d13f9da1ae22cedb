"""The xDSL context with all dialects that this project reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.memref import MemRef
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor
from xdsl.ir import Operation

from ..support.remarks import Remark, RemarkContext
from .arith import ARITH
from .chlo import CHLO
from .recompute import RECOMPUTE
from .sdy import SDY
from .stablehlo import STABLEHLO
from .torch import PREFIX, TORCH, operation_class


@dataclass
class RecomputeContext(RemarkContext):
    """An xDSL context that also collects the passes' remarks, their plans (as text) and their summaries.

    Attributes:
        summaries: Remarks, each of which sums up the effect of a pass. Tools print these summaries unless they print
            the detailed remarks.
    """

    plans: list[str] = field(default_factory=list[str])
    summaries: list[Remark] = field(default_factory=list[Remark])

    @override
    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """Return the class of an operation, as xDSL does. Classes of PyTorch operations are created on demand."""
        return (
            operation_class(name)
            if name.startswith(PREFIX)
            else super().get_optional_op(name, dialect_stack=dialect_stack)
        )


def make_context() -> RecomputeContext:
    """Return a new context in which all dialects that this project knows are loaded.

    Operations of other dialects are parsed and printed in generic form.
    """
    context = RecomputeContext(allow_unregistered=True)
    for dialect in (Builtin, Func, ARITH, Math, Tensor, Scf, Linalg, MemRef, STABLEHLO, CHLO, SDY, TORCH, RECOMPUTE):
        context.load_dialect(dialect)
    return context
