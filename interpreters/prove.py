"""A proof that two programs compute the same numbers, bit for bit, by structure: tier 1 of `recompute-check`.

Both programs are numbered in one table of terms (`value_numbering.py`, `terms.py`). They are equal if every public
function returns the same terms, causes the same effects in the same order, and has the same signature. One pass over
each program, linear time; nothing is searched, folded or reordered. "Not proved" means unproved, never wrong.

The method is value numbering by hashing (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970), with
regions closed by lambda lifting (Johnsson, "Lambda lifting: transforming programs to recursive equations", 1985).

What a proof means
------------------
Every result is the same expression over the same arguments and constants, down to the order of operands. So it has the
same bits on every executor on which an operation is a function of its operands, attributes and regions. It does
not cover compilers that round two instances of one expression differently (fusion, FMA).

What a term must contain
------------------------
Every part of the operation that it stands for; `operation_parts.py` lists them all, and a test compares the list with
xDSL. So name, attributes, which of them are properties, types of the results, regions, operands. Leaving out a part
needs a rule below, and each rule has a test of its own. A part that no rule covers, or that cannot be compared, is a
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
* Declarations of the caller, by `also_pure` or `register_pure`; a proof that relies on one lists it (`believed`).

The rules, each used in both programs alike
-------------------------------------------
* Pure operations: equal ones are one, wherever they stand; those whose results are not read do not count, nor do their
  attributes. A sharding constraint may be repeated, but it must occur (`KEPT`), on its operand and in its loop.
* Failure (`conditions.py`): an operation with a run-time condition (dynamic extents, an integer division, an index out
  of range, indices declared to be unique) may be removed, but the program after runs it only where the program before
  does (`conditions.py`). What ran before, with the same operands, may run again.
* Termination: the same for a loop that is not proved to count towards a bound; it also stays after the effects
  before it.
* Barriers: `stablehlo.optimization_barrier` and `recompute.depend` return their values, result i for value i, of the
  same types; the token does not count.
* Memory spaces (`memory_spaces.py`): a value that is moved to the host and back is the original value, if it is known
  to have been on the device.
* Marks: a custom call `recompute.save` and its like (`dialects/mark_calls.py`), with nothing else on it, is its first
  operand.
* Groups: `recompute.segment` and `recompute.gradient` are the operations that they hold.
* Collectives (`per_device.py`), outside of every region but the bodies of `sdy.manual_computation`: functions of their
  operands on the device where they are and on all others, which run the same program. The channel is a name, but
  the operations that share one in the program after, as a multiset, shared one before; a function that is called twice
  counts twice, and `send` and its like count too. Inside of branches and loops they are effects.
* On each device: a `sdy.manual_computation` with no attributes but its axes and shardings is the computation of each
  device on the parts of its operands (`per_device.py`): a part of a whole that was assembled with the same sharding is
  the original part. A sharding that leaves out an axis is trusted: all devices along it hold the same value.
* Identities (`identities.py`), for static extents and without other attributes: consecutive reshapes are one, and so
  are transposes; `reduce_precision` to the format of its type, and `convert` to its type, are their operand; a splat
  constant that is broadcast, reshaped or transposed is the splat constant of that type. The element of a tuple is the
  value that the tuple was made of, for all extents.
* Calls: `func.call` is the body of the function named. Recursion is refused.
* Composites: `stablehlo.composite` without regions is the body of its decomposition; name, attributes and version do
  not count, but the composites that only one program has are reported with the proof.
* Attributes of one of these, of the callee, its arguments, results or return: operands and results are those of one
  term with these attributes, each at its position (`transparent_ops.py`), and so are the effects between.
* Custom calls (`pure_operations.py`): those without side effects, of targets on a list of its own or declared by the
  user, are functions of their operands, which run only where the program before runs them; all others are effects.
* Effects: every other operation that is not on the list is an ordered effect: it may depend on all effects before it,
  and the types of its operands count. So effects keep their number and order, and their results are equal only to
  themselves. So is every operation with a memref operand or result, on the list or not, and every operation that holds
  one in a region.
* Regions: if the meaning of a region is known (`COMPUTE_THEIR_REGIONS`), two are equal if they compute the same from
  their arguments and from the same captured values. Any other region is compared literally: all of its operations
  count, in their order, barriers and dead operations too. So is the top level of the module.
* Which device runs (`partition_id`) is the same for all in one place: in bodies on the same devices, but not in one of
  them and outside of it.
* Inner modules (`nested_modules.py`) are programs of their own, compared in pairs, in order, with their attributes.
* Signature: the attributes of the modules; every operation at the top level that is not a function, except meshes
  that nothing refers to; and of every public function name, type, argument attributes (donation:
  `tf.aliasing_output`, `jax.buffer_donor`; shardings), result attributes, all others and those of its return. Empty
  dictionaries equal absent ones.
* Names: locations, names of SSA values, of private functions and of the module itself, the order of functions, private
  functions that are not called, and discardable attributes that start with `recompute.` do not count.
* Reserved names (`dialects/reserved_names.py`): a function that a consumer finds by its name is compared like a public
  one, and each call of it is an effect.
* Assumption, only on request of the caller (`added_constraints`) and reported with the proof: a sharding constraint
  that only the program after has is its operand.
* Assumption, only on request of the caller (`flattened_results`) and reported with the proof: a result of a function
  that is a tuple, without attributes, is its elements (`signature.py`).
* Identical text: two files with identical bytes are equal, whatever they hold; so are a module and one made from it, if
  their generic text is identical.

Refused otherwise, because equal text would not imply equal content: several blocks, dense resources, attribute aliases
in unregistered attributes, symbols that name functions (other than `callee` and `decomposition`), symbols inside of
operations, functions without a body.

Equal programs that are not proved: operands of a commutative operation swapped, anything folded or simplified except by
the rules above, calls of unknown targets cloned, and collectives cloned inside of branches and loops.

Tier 2 (`loop_rules/`) runs if tier 1 finds no proof and there are loops or conditionals. A result of a loop without
attributes depends only on the carries that it is computed from, whatever else the loop carries. A read of a stack is
the value that was stored there. The effects of a loop are one more carry, which yields the effects so far. A loop with
attributes, or that changes the type of a carry, is compared literally. Each result of a conditional without effects and
attributes is a term over its condition and the results of its regions; in a region, the result of another conditional
with the same condition is the result of the same region there. Comparisons of loop counters whose ranges decide them
are constants, and so are selects by such a constant.

Not trusted and not used: the passes, their attributes, and every table of the packages rules, analysis, transforms. No
proof covers memory, since it does not change the numbers: a missing token, or a clone without uses.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Operation

from ..dialects.names import Names
from ..support.diagnostics import UNKNOWN, Refusal, position_of
from ..support.operations import every_operation
from .conditions import is_implied
from .first_difference import AFTER, BEFORE, describe, first_difference
from .loop_rules.numbering import BRANCHES, WHILE, LoopNumbering
from .loop_rules.rules import LoopRules
from .memory_spaces import names_a_memory
from .nested_modules import prove_with_inner_modules
from .operation_parts import entry_functions, functions_of, name_of, public_functions, result_types
from .per_device import newly_shared
from .proof import Proof, proof_of_identity, same_text, size
from .pure_operations import PURE_OPERATIONS, declared_target, target_of
from .scope import Exchange, FunctionTerms
from .signature import signature, signature_difference
from .terms import ENDLESS, Terms, leaves
from .user_kernels import registered_pure
from .value_numbering import Numbering

FRAMES_PER_CALL, DEEPEST = 10, 200_000


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """The assumptions that a proof may make.

    Attributes:
        pure: Names of the operations that are functions of their operands, attributes and regions.
        also_pure: Further ones that the caller declares to be pure; None for those of
            `recompute.interpreters.register_pure`.
        one_source: Whether `after` was made from `before`, so that a name has the same meaning in both, even if it
            refers to content outside of the module.
        loops: Whether tier 2 is tried if tier 1 finds no proof (`loop_rules`).
        added_constraints: Whether a sharding constraint that only the program after has, outside of regions, is treated
            as its operand; the proof counts them.
        flattened_results: Whether the elements of a tuple that a function returns are taken for the tuple; the proof
            counts them.
        repeatable: Targets of custom calls that the caller declares to be pure, as a call in `before` does for its
            target by the attribute `recompute.repeatable`.
    """

    pure: Collection[str] = PURE_OPERATIONS
    also_pure: Collection[str] | None = None
    one_source: bool = False
    loops: bool = True
    added_constraints: bool = False
    flattened_results: bool = False
    repeatable: Collection[str] = ()

    def declared(self, before: ModuleOp) -> frozenset[str]:
        """Return the operations and targets that are pure because the caller or the program before says so."""
        declared = registered_pure() if self.also_pure is None else frozenset(self.also_pure)
        return declared | {declared_target(target) for target in (*self.repeatable, *_stated_repeatable(before))}


DEFAULT = ProofOptions()


def prove(before: ModuleOp, after: ModuleOp, options: ProofOptions = DEFAULT) -> Proof:
    """Try to prove that `after` computes the same as `before`. Never raises for any valid module; changes nothing.

    Both modules must verify.
    """
    declared = options.declared(before)

    def prove_one(before: ModuleOp, after: ModuleOp) -> Proof:
        return _prove_module(before, after, options, declared)

    return prove_with_inner_modules(before, after, prove_one)


def _prove_module(before: ModuleOp, after: ModuleOp, options: ProofOptions, declared: frozenset[str]) -> Proof:
    """Return the proof for modules without inner modules; `declared`: see `ProofOptions.declared`."""
    try:
        with _deep_calls(before, after):
            return _compare(before, after, options, declared.difference(options.pure))
    except Refusal as refusal:
        if options.one_source and same_text(before, after):
            return proof_of_identity(before)
        side = "before" if before.is_ancestor(refusal.operation) else "after"
        position = position_of(refusal.operation)
        at = "" if position == UNKNOWN else f" at {position}"
        return Proof(False, f"the program {side} cannot be compared{at}: {refusal.reason}")
    except RecursionError:
        return Proof(False, "regions, calls or attributes are nested too deeply to be compared")


@contextmanager
def _deep_calls(*modules: ModuleOp) -> Generator[None]:
    """Raise the recursion limit for calls nested as deep as there are functions; a level takes a few Python frames."""
    limit = sys.getrecursionlimit()
    functions = max(len(functions_of(module)) for module in modules)
    sys.setrecursionlimit(max(limit, min(FRAMES_PER_CALL * functions, DEEPEST)))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _compare(before: ModuleOp, after: ModuleOp, options: ProofOptions, declared: frozenset[str]) -> Proof:
    functions = frozenset(functions_of(before).keys() | functions_of(after).keys())
    terms, pure = Terms(functions), declared.union(options.pure)
    numbering_before = Numbering(before, BEFORE, terms, pure, declared)
    numbering_after = Numbering(
        after, AFTER, terms, pure, declared, numbering_before.constraints if options.added_constraints else None
    )
    first = _compared(terms, numbering_before, numbering_after, options.flattened_results)
    if first or not options.loops or not _has_loops(after):
        return first
    rules = LoopRules(Terms(functions), names_a_memory(before) or names_a_memory(after))
    numbering_before = LoopNumbering(before, BEFORE, rules, pure, declared)
    numbering_after = LoopNumbering(
        after, AFTER, rules, pure, declared, numbering_before.constraints if options.added_constraints else None
    )
    second = _compared(rules.terms, numbering_before, numbering_after, options.flattened_results)
    # Prefer the first explanation: it names operations, the second one terms of tier 2.
    return replace(second if second or second.difference is None else first, tier=2)


def _stated_repeatable(module: ModuleOp) -> Iterator[str]:
    """Yield the targets of custom calls that the program itself declares to be repeatable."""
    for op in every_operation(module):
        if Names.REPEATABLE in op.attributes and (target := target_of(op)) is not None:
            yield target


def _has_loops(module: ModuleOp) -> bool:
    """Return whether the rules of tier 2 apply to any operation."""
    return any(name_of(op) == WHILE or name_of(op) in BRANCHES for op in every_operation(module))


def _compared(terms: Terms, numbering_before: Numbering, numbering_after: Numbering, flattened_results: bool) -> Proof:
    before, after = numbering_before.module, numbering_after.module
    numbering_before.demand_bounded_size()
    numbering_after.demand_bounded_size()
    first, second = (signature(side, flattened_results) for side in (numbering_before, numbering_after))
    if (reason := signature_difference(first, second, terms)) is not None:
        return Proof(False, reason)
    public = public_functions(numbering_before.functions)
    if not public:
        raise Refusal(before, "there is no public function to compare")
    results, exchanges = 0, (list[Exchange](), list[Exchange]())
    for name in entry_functions(numbering_before.functions):
        outcomes = numbering_before.function(name), numbering_after.function(name)
        if flattened_results:
            outcomes = (
                _flattened(terms, numbering_before.functions[name], outcomes[0]),
                _flattened(terms, numbering_after.functions[name], outcomes[1]),
            )
        for side, outcome in zip(exchanges, outcomes, strict=True):
            side.extend(outcome.exchanges)
        for where, number, other_number in _values(name, *outcomes):
            if number != other_number:
                return _different(terms, where, number, other_number)
        if (reason := _lost(numbering_after, terms, name, *outcomes)) is not None:
            return Proof(False, reason)
        results += len(outcomes[0].results) if name in public else 0
    if (channel := newly_shared(*exchanges)) is not None:
        return Proof(False, f"operations of the program after share a channel, {channel}, and did not share one before")
    if (number := numbering_before.top_level(after)) != (other_number := numbering_after.top_level(before)):
        return _different(terms, "the top level of the module", number, other_number)
    believed = tuple(sorted(numbering_before.believed | numbering_after.believed))
    composites = numbering_before.composites ^ numbering_after.composites
    return Proof(
        True,
        "",
        "",
        None,
        results,
        size(before),
        size(after),
        believed,
        added_constraints=len(numbering_after.added_constraints),
        flattened_results=abs(_tuples(before) - _tuples(after)) if flattened_results else 0,
        composites=tuple(sorted({name for name, _ in composites})),
    )


def _flattened(terms: Terms, function: Operation, outcome: FunctionTerms) -> FunctionTerms:
    """Return the outcome of a function, with the elements of results that are tuples."""
    pairs = zip(outcome.results, result_types(function), strict=True)
    return outcome._replace(results=tuple(leaf for number, type_ in pairs for leaf in leaves(terms, number, type_)))


def _tuples(module: ModuleOp) -> int:
    """Return the number of results of public functions that are tuples."""
    functions = functions_of(module)
    types = [type_ for name in public_functions(functions) for type_ in result_types(functions[name])]
    return sum(isinstance(type_, TupleType) for type_ in types)


def _values(name: str, before: FunctionTerms, after: FunctionTerms) -> Iterator[tuple[str, int, int]]:
    """Yield pairs of value numbers that must be equal: (label, number before, number after)."""
    for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
        yield f"result #{index} of @{name}", a, b
    yield f"the effects of @{name}", before.state, after.state


def _different(terms: Terms, where: str, before: int, after: int) -> Proof:
    difference = first_difference(terms, before, after)
    return Proof(False, f"{where} differs: {difference}", where, difference)


def _lost(numbering: Numbering, terms: Terms, name: str, before: FunctionTerms, after: FunctionTerms) -> str | None:
    """Describe an operation that must occur and is in one program only, or may fail and runs after only; else None."""
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
