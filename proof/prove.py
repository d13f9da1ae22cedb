"""Structural proof that two programs compute the same results, bit for bit: tier 1 of `recompute-check`.

Both programs are numbered in one table of terms (`value_numbering.py`, `terms.py`). They are equal if every public
function returns the same terms, has the same effects in the same order, and has the same signature. The proof makes one
pass over each program, in linear time. It does not search, fold or reorder. "Not proved" does not mean "different".

The method is value numbering by hashing (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970), with
regions closed by lambda lifting (Johnsson, "Lambda lifting: transforming programs to recursive equations", 1985).

The meaning of a proof
----------------------
Every result is the same expression over the same arguments and constants, down to the order of operands. It therefore
has the same bits on every executor on which an operation is a function of its operands, attributes and regions.
Compilers that round two instances of one expression differently (fusion, FMA) are not covered.

What a term must contain
------------------------
A term contains every part of its operation: name, attributes, which of these are properties, result types, regions,
operands. `operation_parts.py` lists the parts, and a test compares the list with xDSL. Leaving out a part needs a rule
below, and each rule has a test of its own. A part that no rule covers, or that cannot be compared, raises `Refusal`.

Trusted, and therefore kept small
---------------------------------
* The parser that built the two modules, and xDSL's attribute classes (`attribute_keys.py` says where their equality is
  replaced by a comparison of bits).
* `pure_operations.py`: each operation on that list is a deterministic function. A call or loop without effects may be
  removed if its results are unused, even if the loop may not terminate. An unstable `sort` always breaks ties in the
  same way.
* `conditions.py`: the operations that it does not name are defined for all operands of static extents. Results that
  StableHLO calls implementation-defined are values: integers wrap around.
* Declarations of the caller, by `also_pure` or `register_pure`; a proof that relies on one lists it (`assumed_pure`).

The rules, applied to both programs alike
-----------------------------------------
* Equal pure operations are one term, wherever they stand. Operations with unused results do not count, nor do their
  attributes. A sharding constraint may be repeated, but it must occur (`PRESERVED`), on its operand and in its loop.
* An operation with a run-time condition (`conditions.py`: dynamic extents, an integer division, an index out of range,
  indices declared to be unique) may be removed, but the program after runs it only where the program before does. An
  operation that has run before, with the same operands, may run again.
* A loop that is not proved to count towards a bound (`termination.py`) is treated like an operation with a run-time
  condition. It also stays after the effects before it.
* The barriers `stablehlo.optimization_barrier` and `recompute.depend` return their operands, result i for operand i,
  with unchanged types. The token does not count.
* A value that is moved to the host and back (`memory_spaces.py`) is the original value, if that is known to be on the
  device.
* A mark, a custom call such as `recompute.save` (`dialects/mark_calls.py`) without further attributes, is its first
  operand.
* The groups `recompute.segment` and `recompute.gradient` are the operations that they contain.
* Collectives (`per_device.py`), outside all regions except bodies of `sdy.manual_computation`, are functions of their
  operands on the devices that take part, which run the same program. The channel is only a name, but the operations
  that share one in the program after, as a multiset, must share one in the program before. A function that is called
  twice counts twice, and `send` and similar operations count too. Inside branches and loops, collectives are effects.
* A `sdy.manual_computation` with no attributes but its axes and shardings is the computation of each device on the
  parts of its operands (`per_device.py`). A part of a whole that was assembled with the same sharding is the original
  part. A sharding that omits an axis is trusted: all devices along the axis hold the same value.
* Some operations equal simpler terms (`identities.py`), for static extents and without other attributes: consecutive
  reshapes are one, and so are consecutive transposes; `reduce_precision` to the format of its type and `convert` to its
  type are their operand; a splat constant that is broadcast, reshaped or transposed is the splat constant of the result
  type. The element of a tuple is the value from which the tuple was made, for all extents.
* A `func.call` is the body of its callee. Recursion is refused.
* A `stablehlo.composite` without regions is the body of its decomposition. Name, attributes and version do not count,
  but the proof reports the composites that only one program has.
* If a barrier, group, call or composite has attributes, or the callee, its arguments, results or return have some, its
  operands and results are those of one term with these attributes, each at its position (`transparent_ops.py`). So are
  the effects in between.
* A custom call without side effects is a function of its operands, and runs only where the program before runs it, if
  its target is listed in `pure_operations.py`, or declared pure by the caller or by the program before
  (`program_declarations.py`). All other custom calls are effects.
* Every operation that is not listed in `pure_operations.py`, and to which no rule above applies, is an ordered effect.
  It may depend on all effects before it, and the types of its operands count. Effects therefore keep their number and
  order, and their results equal only themselves. Every operation with a memref operand or result, or with such an
  operation in a region, is an effect, on the list or not.
* Two regions whose meaning is known (`COMPUTE_THEIR_REGIONS`) are equal if they compute the same from their arguments
  and the same captured values. Any other region is compared literally, as is the top level of the module: all its
  operations count, in their order, including barriers and dead operations.
* The device ids of `partition_id` are the same for all operations in one place: in bodies on the same devices, but not
  inside one and outside it.
* Inner modules (`inner_modules.py`) are programs of their own, compared pairwise, in order, with their attributes.
* The signatures of both programs must be equal (`signature.py`): the attributes of the modules; every operation at the
  top level that is not a function, except meshes to which nothing refers; and for every public function its name, type,
  argument attributes (donation: `tf.aliasing_output`, `jax.buffer_donor`; shardings), result attributes, all other
  attributes, and those of its return. Empty dictionaries equal absent ones.
* The following do not count: locations; names of SSA values, of private functions and of the module; the order of
  functions; private functions that are not called; discardable attributes that start with `recompute.`.
* A function that a consumer finds by its name (`dialects/reserved_names.py`) is compared like a public one, and each
  call of it is an effect.
* A sharding constraint that only the program after has equals its operand, but only if the caller asks for this
  assumption (`added_constraints`), and the proof reports it.
* A function result that is a tuple, without attributes, equals its elements (`signature.py`), but only if the caller
  asks for this assumption (`flattened_results`), and the proof reports it.
* Two files with identical bytes are equal, independently of their content. So are a module and one made from it, if
  their generic text is identical.

Refused otherwise, because equal text would not imply equal content: several blocks, dense resources, attribute aliases
in unregistered attributes, symbols that name functions (other than `callee` and `decomposition`), symbols inside
operations, functions without a body.

Some equal programs are not proved equal: with the operands of a commutative operation swapped, with anything folded or
simplified beyond the rules above, with cloned calls of unknown targets, or with collectives cloned inside branches
and loops.

Tier 2: rules for loops and conditionals
----------------------------------------
The rules above are tier 1. If they find no proof and there are loops or conditionals, `loop_rules/` tries again with
further rules.

* A result of a loop without attributes depends only on the carries from which it is computed, whatever else the loop
  carries. A read of a stack is the value that was stored there. The effects of a loop are one more carry, which yields
  the effects so far. A loop with attributes, or one that changes the type of a carry, is compared literally.
* Each result of a conditional without effects and attributes is a term over the condition and the results of the
  regions. Inside a region, the result of another conditional with the same condition is the result of its same region.
* Comparisons of loop counters that are decided by the counters' ranges are constants, and a select by such a constant
  is one of its operands.

Not trusted
-----------
* The passes, and the attributes that they write.
* Every table of the packages `rules`, `analysis` and `transforms`: the proof does not import them.

The proof does not cover memory, which does not change results: a missing token or an unused clone goes unnoticed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Operation

from ..support.diagnostics import UNKNOWN, Refusal, position_of
from ..support.operations import every_operation, name_of
from .declarations import registered_pure
from .first_difference import AFTER, BEFORE, Difference, describe, first_difference
from .inner_modules import prove_with_inner_modules
from .loop_difference import COUNT_DIFFERENTLY
from .loop_rules.numbering import BRANCHES, WHILE, LoopNumbering
from .loop_rules.rules import LoopRules
from .memory_spaces import names_a_memory
from .operation_parts import entry_functions, functions_of, public_functions, result_types
from .per_device import newly_shared
from .program_declarations import declarations_only_after, declared_repeatable
from .pure_operations import PURE_OPERATIONS, declared_target
from .risks import is_implied
from .scope import Exchange, FunctionTerms
from .signature import signature, signature_difference
from .terms import Terms, leaves
from .value_numbering import Numbering, NumberingOptions
from .verdict import Proof, proof_of_identity, same_text, size

FRAMES_PER_CALL, DEEPEST = 10, 200_000


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Assumptions that a proof may make.

    Attributes:
        pure: Names of the operations that are functions of their operands, attributes and regions.
        also_pure: Further names that the caller declares to be pure; None for the operations registered by
            `recompute.proof.register_pure`.
        one_source: Whether `after` was made from `before`, so that a name has the same meaning in both, even if it
            refers to content outside the module.
        loops: Whether to try tier 2 (`loop_rules`) if tier 1 finds no proof.
        added_constraints: Whether a sharding constraint that only `after` has, outside regions, counts as its
            operand; the proof reports their number.
        flattened_results: Whether a tuple that a function returns equals its elements; the proof reports their number.
        repeatable: Shell-style patterns of the targets of custom calls that the caller declares to be pure, like the
            targets of calls in `before` with the attribute `recompute.repeatable`. The attribute does not count in
            `after`.
    """

    pure: Collection[str] = PURE_OPERATIONS
    also_pure: Collection[str] | None = None
    one_source: bool = False
    loops: bool = True
    added_constraints: bool = False
    flattened_results: bool = False
    repeatable: Collection[str] = ()

    def declared_pure(self, before: ModuleOp) -> frozenset[str]:
        """Return the operations and call targets that are pure only because the caller or the original program declares
        them pure."""
        declared = registered_pure() if self.also_pure is None else frozenset(self.also_pure)
        return declared | {declared_target(target) for target in declared_repeatable(before, self.repeatable)}


