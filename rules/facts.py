"""Facts about operations, as data. The tables of the dialects and `register` consist of these.

pure()                          a function of its operands and attributes
pure_if_body_is()               the same, if all operations in its regions are
impure("it reads from outside") never recomputed, with the reason for messages
cast(), product(pure())         a convert; a matrix product, which policies refer to
random(state=0)                 random numbers from the state in operand 0: pure, since the state is an operand
constant()                      no operands, and nothing to save
view(of=0)                      a view of the operand's storage
forwards()                      result i is operand i
collective(), communication()   needs other devices
reads_memory(), writes_memory() of the memory behind a reference
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from xdsl.ir import Operation

Count: TypeAlias = Callable[[Operation], int]

COLLECTIVE_REASON = "it is a collective, and recomputing collectives is off"
COMMUNICATION_REASON = "it communicates"
READS_REASON = "it reads memory that may have been written in between"
WRITES_REASON = "it writes memory"


class Effect(Enum):
    """Whether the operation may be executed twice."""

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
    """Classes of operations that matter besides the effect."""

    CONSTANT = "constant"
    COLLECTIVE = "collective"
    CAST = "cast"
    PRODUCT = "product"
    ORDERING = "ordering"
    READS_MEMORY = "reads memory"
    WRITES_MEMORY = "writes memory"


class Carry(Enum):
    """The values whose storage a region's arguments take while the region runs."""

    NOTHING = "nothing"
    OPERANDS = "operands"
    RESULTS = "results"


@dataclass(frozen=True)
class RegionStorage:
    """A region whose values are stored in memory.

    `hands_on`: the first operand of the terminator that becomes a next carry or a result; None if none does, as in the
    condition of a loop.
    """

    carry: Carry
    hands_on: int | None = 0


@dataclass(frozen=True)
class Facts:
    """Facts about the operations of one name.

    Attributes:
        effect: Whether it may be executed twice.
        reason: Why not.
        kinds: Its classes.
        state: The number of the operand that holds the random state.
        view: How results share storage with an operand.
        view_of: The number of that operand.
        flops: FLOPs of one execution, without its regions; None means one for each element of the results.
        transcendentals: Calls of functions such as `exp`, which `flops` does not include; None means none.
        body_runs: How often the regions run, or each of them; None if `flops` includes them.
        alternatives: Only one of the regions runs, and which one is unknown.
        regions: One for each region that stores values, the last one for all further regions; empty if the regions
            compute scalars.
        on_host: The results take no device memory.
        allocated: The executor allocates the results when it runs the operation, also those that are computed from
            constants alone, and counts those that are returned: PyTorch. A compiler (XLA) folds the former, and the
            caller provides the latter.
        stored_bytes: Bytes of the storage of each result; None for those of its type.
        on_tensors: No operation of this name has operands or results that refer to memory.
    """

    effect: Effect
    reason: str = ""
    kinds: frozenset[OpClass] = frozenset()
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


def nothing(op: Operation) -> int:
    """Return the count 0: of operations without arithmetic, or of regions that never run."""
    return 0


def once(op: Operation) -> int:
    """Return the count 1: of branches, and of loops with an unknown trip count."""
    return 1


def pure(flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    return Facts(Effect.PURE, flops=flops, transcendentals=transcendentals)


def moves(*kinds: OpClass) -> Facts:
    """Return the facts for a pure operation without arithmetic: elements are copied or selected."""
    return Facts(Effect.PURE, kinds=frozenset(kinds), flops=nothing)


def cast() -> Facts:
    """Return a conversion of the operand to another element type; it is recomputed along with its users, as
    views are."""
    return Facts(Effect.PURE, kinds=frozenset({OpClass.CAST}))


def product(facts: Facts) -> Facts:
    """Mark the facts as those of a matrix product or convolution, which policies such as `dots_saveable` save."""
    return replace(facts, kinds=facts.kinds | {OpClass.PRODUCT})


def pure_if_body_is(
    flops: Count | None = None,
    body_runs: Count | tuple[Count, ...] | None = None,
    regions: tuple[RegionStorage, ...] = (),
) -> Facts:
    return Facts(Effect.PURE_IF_BODY_IS, flops=flops, body_runs=body_runs, regions=regions)


def branches(*regions: RegionStorage) -> Facts:
    """Return the facts for an operation that runs one of its regions, once."""
    return replace(pure_if_body_is(nothing, once, regions), alternatives=True)


def idle(facts: Facts) -> Facts:
    """Return the facts, without arithmetic."""
    return replace(facts, flops=nothing)


def impure(reason: str, *kinds: OpClass) -> Facts:
    return Facts(Effect.IMPURE, reason=reason, kinds=frozenset(kinds))


def terminator() -> Facts:
    return Facts(Effect.TERMINATOR, flops=nothing)


def constant() -> Facts:
    return Facts(Effect.PURE, kinds=frozenset({OpClass.CONSTANT}), flops=nothing)


def random(state: int = 0, flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    return Facts(Effect.PURE, state=state, flops=flops, transcendentals=transcendentals)


def view(of: int = 0, layout: View = View.STRIDED) -> Facts:
    return Facts(Effect.PURE, view=layout, view_of=of, flops=nothing)


def forwards(*kinds: OpClass) -> Facts:
    return Facts(Effect.PURE, view=View.FORWARDS, kinds=frozenset(kinds), flops=nothing)


def collective() -> Facts:
    return impure(COLLECTIVE_REASON, OpClass.COLLECTIVE)


def communication() -> Facts:
    return impure(COMMUNICATION_REASON)


def reads_memory(reason: str = READS_REASON) -> Facts:
    return impure(reason, OpClass.READS_MEMORY)


def writes_memory(reason: str = WRITES_REASON) -> Facts:
    return impure(reason, OpClass.WRITES_MEMORY)


def table(dialect: str, names: str, facts: Facts) -> dict[str, Facts]:
    """Return a table with the same facts for each of the names, which are separated by spaces."""
    return {f"{dialect}.{name}": facts for name in names.split()}
