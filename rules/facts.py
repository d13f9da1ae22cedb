"""Facts about operations, as data, for the tables of the dialects and for calls of `register`.

pure()                            a function of its operands and attributes
pure_if_body_is()                 the same, if all operations in its regions are pure
impure("it reads a file")         never recomputed, with the reason for messages
cast(), product(pure())           a conversion; a matrix product, to which policies refer
random(state=0)                   random numbers from the state in operand 0: pure, since the state is an operand
constant()                        a value without operands, which is never saved
view(of=0)                        a view of the operand's storage
forwards()                        result i is operand i
collective(), communication()     an exchange with other devices
reads_memory(), writes_memory()   an access to memory behind a reference
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
    """Whether an operation may be executed twice."""

    PURE = "pure"
    PURE_IF_BODY_IS = "pure if its body is"
    IMPURE = "impure"
    TERMINATOR = "terminator"


class View(Enum):
    """The relation between the storages of a result and of an operand."""

    STRIDED = "for any layout of the operand; the result need not be row-major"
    DENSE = "if the operand is row-major, otherwise it is copied"
    FORWARDS = "result i is operand i"


class OpClass(Enum):
    """Classes of operations to which policies, transforms and memory models refer; an operation may be in several."""

    CONSTANT = "constant"
    COLLECTIVE = "collective"
    CAST = "cast"
    PRODUCT = "product"
    ORDERING = "ordering"
    READS_MEMORY = "reads memory"
    WRITES_MEMORY = "writes memory"


class Carry(Enum):
    """Values whose storage the arguments of a region occupy while the region runs."""

    NOTHING = "nothing"
    OPERANDS = "operands"
    RESULTS = "results"


@dataclass(frozen=True)
class RegionStorage:
    """Storage of a region whose values are stored in memory.

    Attributes:
        carry: The values whose storage the region's arguments occupy.
        hands_on: Index of the first terminator operand that becomes a loop carry or a result; None if none does, as in
            the condition of a loop.
    """

    carry: Carry
    hands_on: int | None = 0


@dataclass(frozen=True)
class Facts:
    """Facts about the operations with one name.

    Attributes:
        effect: Whether the operation may be executed twice.
        reason: The reason that it may not, for messages.
        op_classes: The classes of the operation.
        state: Index of the operand with the random state.
        view: The relation between the storages of results and of an operand.
        view_of: Index of that operand.
        flops: FLOPs of one execution, without its regions; None for one FLOP per result element.
        transcendentals: Calls of functions such as `exp`, which `flops` does not include; None for none.
        body_runs: A function that returns the number of runs of the regions, for all or for each; None if `flops`
            includes them.
        alternatives: Whether exactly one of the regions runs, and it is not known statically which one.
        regions: Storage of each region that stores values; the last entry applies to all further regions. Empty if the
            regions compute only scalars.
        on_host: Whether the results take up no device memory.
        allocated: Whether the executor allocates the results when it runs the operation, even if they are computed from
            constants alone or returned, as in PyTorch. XLA, in contrast, folds constant results, and its caller
            provides the memory of returned results.
        stored_bytes: Size of the storage of each result in bytes; None if the result types determine it.
        on_tensors: Whether no operation with this name has operands or results that refer to memory.
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
    on_tensors: bool = field(default=False, compare=False)


def no_work(op: Operation) -> int:
    """Return the count 0, for operations without arithmetic and regions that never run."""
    return 0


def once(op: Operation) -> int:
    """Return the count 1, for branches and for loops with an unknown trip count."""
    return 1


def pure(flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    """Return the facts about a function of operands and attributes, which may run twice.

    The proof needs a declaration of its own, `recompute.proof.register_pure`.

    Args:
        flops: FLOPs of one execution as a function of the operation; by default one for each element of the results.
        transcendentals: Calls of functions such as `exp`; by default none.

    Example:
        >>> from recompute.rules import pure, register
        >>> register("acme.swish", pure(flops=lambda op: 4 * 64 * 64))
    """
    return Facts(Effect.PURE, flops=flops, transcendentals=transcendentals)


def pure_movement(*kinds: OpClass) -> Facts:
    """Return the facts about a pure operation without arithmetic, which only copies or selects elements."""
    return Facts(Effect.PURE, op_classes=frozenset(kinds), flops=no_work)


def cast() -> Facts:
    """Return the facts about a conversion to another element type. Like a view, it is recomputed along with its
    users."""
    return Facts(Effect.PURE, op_classes=frozenset({OpClass.CAST}))


def product(facts: Facts) -> Facts:
    """Mark an operation as a matrix product or convolution, whose results policies such as `dots_saveable` save."""
    return replace(facts, op_classes=facts.op_classes | {OpClass.PRODUCT})


def pure_if_body_is(
    flops: Count | None = None,
    body_runs: Count | tuple[Count, ...] | None = None,
    regions: tuple[RegionStorage, ...] = (),
) -> Facts:
    return Facts(Effect.PURE_IF_BODY_IS, flops=flops, body_runs=body_runs, regions=regions)


def branches(*regions: RegionStorage) -> Facts:
    """Return the facts about an operation that runs one of its regions, once."""
    return replace(pure_if_body_is(no_work, once, regions), alternatives=True)


def without_arithmetic(facts: Facts) -> Facts:
    """Return the same facts without arithmetic."""
    return replace(facts, flops=no_work)


def impure(reason: str, *kinds: OpClass) -> Facts:
    """Return the facts about an operation that must not run twice.

    Args:
        reason: The reason, which remarks quote: "acme.print is not recomputed: it prints".
        kinds: Further properties of the operation.

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
    """Return the facts about random numbers that are a function of an operand, their state.

    A copy reads the same state, so it draws the same numbers. An operation without that operand is never copied. The
    proof needs `recompute.proof.register_pure`, as for `pure`.

    Args:
        state: Index of the operand with the state.
        flops: FLOPs of one execution as a function of the operation; by default one for each element of the results.
        transcendentals: Calls of functions such as `exp`; by default none.

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


def table(dialect: str, names: str, facts: Facts) -> dict[str, Facts]:
    """Return a table with the same facts for each name in `names`, which are separated by whitespace."""
    return {f"{dialect}.{name}": facts for name in names.split()}
