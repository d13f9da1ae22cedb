"""Every operation of arith, math, tensor, linalg and scf has a kernel, or is listed here."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from xdsl.dialects.linalg import Linalg
from xdsl.dialects.math import Math
from xdsl.dialects.scf import Scf
from xdsl.dialects.tensor import Tensor

from recompute.dialects.arith import ARITH
from recompute.interpreters.block_compiler import is_known
from recompute.interpreters.combiners import CONSTANTS
from recompute.rules.effects import TERMINATORS

# Known to the rules and to the proof, and not executed.
NOT_EXECUTED = frozenset("linalg.index scf.parallel scf.reduce".split())


def test_every_operation_has_a_kernel_or_is_listed() -> None:
    kinds = [kind for dialect in (ARITH, Math, Tensor, Linalg, Scf) for kind in dialect.operations]
    assert {kind.name for kind in kinds if not is_known(kind)} - TERMINATORS == NOT_EXECUTED
    assert {"arith.constant", "stablehlo.constant"} == CONSTANTS