DEFAULT = ProofOptions()


def prove(before: ModuleOp, after: ModuleOp, options: ProofOptions = DEFAULT) -> Proof:
    """Try to prove that `after` computes the same results as `before`. Neither module is changed.

    Args:
        before: The original program, which must verify.
        after: The transformed program, which must verify.
        options: Assumptions that the proof may make.

    Returns:
        The proof; false, with a reason, if there is none. No valid module raises an exception.
    """
    declared = options.declared_pure(before)

    def prove_one(before: ModuleOp, after: ModuleOp) -> Proof:
        return _prove_module(before, after, options, declared)

    proof = prove_with_inner_modules(before, after, prove_one)
    if proof:
        return proof
    ignored = declarations_only_after(before, after, options.repeatable, options.added_constraints)
    return replace(proof, reason="; ".join((proof.reason, *ignored)))


def _prove_module(before: ModuleOp, after: ModuleOp, options: ProofOptions, declared: frozenset[str]) -> Proof:
    """Prove two modules without inner modules. `declared`: see `ProofOptions.declared_pure`."""
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
    """Raise the recursion limit in proportion to the number of functions: a nested call takes several Python frames."""
    limit = sys.getrecursionlimit()
    functions = max(len(functions_of(module)) for module in modules)
    sys.setrecursionlimit(max(limit, min(FRAMES_PER_CALL * functions, DEEPEST)))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _compare(before: ModuleOp, after: ModuleOp, options: ProofOptions, declared: frozenset[str]) -> Proof:
    functions = frozenset(functions_of(before).keys() | functions_of(after).keys())
    terms = Terms(functions)
    assumed = NumberingOptions(declared.union(options.pure), declared)
    numbering_before = Numbering(before, BEFORE, terms, assumed)
    numbering_after = Numbering(after, AFTER, terms, _for_after(assumed, numbering_before, options))
    first = _Comparison(terms, numbering_before, numbering_after, options.flattened_results).prove()
    if first or not options.loops or not _has_loops(after):
        return _with_loops(first)
    rules = LoopRules(Terms(functions), names_a_memory(before) or names_a_memory(after))
    numbering_before = LoopNumbering(before, BEFORE, rules, assumed)
    numbering_after = LoopNumbering(after, AFTER, rules, _for_after(assumed, numbering_before, options))
    second = _Comparison(rules.terms, numbering_before, numbering_after, options.flattened_results).prove()
    return replace(second if second or second.difference is None else _clearer(_with_loops(first), second), tier=2)


