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
* `pure_operations.py`: each operation on that list is a deterministic function that always ends. Hence a call or a loop
  without effects may be removed, and with it an endless loop whose results nobody reads; an unstable `sort` is taken to
  break ties in the same way each time.
* What the caller vouches for, by `also_pure` or `register_pure`; a proof that makes use of it lists it (`believed`).

The rules, each used in both programs alike
-------------------------------------------
* Pure operations: equal ones are one, wherever they stand; those that nobody reads do not count, with all that is
  written on them. A sharding constraint may be repeated, but it has to occur (`KEPT`).
* What may fail (`MAY_FAIL`: a division by zero, an index out of range): it may vanish, but in the program after it runs
  only where it runs in the program before; so it is not the same inside of a region and outside of it.
* Barriers: `stablehlo.optimization_barrier` and `recompute.depend` give back their values, result i for value i; the
  token does not count.
* Marks: a custom call `recompute.save` and its like (`dialects/marks.py`), with nothing else on it, is its first
  operand.
* Layouts: a sharding constraint that a pass put in for a kept value (`recompute.shards_kept`) is its operand.
* Groups: `recompute.segment` and `recompute.gradient` are the operations that they hold.
* Collectives (`collectives.py`), outside of every region but the bodies of `sdy.manual_computation`: functions of what
  goes into them on the device where they are and on all others, which run the same program. The channel is a name, but
  two in the program after share none that two did not share before, where a function that is called twice counts
  twice, and so do `send` and its like. Inside of branches and loops they are effects.
* On each device: a `sdy.manual_computation` on which nothing is written but its axes and shardings is what each device
  computes from the parts of its operands (`per_device.py`): a part of a whole that was put together in the same way is
  what was put there. A sharding that leaves out an axis is taken at its word: all devices along it have the same.
* Reshapes: what is reshaped to the type that it had before is what it was before, if its extents are known.
* Calls: `func.call` is the body of the function named. Recursion is refused.
* Attributes of one of these, of the function called or of its return stay around the values that go in and come out,
  and around the effects between: losing a sharding is not proved, unless nobody reads the value that had it.
* Effects: everything else that is not on the list is an ordered effect: what it does may depend on all effects before
  it. So effects keep their number and order, and what they return is equal only to itself. So is whatever takes or
  makes a memref, be it on the list or not, and whatever holds such an operation in a region.
* Regions: where it is known what the region means (`COMPUTE_THEIR_REGIONS`), two are the same if they compute the same
  from their arguments and from the same captured values. Any other region is taken literally: all that stands in it
  counts, in this order, barriers and dead operations too. So is the top level of the module.
* Which device runs (`partition_id`) is the same for all in one place: in bodies on the same devices, but not in one of
  them and outside of it.
* Signature: the attributes of the modules, every operation at the top level that is not a function, and of every public
  function name, type, argument attributes (donation: `tf.aliasing_output`, `jax.buffer_donor`; shardings), result
  attributes, all others and those of its return. Empty dictionaries are as good as none.
* Names: locations, names of SSA values, of private functions and of the module itself, the order of functions, private
  functions that nobody calls, and discardable attributes that start with `recompute.` do not count.
* Identical text: two files that are the same to the byte are equal, whatever they hold; so are a module and what was
  made from it, if their generic text is the same.

Refused otherwise, because equal text would not mean equal content: several blocks, dense resources, attribute aliases
in unregistered attributes, symbols that name functions (other than `callee`), symbols inside of operations, functions
without a body.

Equal programs that are not proved: operands of a commutative operation swapped, anything folded or simplified but sums
of loop counters and reshapes, `custom_call` cloned, and collectives cloned inside of branches and loops.

Tier 2 (`loop_rules/`) is asked where tier 1 finds no proof and there are loops: a result of a loop without effects is
what its own carries compute, whatever else the loop carries, and reading a stack is computing what was stored there.
What others have written on a loop stays with its results, and its stacks are not read like this.

Not trusted and not used: the passes, their attributes, and every table of the packages rules, analysis, transforms.
What no proof can see, because the numbers do not change, is memory: a missing token or a clone that nobody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..dialects.diagnostics import UNKNOWN, Refusal, position_of
from ..dialects.every import every_operation
from .anatomy import functions_of, name_of, public_functions
from .collectives import shared_channels
from .first_difference import AFTER, BEFORE, describe, first_difference
from .foreign import registered_pure
from .identity import proof_of_identity, same_text, size
from .loop_rules.numbering import WHILE, LoopNumbering
from .loop_rules.rules import Rules
from .proof import Proof
from .pure_operations import PURE_OPERATIONS
from .scope import Outcome
from .signature import signature, signature_difference
from .terms import Side, Terms
from .value_numbering import Numbering


