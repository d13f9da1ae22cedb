"""What there is to know about an operation, as data. The tables of the dialects and `register` are made of these.

pure()                          a function of its operands and attributes
pure_if_body_is()               the same, where everything in its regions is
impure("it reads from outside") not to run twice, with the words for the user
cast(), product(pure())         a convert; a product of matrices, which policies speak of
random(state=0)                 random numbers made from the state that operand 0 holds: pure, given that state
constant()                      no operands, and nothing to keep
view(of=0)                      the operand's storage, looked at in another way
forwards()                      result i is operand i
collective(), communication()   needs other devices
reads_memory(), writes_memory() of whatever a reference points to
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
    """What running the operation once more can change."""

    PURE = "pure"
    PURE_IF_BODY_IS = "pure if its body is"
    IMPURE = "impure"
    TERMINATOR = "terminator"


class View(Enum):
    """How a result shares the storage of an operand."""

    STRIDED = "whatever the layout of the operand; the result need not lie row by row"
    DENSE = "while the operand lies row by row, otherwise it is copied"
    FORWARDS = "result i is operand i"


class Kind(Enum):
    """What an operation is besides its effect."""

    CONSTANT = "constant"
    COLLECTIVE = "collective"
    CAST = "cast"
    PRODUCT = "product"
    ORDERING = "ordering"
    READS_MEMORY = "reads memory"
    WRITES_MEMORY = "writes memory"


class Carry(Enum):
    """The values that a region's arguments stand for; they are stored while the region runs."""

    NOTHING = "nothing"
    OPERANDS = "operands"
    RESULTS = "results"


@dataclass(frozen=True)
class RegionStorage:
    """A region that stores what it computes.

    `hands_on`: from which operand on the terminator hands on values that become the next carry or the results; None
    where it hands on none, as the condition of a loop does.
    """

    carry: Carry
    hands_on: int | None = 0


@dataclass(frozen=True)
class Facts:
    """Facts about the operations of one name.

    `reason`: why it may not run twice. `state`: the operand that holds the random state. `view_of`: the operand that a
    view looks at. `flops`: of one execution, without what its regions do; None is one for each element of the results.
    `transcendentals`: calls of functions such as `exp`, which are not among the `flops`; None is none. `body_runs`: how
    often the regions run, or how often each one does; None where `flops` counts them already. `alternatives`: one of
    the regions runs, nobody knows which. `regions`: one for each region that stores values, the last one for all
    further regions; none where the regions compute scalars. `on_host`: results take none of the device's memory.
    `on_tensors`: it never takes or makes a reference to memory, whatever the operation.
    """

    effect: Effect
    reason: str = ""
    kinds: frozenset[Kind] = frozenset()
    state: int | None = None
    view: View | None = None
    view_of: int = 0
    flops: Count | None = None
    transcendentals: Count | None = None
    body_runs: Count | tuple[Count, ...] | None = None
    alternatives: bool = False
    regions: tuple[RegionStorage, ...] = ()
    on_host: bool = False
    on_tensors: bool = field(default=False, compare=False)


def nothing(op: Operation) -> int:
    """The count of what does no arithmetic, or of regions that never run."""
    return 0


def once(op: Operation) -> int:
    """A branch, and a loop whose trip count is not known."""
    return 1


def pure(flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    return Facts(Effect.PURE, flops=flops, transcendentals=transcendentals)


def moves(*kinds: Kind) -> Facts:
    """Pure, and no arithmetic: elements are copied or chosen."""
    return Facts(Effect.PURE, kinds=frozenset(kinds), flops=nothing)


def cast() -> Facts:
    """The operand in another element type: it travels along with what is recomputed, as views do."""
    return Facts(Effect.PURE, kinds=frozenset({Kind.CAST}))


def product(facts: Facts) -> Facts:
    """A product of matrices or a convolution: what `dots_saveable` and its like save."""
    return replace(facts, kinds=facts.kinds | {Kind.PRODUCT})


def pure_if_body_is(
    flops: Count | None = None,
    body_runs: Count | tuple[Count, ...] | None = None,
    regions: tuple[RegionStorage, ...] = (),
) -> Facts:
    return Facts(Effect.PURE_IF_BODY_IS, flops=flops, body_runs=body_runs, regions=regions)


def branches(*regions: RegionStorage) -> Facts:
    """One of the regions runs, once."""
    return replace(pure_if_body_is(nothing, once, regions), alternatives=True)


def idle(facts: Facts) -> Facts:
    """The same, without arithmetic."""
    return replace(facts, flops=nothing)


def impure(reason: str, *kinds: Kind) -> Facts:
    return Facts(Effect.IMPURE, reason=reason, kinds=frozenset(kinds))


def terminator() -> Facts:
    return Facts(Effect.TERMINATOR, flops=nothing)


def constant() -> Facts:
    return Facts(Effect.PURE, kinds=frozenset({Kind.CONSTANT}), flops=nothing)


def random(state: int = 0, flops: Count | None = None, transcendentals: Count | None = None) -> Facts:
    return Facts(Effect.PURE, state=state, flops=flops, transcendentals=transcendentals)


def view(of: int = 0, layout: View = View.STRIDED) -> Facts:
    return Facts(Effect.PURE, view=layout, view_of=of, flops=nothing)


def forwards(*kinds: Kind) -> Facts:
    return Facts(Effect.PURE, view=View.FORWARDS, kinds=frozenset(kinds), flops=nothing)


def collective() -> Facts:
    return impure(COLLECTIVE_REASON, Kind.COLLECTIVE)


def communication() -> Facts:
    return impure(COMMUNICATION_REASON)


def reads_memory(reason: str = READS_REASON) -> Facts:
    return impure(reason, Kind.READS_MEMORY)


def writes_memory(reason: str = WRITES_REASON) -> Facts:
    return impure(reason, Kind.WRITES_MEMORY)


def table(dialect: str, names: str, facts: Facts) -> dict[str, Facts]:
    """The same facts for every name of a list of words."""
    return {f"{dialect}.{name}": facts for name in names.split()}