def _clearer(first: Proof, second: Proof) -> Proof:
    """Return the clearer explanation of the failures in tier 1 and tier 2.

    The first one names operations, unless it ends at two loops: these may differ in stacks that recomputation removes.
    The second one may name an operation inside of a loop. It is also preferred if tier 2 proves that the value of the
    first explanation is equal."""
    if first.difference is None or second.difference is None or COUNT_DIFFERENTLY in first.difference.loops:
        return first
    return second if second.where != first.where or (first.difference.loops and second.difference.is_named) else first


def _for_after(assumed: NumberingOptions, before: Numbering, options: ProofOptions) -> NumberingOptions:
    """Return the assumptions for the program after: constraints that the numbered program before lacks may count."""
    return replace(assumed, constraints_before=before.constraints) if options.added_constraints else assumed


def _has_loops(module: ModuleOp) -> bool:
    """Return whether the module has a loop or conditional to which the rules of tier 2 apply."""
    return any(name_of(op) == WHILE or name_of(op) in BRANCHES for op in every_operation(module))


@dataclass(frozen=True)
class _Comparison:
    """A comparison of two numbered programs.

    Attributes:
        terms: The terms of both.
        before, after: The programs.
        flattened_results: As in `ProofOptions`.
    """

    terms: Terms
    before: Numbering
    after: Numbering
    flattened_results: bool

    def prove(self) -> Proof:
        """Compare the signature, results and effects of each entry function, the channels, and all other parts of the
        modules.

        Returns:
            The proof, or the first difference.
        """
        self.before.demand_bounded_size()
        self.after.demand_bounded_size()
        first, second = (signature(side, self.flattened_results) for side in (self.before, self.after))
        if (reason := signature_difference(first, second, self.terms)) is not None:
            return Proof(False, reason)
        public = public_functions(self.before.functions)
        if not public:
            raise Refusal(self.before.module, "there is no public function to compare")
        results, exchanges = 0, (list[Exchange](), list[Exchange]())
        for name in entry_functions(self.before.functions):
            outcomes = self._outcomes(name)
            if (difference := self._function_difference(name, *outcomes)) is not None:
                return difference
            for side, outcome in zip(exchanges, outcomes, strict=True):
                side.extend(outcome.exchanges)
            results += len(outcomes[0].results) if name in public else 0
        # A difference is a `Proof`, which is false.
        difference = self._module_difference(*exchanges)
        return self._proof(results) if difference is None else difference

    def _outcomes(self, name: str) -> tuple[FunctionTerms, FunctionTerms]:
        """Return the terms of a function, before and after."""
        before = self.before.function(name)
        after = self.after.function(name)
        if not self.flattened_results:
            return before, after
        return (
            _flatten_tuples(self.terms, self.before.functions[name], before),
            _flatten_tuples(self.terms, self.after.functions[name], after),
        )

    def _function_difference(self, name: str, before: FunctionTerms, after: FunctionTerms) -> Proof | None:
        """Return the first difference between the results, effects and preserved operations of a function; None if
        there is none."""
        for where, number, other_number in _values(name, before, after):
            if number != other_number:
                return _different(self.terms, where, number, other_number)
        reason = _why_not_preserved(self.after, self.terms, name, before, after)
        return None if reason is None else Proof(False, reason)

    def _module_difference(self, before: Sequence[Exchange], after: Sequence[Exchange]) -> Proof | None:
        """Return the first difference outside single functions, in channels and at the top level; None if there is
        none."""
        if (channel := newly_shared(before, after)) is not None:
            why = f"operations that share channel {channel} in the program after did not share a channel before"
            return Proof(False, why)
        number = self.before.top_level(self.after.module)
        other_number = self.after.top_level(self.before.module)
        if number != other_number:
            return _different(self.terms, "the top level of the module", number, other_number)
        return None

    def _proof(self, results: int) -> Proof:
        """Return the proof, with the assumptions that it relies on. `results`: the number of compared results."""
        before, after = self.before, self.after
        tuples = abs(_tuples(before.module) - _tuples(after.module)) if self.flattened_results else 0
        return Proof(
            True,
            "",
            results=results,
            operations_before=size(before.module),
            operations_after=size(after.module),
            assumed_pure=tuple(sorted(before.assumed_pure | after.assumed_pure)),
            added_constraints=len(after.added_constraints),
            flattened_results=tuples,
            composites=tuple(sorted({name for name, _ in before.composites ^ after.composites})),
        )


