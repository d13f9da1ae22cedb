"""A proof that two programs compute the same numbers, bit for bit, by structure: tier 1 of `recompute-check`.

Both programs are numbered in one table of terms (`value_numbering.py`, `terms.py`). They are equal if every public
function returns the same terms, causes the same effects in the same order, and has the same signature. One pass over
each program, linear time; nothing is searched, folded or reordered. "Not proved" means unproved, never wrong.

The method is value numbering by hashing (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970), with
regions closed by lambda lifting (Johnsson, "Lambda lifting: transforming programs to recursive equations", 1985).

What a proof means
------------------
Every result is the same expression over the same arguments and constants, down to the order of operands. So it has the
same bits on every executor on which an operation is a function of its operands, attributes and regions. Where a
compiler rounds two instances of one expression differently (fusion, FMA), that is out of its reach.

What a term must contain
------------------------
Every part of the operation that it stands for; `anatomy.py` lists them all, and a test holds the list against xDSL. So
name, attributes, which of them are properties, types of the results, regions, operands. What is to be left out needs a
rule below, and each rule has a test of its own. A part that no rule speaks of, or that cannot be compared, is a
`Refusal`.

Trusted, and therefore kept small
---------------------------------
* The parser that built the two modules, and xDSL's attribute classes (`attribute_keys.py` says where their equality is
  replaced by a comparison of bits).
* `pure_operations.py`: each operation on that list is a deterministic function. A call or a loop without effects whose
  results are not read may be removed, even if the loop may not end; an unstable `sort` breaks ties in the same way each
  time.
* `conditions.py`: the operations that it does not name are defined for all operands of static extents. What StableHLO
  calls implementation-defined is a value: integers wrap around.
* What the caller vouches for, by `also_pure` or `register_pure`; a proof that makes use of it lists it (`believed`).

The rules, each used in both programs alike
-------------------------------------------
* Pure operations: equal ones are one, wherever they stand; those whose results are not read do not count, nor do their
  attributes. A sharding constraint may be repeated, but it has to occur (`KEPT`), on its operand and in its loop.
* Failure (`conditions.py`): an operation with a run-time condition (dynamic extents, an integer division, an index out
  of range, indices said to be unique) may vanish, but the program after runs it only where the program before does
  (`risks.py`). What ran before, with the same operands, may run again.
* Termination: the same for a loop that is not seen to count towards a bound; it also stays behind the effects before
  it.
* Barriers: `stablehlo.optimization_barrier` and `recompute.depend` give back their values, result i for value i, of the
  same types; the token does not count.
* Memory spaces (`memory_spaces.py`): moving a value to the host and back is the value, if it is known to have lain on
  the device.
* Marks: a custom call `recompute.save` and its like (`dialects/marks.py`), with nothing else on it, is its first
  operand.
* Groups: `recompute.segment` and `recompute.gradient` are the operations that they hold.
* Collectives (`collectives.py`), outside of every region but the bodies of `sdy.manual_computation`: functions of what
  goes into them on the device where they are and on all others, which run the same program. The channel is a name, but
  the operations that share one in the program after, as a multiset, shared one before; a function that is called twice
  counts twice, and `send` and its like count too. Inside of branches and loops they are effects.
* On each device: a `sdy.manual_computation` on which nothing is written but its axes and shardings is what each device
  computes from the parts of its operands (`per_device.py`): a part of a whole that was put together in the same way is
  what was put there. A sharding that leaves out an axis is taken at its word: all devices along it have the same.
* Identities (`identities.py`), for known extents and without other attributes: reshapes in a row are one, and so are
  transposes; `reduce_precision` to the format of its type, and `convert` to its type, are their operand; a constant
  whose elements are alike, broadcast, reshaped or transposed, is the constant of that type.
* Calls: `func.call` is the body of the function named. Recursion is refused.
* Attributes of one of these, of the function called, its arguments, results or return: the values that go in and come
  out are those of one term with these attributes, each at its position (`wrapping.py`), and so are the effects between.
* Custom calls (`custom_calls.py`): those without side effects, of targets on a list of its own or that the user vouches
  for, are functions of their operands, which run only where the program before runs them; all others are effects.
* Effects: everything else that is not on the list is an ordered effect: what it does may depend on all effects before
  it, and the types of its operands count. So effects keep their number and order, and what they return is equal only to
  itself. So is whatever takes or makes a memref, be it on the list or not, and whatever holds such an operation in a
  region.
* Regions: where it is known what the region means (`COMPUTE_THEIR_REGIONS`), two are the same if they compute the same
  from their arguments and from the same captured values. Any other region is taken literally: all that stands in it
  counts, in this order, barriers and dead operations too. So is the top level of the module.
* Which device runs (`partition_id`) is the same for all in one place: in bodies on the same devices, but not in one of
  them and outside of it.
* Signature: the attributes of the modules; every operation at the top level that is not a function, but for meshes that
  nothing refers to; and of every public function name, type, argument attributes (donation: `tf.aliasing_output`,
  `jax.buffer_donor`; shardings), result attributes, all others and those of its return. Empty dictionaries are as good
  as none.
* Names: locations, names of SSA values, of private functions and of the module itself, the order of functions, private
  functions that are not called, and discardable attributes that start with `recompute.` do not count.
* Reserved names (`dialects/reserved_names.py`): a function that a consumer finds by its name is compared as a public
  one is, and each call of it is an effect.
* Assumption, only where the caller asks for it (`added_constraints`) and reported with the proof: a sharding
  constraint that only the program after has is its operand.
* Identical text: two files that are the same to the byte are equal, whatever they hold; so are a module and what was
  made from it, if their generic text is the same.

Refused otherwise, because equal text would not mean equal content: several blocks, dense resources, attribute aliases
in unregistered attributes, symbols that name functions (other than `callee`), symbols inside of operations, functions
without a body.

Equal programs that are not proved: operands of a commutative operation swapped, anything folded or simplified but what
the rules name, calls of unknown targets cloned, and collectives cloned inside of branches and loops.

Tier 2 (`loop_rules/`) is asked where tier 1 finds no proof and there are loops or conditionals: a result of a loop
without attributes is what its own carries compute, whatever else the loop carries, and reading a stack is computing
what was stored there; the effects of a loop are one carry more, which hands on the effects so far. A loop with
attributes, or with one that changes the type of a carry, is compared as it stands. Each result of a conditional without
effects and attributes is its condition and what its regions return; a region reads the result of another conditional
with the same condition as what the same region returns there. Comparisons of loop counters whose ranges decide them are
constants, and so are choices by such a constant.

Not trusted and not used: the passes, their attributes, and every table of the packages rules, analysis, transforms.
What no proof can see, because the numbers do not change, is memory: a missing token or a clone that nobody reads.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..dialects.names import Names
from ..support.diagnostics import UNKNOWN, Refusal, position_of
from ..support.walk import every_operation
from .anatomy import entry_functions, functions_of, name_of, public_functions
from .collectives import newly_shared
from .custom_calls import declared_target, target_of
from .first_difference import AFTER, BEFORE, describe, first_difference
from .foreign import registered_pure
from .identity import proof_of_identity, same_text, size
from .loop_rules.numbering import BRANCHES, WHILE, LoopNumbering
from .loop_rules.rules import Rules
from .memory_spaces import names_a_memory
from .proof import Proof
from .pure_operations import PURE_OPERATIONS
from .risks import is_implied
from .scope import Exchange, Outcome
from .signature import signature, signature_difference
from .terms import ENDLESS, Terms
from .value_numbering import Numbering

FRAMES_PER_CALL, DEEPEST = 10, 200_000


def prove(
    before: ModuleOp,
    after: ModuleOp,
    *,
    pure: Collection[str] = PURE_OPERATIONS,
    also_pure: Collection[str] | None = None,
    one_source: bool = False,
    loops: bool = True,
    added_constraints: bool = False,
    repeatable: Collection[str] = (),
) -> Proof:
    """Try to prove that `after` computes the same as `before`. Never raises for what a module holds; changes nothing.

    Both modules must verify. `pure`: names of the operations that are functions of their operands, attributes, regions.
    `also_pure`: those that the caller vouches for; what `recompute.interpreters.register_pure` was told if not given.
    `one_source`: `after` was made from `before`, so that a name in one of them stands for the same in the other, also
    where it names what lies outside of the module. `loops`: where tier 1 finds no proof, tier 2 tries (`loop_rules`).
    `added_constraints`: take a sharding constraint that only the program after has, outside of regions, for its
    operand; the proof counts them. `repeatable`: targets of custom calls that the caller vouches for, as a call in
    `before` does for its target by the attribute `recompute.repeatable`.
    """
    declared = registered_pure() if also_pure is None else frozenset(also_pure)
    declared |= {declared_target(target) for target in (*repeatable, *_stated_repeatable(before))}
    try:
        with _deep_calls(before, after):
            return _compare(before, after, pure, declared.difference(pure), loops, added_constraints)
    except Refusal as refusal:
        if one_source and same_text(before, after):
            return proof_of_identity(before)
        side = "before" if _module_of(refusal.operation) is before else "after"
        position = position_of(refusal.operation)
        at = "" if position == UNKNOWN else f" at {position}"
        return Proof(False, f"the program {side} cannot be compared{at}: {refusal.reason}")
    except RecursionError:
        return Proof(False, "regions, calls or attributes are nested too deeply to be compared")


@contextmanager
def _deep_calls(*modules: ModuleOp) -> Generator[None]:
    """Let calls be inlined as deep as there are functions: each level takes a few frames of Python."""
    limit = sys.getrecursionlimit()
    functions = max(len(functions_of(module)) for module in modules)
    sys.setrecursionlimit(max(limit, min(FRAMES_PER_CALL * functions, DEEPEST)))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _compare(
    before: ModuleOp,
    after: ModuleOp,
    known: Collection[str],
    declared: frozenset[str],
    loops: bool,
    added_constraints: bool,
) -> Proof:
    functions = frozenset(functions_of(before).keys() | functions_of(after).keys())
    terms, pure = Terms(functions), declared.union(known)
    one = Numbering(before, BEFORE, terms, pure, declared)
    other = Numbering(after, AFTER, terms, pure, declared, one.constraints if added_constraints else None)
    first = _compared(terms, one, other)
    if first or not loops or not _has_loops(after):
        return first
    rules = Rules(Terms(functions), names_a_memory(before) or names_a_memory(after))
    one = LoopNumbering(before, BEFORE, rules, pure, declared)
    other = LoopNumbering(after, AFTER, rules, pure, declared, one.constraints if added_constraints else None)
    second = _compared(rules.terms, one, other)
    # Where the results differ, the first names operations, and the second terms of its own.
    return replace(second if second or second.difference is None else first, tier=2)


def _stated_repeatable(module: ModuleOp) -> Iterator[str]:
    """The targets of custom calls that the program itself declares to be repeatable."""
    for op in every_operation(module):
        if Names.REPEATABLE in op.attributes and (target := target_of(op)) is not None:
            yield target


def _has_loops(module: ModuleOp) -> bool:
    """Whether the rules of tier 2 have anything to say."""
    return any(name_of(op) == WHILE or name_of(op) in BRANCHES for op in every_operation(module))


def _compared(terms: Terms, one: Numbering, other: Numbering) -> Proof:
    before, after = one.module, other.module
    one.demand_bounded_size()
    other.demand_bounded_size()
    if (reason := signature_difference(signature(one), signature(other), terms)) is not None:
        return Proof(False, reason)
    public = public_functions(one.functions)
    if not public:
        raise Refusal(before, "there is no public function to compare")
    results, exchanges = 0, (list[Exchange](), list[Exchange]())
    for name in entry_functions(one.functions):
        outcomes = one.function(name), other.function(name)
        for side, outcome in zip(exchanges, outcomes, strict=True):
            side.extend(outcome.exchanges)
        for where, number, other_number in _values(name, *outcomes):
            if number != other_number:
                return _different(terms, where, number, other_number)
        if (reason := _lost(other, terms, name, *outcomes)) is not None:
            return Proof(False, reason)
        results += len(outcomes[0].results) if name in public else 0
    if (channel := newly_shared(*exchanges)) is not None:
        return Proof(False, f"operations of the program after share a channel, {channel}, and did not share one before")
    if (number := one.top_level(after)) != (other_number := other.top_level(before)):
        return _different(terms, "the top level of the module", number, other_number)
    believed = tuple(sorted(one.believed | other.believed))
    added = len(other.added_constraints)
    return Proof(True, "", "", None, results, size(before), size(after), believed, added_constraints=added)


def _values(name: str, before: Outcome, after: Outcome) -> Iterator[tuple[str, int, int]]:
    """What must be equal: what it is, number before, number after."""
    for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
        yield f"result #{index} of @{name}", a, b
    yield f"the effects of @{name}", before.state, after.state


def _different(terms: Terms, where: str, before: int, after: int) -> Proof:
    difference = first_difference(terms, before, after)
    return Proof(False, f"{where} differs: {difference}", where, difference)


def _lost(numbering: Numbering, terms: Terms, name: str, before: Outcome, after: Outcome) -> str | None:
    """What has to occur and does so in one of the programs only, or may fail and runs in the later one only."""
    only = "in @{} is only in the program {}, and may not be {}"
    for number in sorted(before.kept - after.kept):
        if not numbering.is_covered(number, after.kept):
            return f"{describe(terms, BEFORE, number)} {only.format(name, 'before', 'dropped')}"
    for number in sorted(after.kept - before.kept):
        if not numbering.occurs(number, before.kept):
            return f"{describe(terms, AFTER, number)} {only.format(name, 'after', 'added')}"
    for number in sorted(after.risks - before.risks):
        if not (is_implied(terms, number, before.risks) or numbering.occurs(number, before.risks)):
            verb = "may not end" if terms.head_of(number).name == ENDLESS else "may fail"
            return f"{describe(terms, AFTER, number)} in @{name} {verb}, and runs in the program after only"
    return None


def _module_of(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None:
        op = parent
    return op
