"""Data types for facts about operations, and functions that make them. The dialect tables and `register` use them.

pure()                            a function of its operands and attributes
pure_if_body_is()                 pure, if all operations in its regions are
impure("it reads a file")         never recomputed; messages state the reason
cast(), product(pure())           a conversion; a matrix product or convolution
random(state=0)                   random numbers: pure, since the state is operand 0
constant()                        a constant, which is never saved
view(of=0)                        a view of the operand's storage
forwards()                        result i is operand i
collective(), communication()     communication with other devices
reads_memory(), writes_memory()   an access to memory behind a reference
fused(pure())                     XLA:CPU computes it inside the kernels of its users
in_kernel_library(pure())         XLA:CPU's kernel library can compute it
overwrites_operand(pure())        XLA:CPU may write its result over operand 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from xdsl.ir import Operation

Count: TypeAlias = Callable[[Operation], int]

COLLECTIVE_REASON = "it is a collective, and recomputation of collectives is disabled"
COMMUNICATION_REASON = "it communicates with other devices"
READS_REASON = "it reads memory that may be overwritten before the copy runs"
WRITES_REASON = "it writes memory"


class Effect(Enum):
    """The effect of an operation, which determines whether it may run twice."""

    PURE = "pure"
    PURE_IF_BODY_IS = "pure if its body is"
    IMPURE = "impure"
    TERMINATOR = "terminator"


class View(Enum):
    """The way in which a result shares the storage of an operand."""

    STRIDED = "for any layout of the operand; the result need not be row-major"
    DENSE = "if the operand is row-major, otherwise it is copied"
    FORWARDS = "result i is operand i"


class OpClass(Enum):
    """Classes of operations, to which policies, transforms and memory models refer. An operation may be in several
    classes."""

    CONSTANT = "constant"
    COLLECTIVE = "collective"
    CAST = "cast"
    PRODUCT = "product"
    ORDERING = "ordering"
    READS_MEMORY = "reads memory"
    WRITES_MEMORY = "writes memory"


class Carry(Enum):
    """The values whose storage the arguments of a region use while the region runs."""

    NOTHING = "nothing"
    OPERANDS = "operands"
    RESULTS = "results"


class FusionRole(Enum):
    """The role of an operation in the kernels of XLA:CPU. Source: `xla/service/cpu/cpu_instruction_fusion.cc`."""

    CHEAP = "fused into its users; each kernel that uses the result computes it"
    EXPENSIVE = "fused into its users only if it is computed once: in one kernel, and once for each element"
    REDUCTION = "not fused into its users; operands without another user are fused into it"


@dataclass(frozen=True)
class RegionStorage:
    """The storage that the values of a region use, if they are in memory.

    Attributes:
        carry: The values whose storage the arguments of the region use.
        hands_on: Index of the first operand of the terminator that becomes a loop carry or a result; None if no operand
            does, as in the condition of a loop.
    """

    carry: Carry
    hands_on: int | None = 0


@dataclass(frozen=True)
class Facts:
    """Facts about all operations with a given name.

    Attributes:
        effect: Whether the operation may run twice.
        reason: The reason that the operation must not run twice, for messages; empty if it may run twice.
        op_classes: The classes of the operation.
        state: Index of the operand that contains the random state; None if the operation draws no random numbers.
        view: How the results share the storage of an operand; None if they share no storage.
        view_of: Index of this operand.
        flops: Returns the FLOPs of one execution without its regions; None means one FLOP for each result element.
        transcendentals: Returns the number of calls to functions such as `exp`, which `flops` does not include; None
            means 0.
        body_runs: Returns how many times the regions run. A tuple has one function for each region. None if `flops`
            includes the work of the regions.
        alternatives: Whether exactly one of the regions runs, depending on a run-time value.
        regions: How each region stores its values; the last entry also applies to all further regions. Empty if the
            regions compute only scalars.
        on_host: Whether the results take up no device memory.
        allocated: Whether the executor allocates the results when it runs the operation, even if they are constant or
            returned, as PyTorch does. XLA, in contrast, folds constant results, and its caller provides the memory of
            returned results.
        stored_bytes: Returns the size, in bytes, of the storage of each result; None if the result types determine it.
        fusion: The role of the operation in fused kernels; None if it forms a kernel of its own. The XLA:CPU model
            reads `fusion`, `in_kernel_library` and `overwrites_operand`.
        in_kernel_library: Whether XLA:CPU's kernel library, YNNPACK, can compute the operation for large tensors of
            floats. Further conditions on individual operations are in `analysis/memory/xla/traits.py`.
        overwrites_operand: Whether the operation updates operand 0 in place if that operand has no other use.
        on_tensors: Whether operations with this name never have memrefs as operands or results.
    """

    effect: Effect
    reason: str = ""
    op_classes: frozenset[OpClass] = frozenset()
    state: int | None = None
    view: View | None = None
    view_of: int = 0
    flops: Count | None = None
    transcendentals: Count | None = None
    body_runs: Count | tuple[Count, ...] | None = None
    alternatives: bool = False
    regions: tuple[RegionStorage, ...] = ()
    on_host: bool = False
    allocated: bool = False
    stored_bytes: Count | None = None
    fusion: FusionRole | None = None
    in_kernel_library: bool = False
    overwrites_operand: bool = False
    on_tensors: bool = field(default=False, compare=False)


def no_work(op: Operation) -> int:
    """Return 0: the FLOPs of an operation without arithmetic."""
    return 0


def once(op: Operation) -> int:
    """Return 1: the number of runs of a branch, and the assumed trip count of a loop whose trip count is unknown."""
    return 1


def pure(flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    """Return the facts about a pure operation, which is a function of its operands and attributes and may run twice.

    The proof does not read these facts; it needs a call to `recompute.proof.register_pure`.

    Args:
        flops: Returns the FLOPs of one execution of an operation; by default one FLOP for each element of the results.
        transcendentals: Returns the number of calls to functions such as `exp`; by default 0.

    Example:
        >>> from recompute.rules import pure, register
        >>> register("acme.swish", pure(flops=lambda op: 4 * 64 * 64))
    """
    return Facts(Effect.PURE, flops=flops, transcendentals=transcendentals)


def pure_movement(*kinds: OpClass) -> Facts:
    """Return the facts about a pure operation without arithmetic, which only copies or selects elements."""
    return Facts(Effect.PURE, op_classes=frozenset(kinds), flops=no_work)


def cast() -> Facts:
    """Return the facts about a conversion to another element type. Like a view, the conversion is recomputed together
    with its users."""
    return Facts(Effect.PURE, op_classes=frozenset({OpClass.CAST}))


def product(facts: Facts) -> Facts:
    """Return the facts, with the class of matrix products and convolutions added. Policies such as `dots_saveable` save
    the results of operations in this class."""
    return replace(facts, op_classes=facts.op_classes | {OpClass.PRODUCT})


def pure_if_body_is(
    flops: Count | None = None,
    body_runs: Count | tuple[Count, ...] | None = None,
    regions: tuple[RegionStorage, ...] = (),
) -> Facts:
    return Facts(Effect.PURE_IF_BODY_IS, flops=flops, body_runs=body_runs, regions=regions)


def branches(*regions: RegionStorage) -> Facts:
    """Return the facts about an operation that runs exactly one of its regions, once."""
    return replace(pure_if_body_is(no_work, once, regions), alternatives=True)


def without_arithmetic(facts: Facts) -> Facts:
    """Return a copy of the facts for an operation without arithmetic, which has 0 FLOPs."""
    return replace(facts, flops=no_work)


def impure(reason: str, *kinds: OpClass) -> Facts:
    """Return the facts about an impure operation, which must not run twice.

    Args:
        reason: The reason, as a clause that remarks quote: "acme.print is not recomputed: it prints".
        kinds: The classes of the operation.

    Example:
        >>> from recompute.rules import impure, register
        >>> register("acme.print", impure("it prints"))
    """
    return Facts(Effect.IMPURE, reason=reason, op_classes=frozenset(kinds))


def terminator() -> Facts:
    return Facts(Effect.TERMINATOR, flops=no_work)


def constant() -> Facts:
    return Facts(Effect.PURE, op_classes=frozenset({OpClass.CONSTANT}), flops=no_work)


def random(state: int = 0, flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    """Return the facts about an operation that draws random numbers from a state operand.

    A copy reads the same state, so it draws the same numbers. An operation that lacks the operand is never copied. As
    for `pure`, the proof needs a call to `recompute.proof.register_pure`.

    Args:
        state: Index of the operand that contains the state.
        flops: Returns the FLOPs of one execution of an operation; by default one FLOP for each element of the results.
        transcendentals: Returns the number of calls to functions such as `exp`; by default 0.

    Example:
        >>> from recompute.rules import random, register
        >>> register("acme.dropout_mask", random(state=0))
    """
    return Facts(Effect.PURE, state=state, flops=flops, transcendentals=transcendentals)


def view(of: int = 0, layout: View = View.STRIDED) -> Facts:
    return Facts(Effect.PURE, view=layout, view_of=of, flops=no_work)


def forwards(*kinds: OpClass) -> Facts:
    return Facts(Effect.PURE, view=View.FORWARDS, op_classes=frozenset(kinds), flops=no_work)


def collective() -> Facts:
    return impure(COLLECTIVE_REASON, OpClass.COLLECTIVE)


def communication() -> Facts:
    return impure(COMMUNICATION_REASON)


def reads_memory(reason: str = READS_REASON) -> Facts:
    return impure(reason, OpClass.READS_MEMORY)


def writes_memory(reason: str = WRITES_REASON) -> Facts:
    return impure(reason, OpClass.WRITES_MEMORY)


def fused(facts: Facts, role: FusionRole = FusionRole.CHEAP) -> Facts:
    """Return the facts, with a role in the fused kernels of XLA:CPU added.

    Args:
        facts: The facts about the operation, such as `pure()`.
        role: Whether its users may compute the operation several times (`CHEAP`) or only once (`EXPENSIVE`), or whether
            it is a kernel into which operands are fused (`REDUCTION`).

    Example:
        >>> from recompute.rules import FusionRole, fused, pure, register
        >>> register("acme.scale", fused(pure()))
        >>> register("acme.softplus", fused(pure(), FusionRole.EXPENSIVE))
    """
    return replace(facts, fusion=role)


def in_kernel_library(facts: Facts) -> Facts:
    """Return the facts about an operation that the kernel library of XLA:CPU, YNNPACK, can compute.

    Args:
        facts: The facts about the operation, such as `fused(pure())`.
    """
    return replace(facts, in_kernel_library=True)


def overwrites_operand(facts: Facts) -> Facts:
    """Return the facts about an operation that updates operand 0 in place if that operand has no other use.

    Args:
        facts: The facts about the operation, such as `pure()`.
    """
    return replace(facts, overwrites_operand=True)


def table(dialect: str, names: str, facts: Facts) -> dict[str, Facts]:
    """Return a table with the same facts for several operations of a dialect.

    `names`: the names of the operations without the dialect, separated by whitespace.
    """
    return {f"{dialect}.{name}": facts for name in names.split()}