def _flatten_tuples(terms: Terms, function: Operation, outcome: FunctionTerms) -> FunctionTerms:
    """Return the terms of a function, with each result that is a tuple replaced by its elements."""
    pairs = zip(outcome.results, result_types(function), strict=True)
    return outcome._replace(results=tuple(leaf for number, type_ in pairs for leaf in leaves(terms, number, type_)))


def _tuples(module: ModuleOp) -> int:
    """Return the number of results of public functions that are tuples."""
    functions = functions_of(module)
    types = [type_ for name in public_functions(functions) for type_ in result_types(functions[name])]
    return sum(isinstance(type_, TupleType) for type_ in types)


def _values(name: str, before: FunctionTerms, after: FunctionTerms) -> Iterator[tuple[str, int, int]]:
    """Yield the pairs of terms that must be equal, as (label, term before, term after)."""
    for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
        yield f"result #{index} of @{name}", a, b
    yield f"the effects of @{name}", before.state, after.state


def _different(terms: Terms, where: str, before: int, after: int) -> Proof:
    return _of_difference(where, first_difference(terms, before, after))


def _of_difference(where: str, difference: Difference) -> Proof:
    return Proof(False, f"{where} differs: {difference}", where, difference)


def _with_loops(proof: Proof) -> Proof:
    """Add a description of the difference between the two loops at which a failed proof ends."""
    return proof if proof.difference is None else _of_difference(proof.where, proof.difference.with_loops())


def _why_not_preserved(
    numbering: Numbering, terms: Terms, name: str, before: FunctionTerms, after: FunctionTerms
) -> str | None:
    """Describe an operation that must be preserved but is in one program only, or may fail and runs only in the program
    after; return None if there is none."""
    only = "in @{} occurs only in the program {}; it must not be {}"
    for number in sorted(before.preserved - after.preserved):
        if not numbering.is_covered(number, after.preserved):
            return f"{describe(terms, BEFORE, number)} {only.format(name, 'before', 'dropped')}"
    for number in sorted(after.preserved - before.preserved):
        if not numbering.occurs(number, before.preserved):
            return f"{describe(terms, AFTER, number)} {only.format(name, 'after', 'added')}"
    for number in sorted(after.risks - before.risks):
        if not (is_implied(terms, number, before.risks) or numbering.occurs(number, before.risks)):
            verb = "may not end" if terms.head_of(number).kind == "endless" else "may fail"
            return f"{describe(terms, AFTER, number)} in @{name} {verb}, and runs only in the program after"
    return None