def prove(
    before: ModuleOp,
    after: ModuleOp,
    *,
    pure: Collection[str] = PURE_OPERATIONS,
    also_pure: Collection[str] | None = None,
    one_source: bool = False,
    loops: bool = True,
) -> Proof:
    """Try to prove that `after` computes the same as `before`. Never raises for what a module holds; changes nothing.

    Both modules must verify. `pure`: names of the operations that are functions of their operands, attributes, regions.
    `also_pure`: those that the caller vouches for; what `recompute.interpreters.register_pure` was told if not given.
    `one_source`: `after` was made from `before`, so that a name in one of them stands for the same in the other, also
    where it names what lies outside of the module. `loops`: where tier 1 finds no proof, tier 2 tries (`loop_rules`).
    """
    declared = registered_pure() if also_pure is None else frozenset(also_pure)
    try:
        return _compare(before, after, pure, declared.difference(pure), loops)
    except Refusal as refusal:
        if one_source and same_text(before, after):
            return proof_of_identity(before)
        side = "before" if _module_of(refusal.operation) is before else "after"
        position = position_of(refusal.operation)
        at = "" if position == UNKNOWN else f" at {position}"
        return Proof(False, f"the program {side} cannot be compared{at}: {refusal.reason}")
    except RecursionError:
        return Proof(False, "regions, calls or attributes are nested too deeply to be compared")


def _compare(before: ModuleOp, after: ModuleOp, known: Collection[str], declared: frozenset[str], loops: bool) -> Proof:
    functions = frozenset(functions_of(before).keys() | functions_of(after).keys())
    terms, pure = Terms(functions), declared.union(known)
    first = _compared(
        terms, *(Numbering(module, side, terms, pure, declared) for module, side in _sides(before, after))
    )
    if first or not loops or not _has_loops(after):
        return first
    rules = Rules(Terms(functions))
    one, other = (LoopNumbering(module, side, rules, pure, declared) for module, side in _sides(before, after))
    second = _compared(rules.terms, one, other)
    # Where neither proves it, the first names operations, and the second terms of its own.
    return replace(second or first, tier=2)


def _sides(before: ModuleOp, after: ModuleOp) -> tuple[tuple[ModuleOp, Side], tuple[ModuleOp, Side]]:
    return (before, BEFORE), (after, AFTER)


def _has_loops(module: ModuleOp) -> bool:
    return any(name_of(op) == WHILE for op in every_operation(module))


def _compared(terms: Terms, one: Numbering, other: Numbering) -> Proof:
    before, after = one.module, other.module
    one.demand_bounded_size()
    other.demand_bounded_size()
    if (reason := signature_difference(signature(one), signature(other), terms)) is not None:
        return Proof(False, reason)
    public = public_functions(one.functions)
    if not public:
        raise Refusal(before, "there is no public function to compare")
    if shared_channels(after) - shared_channels(before):
        return Proof(False, "two collectives of the program after share a channel, and would take one for the other")
    results = 0
    for name in public:
        outcomes = one.function(name), other.function(name)
        for where, number, other_number in _values(name, *outcomes):
            if number != other_number:
                return _different(terms, where, number, other_number)
        if (reason := _lost(terms, name, *outcomes)) is not None:
            return Proof(False, reason)
        results += len(outcomes[0].results)
    if (number := one.top_level()) != (other_number := other.top_level()):
        return _different(terms, "the top level of the module", number, other_number)
    believed = tuple(sorted(one.believed | other.believed))
    return Proof(True, "", "", None, results, size(before), size(after), believed)


def _values(name: str, before: Outcome, after: Outcome) -> Iterator[tuple[str, int, int]]:
    """What must be equal: what it is, number before, number after."""
    for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
        yield f"result #{index} of @{name}", a, b
    yield f"the effects of @{name}", before.state, after.state


def _different(terms: Terms, where: str, before: int, after: int) -> Proof:
    difference = first_difference(terms, before, after)
    return Proof(False, f"{where} differs: {difference}", where, difference)


def _lost(terms: Terms, name: str, before: Outcome, after: Outcome) -> str | None:
    """What has to occur and does so in one of the programs only, or may fail and runs in the later one only."""
    sides: tuple[tuple[str, Side, frozenset[int]], ...] = (
        ("before", BEFORE, before.kept - after.kept),
        ("after", AFTER, after.kept - before.kept),
    )
    for word, side, only_here in sides:
        for number in sorted(only_here):
            return f"{describe(terms, side, number)} in @{name} is only in the program {word}, and may not be dropped"
    for number in sorted(after.risky - before.risky):
        return f"{describe(terms, AFTER, number)} in @{name} may fail, and runs in the program after only"
    return None


def _module_of(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None:
        op = parent
    return op
