"""Fusion in XLA:CPU: the operations that its kernels fuse, and the operations that write over an operand."""

from __future__ import annotations

from .facts import FusionRole
from .registry import OperationNames

# Operations that are computed inside the kernels of their users.
FUSIBLE = OperationNames(lambda facts: facts.fusion in (FusionRole.CHEAP, FusionRole.EXPENSIVE))
# XLA neither duplicates these operations into several fusions, nor recomputes them for each element of a larger user.
EXPENSIVE = OperationNames(lambda facts: facts.fusion is FusionRole.EXPENSIVE)
# A reduction fuses operands that have no other user, as in a sum of squares. It reads all other operands from memory.
REDUCTIONS = OperationNames(lambda facts: facts.fusion is FusionRole.REDUCTION)
# Operations that the kernel library fuses with a sum or a maximum.
LIBRARY = OperationNames(lambda facts: facts.in_kernel_library)
# Operations that update their first operand in place if it has no other use. A loop updates all of its carries in
# place.
WRITES_OVER = OperationNames(lambda facts: facts.overwrites_operand)
