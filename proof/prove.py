"""Structural proof that two programs compute the same results, bit for bit: tier 1 of `recompute-check`.

The proof translates both programs to terms in one table (`value_numbering.py`, `terms.py`). They are equal if every
public function returns the same terms, has the same effects in the same order, and has the same signature. The proof
makes one pass over each program, in linear time. It does not search for rewrites, fold constants or reorder operations.
"Not proved" does not mean "different".

The method is value numbering by hashing (Cocke and Schwartz, "Programming Languages and Their Compilers", 1970), with
regions closed by lambda lifting (Johnsson, "Lambda lifting: transforming programs to recursive equations", 1985).

The meaning of a proof
----------------------
Every result is the same expression, with the same order of operands, over the same arguments and constants. It
therefore has the same bits on every executor on which an operation is a function of its operands, attributes and
regions. The proof does not cover compilers that round two instances of an expression differently, for example because
of fusion or FMA.

What a term must contain
------------------------
A term contains every part of its operation: name, attributes, which of these are properties, result types, regions,
operands. `operation_parts.py` lists the parts, and a test compares the list with xDSL. A part may be left out only if a
rule below allows it, and each rule has a test. A part that cannot be compared, and that no rule covers, raises
`Refusal`.

Trusted code and declarations
-----------------------------
* The parser that built the two modules, xDSL's attribute classes, and the content of resources that the parser stores
  in xDSL's builtin dialect. `attribute_keys.py` says where it compares bits instead of using their equality.
* `pure_operations.py`: each operation in that list is a deterministic function. An unused call or loop without effects
  may be removed, even if the loop may not terminate. An unstable `sort` always breaks ties in the same way.
* `conditions.py`: operations that it does not name are defined for all operands with static extents.
  Implementation-defined behaviour of StableHLO is not a failure: integers wrap around.
* Declarations of purity by the caller, with `also_pure` or `register_pure`, and by the traits of operations of other
  projects (`pure_traits.py`). A proof that relies on one lists it (`assumed_pure`).

The rules, applied to both programs alike
-----------------------------------------
* Equal pure operations are one term, wherever they are. Unused operations and their attributes are ignored. The
  rewritten program may repeat a sharding constraint but must not drop it (`PRESERVED`) or move it out of its loop.
* An operation with a run-time condition (`conditions.py`: dynamic extents, an integer division, an index out of range,
  indices declared to be unique) may be removed, but the rewritten program may run it only where the original program
  does. An operation that has already run with the same operands may run again.
* A loop that is not proved to count towards a bound (`termination.py`) is treated like an operation with a run-time
  condition. In addition, it must stay after the effects that precede it.
* The barriers `stablehlo.optimization_barrier` and `recompute.depend` return their operands with unchanged types:
  result i is operand i. The token is ignored.
* A value that is moved to the host and back (`memory_spaces.py`) is the original value, if the original value is known
  to be on the device.
* A mark, a custom call such as `recompute.save` (`dialects/mark_calls.py`) without further attributes, is its first
  operand.
* The operations `recompute.segment` and `recompute.gradient` only group the operations inside them.
* Collectives (`per_device.py`) outside all regions, except bodies of `sdy.manual_computation`, are functions of their
  operands on the participating devices, which run the same program. The channel id is only a name, but operations that
  share a channel in the rewritten program must share one in the original program. These operations are compared as
  multisets: an operation in a function that is called twice is counted twice. `send` and similar operations are counted
  as well. Inside other regions, collectives are effects.
* An `sdy.manual_computation` without attributes other than its axes and shardings computes, on each device, on the
  parts of its operands (`per_device.py`). If a whole value is assembled from parts and divided again with the same
  sharding, the parts are the original ones. The proof trusts a sharding that omits an axis: all devices along the axis
  hold the same value.
* Some operations with static extents and no further attributes equal simpler terms (`identities.py`). Consecutive
  reshapes are one reshape, and consecutive transposes one transpose. A broadcast that only adds dimensions of extent 1
  is a reshape. `reduce_precision` to the format of its operand and `convert` to the type of its operand are that
  operand. A splat constant that is broadcast, reshaped or transposed is the splat constant of the result type. An
  element of a `tuple` operation is the corresponding operand, for all extents.
* A `func.call` equals the inlined body of its callee. Recursion is refused. If the callee has no body, the call is an
  effect that contains the name and all attributes of the declaration: the name refers to the same function in both
  programs.
* A `stablehlo.composite` without regions equals the inlined body of its decomposition. Its name, attributes and version
  are ignored, but the proof reports the composites that only one program has.
* If a barrier, group, call or composite has attributes, the values that pass through it are wrapped in terms that
  contain these attributes (`transparent_ops.py`). The same applies to attributes of the callee and of its arguments,
  results and return. The effects inside the operation are wrapped in the same way.
* A custom call without side effects is a function of its operands if `pure_operations.py` lists its target, or if the
  caller or the original program declares it pure (`program_declarations.py`). The rewritten program may run it only
  where the original program does. All other custom calls are effects.
* Every operation that is not listed in `pure_operations.py`, and to which no rule above applies, is an ordered effect.
  It may depend on all effects before it. Its operand types are compared as well. Both programs must therefore have the
  same effects in the same order, and the result of an effect equals no other term. Every operation with a memref
  operand or result, or with such an operation in a region, is an effect, even if it is listed.
* Two regions whose meaning is known (`COMPUTE_THEIR_REGIONS`) are equal if they compute the same results from their
  arguments and the same captured values. Any other region is compared literally, as is the top level of the module: all
  operations and their order must agree, including barriers and dead operations.
* Two `partition_id` operations are equal if both are in bodies on the same devices (`per_device.py`), or both are
  outside all such bodies.
* Inner modules (`inner_modules.py`) are programs of their own. They are compared pairwise, in order, with their
  attributes.
* The signatures of both programs must be equal (`signature.py`): the attributes of the modules; every operation at the
  top level that is not a function, except unused meshes; and for every public function its name, type, argument
  attributes (donation: `tf.aliasing_output`, `jax.buffer_donor`; shardings), result attributes, all other attributes,
  and the attributes of its return. An empty dictionary equals an absent one.
* The proof ignores locations; names of SSA values, of private functions and of the module; the order of functions;
  private functions that are not called; discardable attributes that start with `recompute.`.
* A function with a reserved name, by which a consumer finds it (`dialects/reserved_names.py`), is compared like a
  public function, and each call to it is an effect.
* A sharding constraint that only the rewritten program has equals its operand, if the caller requests this assumption
  (`added_constraints`). The proof reports it.
* A function result that is a tuple without attributes equals its elements (`signature.py`), if the caller requests this
  assumption (`flattened_results`). The proof reports it.
* Two dense resources of one type with equal alignment and content are equal, whatever their names.
* Two files with identical bytes are equal, whatever they contain. A module and a module made from it are equal if their
  generic text is identical.

Unless the two texts are identical, the proof refuses programs in which equal text would not imply equal content. Such
programs contain regions of several blocks, dense resources without content, attribute aliases in unregistered
attributes, symbols that name functions (except `callee` and `decomposition`), symbols defined inside operations, or
composites of functions without a body.

The proof does not recognize programs as equal if one of them has the operands of a commutative operation swapped,
operations folded or simplified beyond the rules above, cloned calls to unknown targets, or collectives cloned inside
branches and loops.

Tier 2: rules for loops and conditionals
----------------------------------------
The rules above are tier 1. If tier 1 finds no proof and there are loops or conditionals, tier 2 (`loop_rules/`) applies
further rules.

* A result of a loop without attributes depends only on the carries from which it is computed; other carries are
  ignored. A read of a stack is the value that was stored there. The effects of a loop are an additional carry. A loop
  with attributes, or a loop that changes the type of a carry, is compared literally.
* Each result of a conditional without effects and attributes is a term over the condition and the results of the
  regions. Inside one of these regions, a result of another conditional with the same condition equals the result of the
  corresponding region of that conditional.
* A comparison of loop counters is a constant if the ranges of the counters decide it, and a select with such a constant
  is one of its operands.

Not trusted
-----------
* The passes and the attributes that they write.
* Every table of the packages `rules`, `analysis` and `transforms`: the proof does not import them.

The proof does not cover memory use: it does not notice a missing token or an unused clone.
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
from .expressions.block_requirements import is_declaration
from .expressions.memory_spaces import names_a_memory
from .expressions.terms import Terms, leaves
from .inner_modules import prove_with_inner_modules
from .loop_rules.numbering import BRANCHES, WHILE, LoopNumbering
from .loop_rules.rules import LoopRules
from .operations.declarations import registered_pure
from .operations.operation_parts import entry_functions, functions_of, public_functions, result_types
from .operations.program_declarations import declarations_only_after, declared_repeatable
from .operations.pure_operations import PURE_OPERATIONS, declared_target
from .signature import signature, signature_difference
from .translation.per_device import newly_shared
from .translation.risks import is_implied
from .translation.scope import Exchange, FunctionTerms
from .translation.value_numbering import Numbering, NumberingOptions
from .verdicts.first_difference import AFTER, BEFORE, Difference, describe, first_difference
from .verdicts.loop_difference import COUNT_DIFFERENTLY
from .verdicts.verdict import Proof, proof_of_identity, same_text, size

FRAMES_PER_CALL, DEEPEST = 10, 200_000


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Assumptions that a proof may make.

    Attributes:
        pure: Names of the operations that are functions of their operands, attributes and regions.
        also_pure: Further names that the caller declares to be pure; None for the operations registered by
            `recompute.proof.register_pure`.
        one_source: Whether `after` was made from `before`. A name then has the same meaning in both, even if it refers
            to content outside the module.
        loops: Whether to try tier 2 (`loop_rules`) if tier 1 finds no proof.
        added_constraints: Whether a sharding constraint outside regions that only `after` has equals its operand. The
            proof reports the number of such constraints.
        flattened_results: Whether a tuple that a function returns equals its elements. The proof reports the number of
            such tuples.
        repeatable: Shell-style patterns of the targets of custom calls that the caller declares to be pure, like the
            targets of calls in `before` with the attribute `recompute.repeatable`. The attribute is ignored in `after`.
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
        before: The original program. It must verify.
        after: The rewritten program. It must verify.
        options: Assumptions that the proof may make.

    Returns:
        The proof. If the programs are not proved equal, it is falsy and contains the reason. A valid module never
        causes an exception.
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
    """Prove that two modules without inner modules are equal. `declared`: see `ProofOptions.declared_pure`."""
    try:
        with _deep_calls(before, after):
            return _compare(before, after, options, declared.difference(options.pure))
    except Refusal as refusal:
        if options.one_source and same_text(before, after):
            return proof_of_identity(before)
        side = "original" if before.is_ancestor(refusal.operation) else "rewritten"
        position = position_of(refusal.operation)
        at = "" if position == UNKNOWN else f" at {position}"
        return Proof(False, f"the {side} program cannot be compared{at}: {refusal.reason}")
    except RecursionError:
        return Proof(False, "regions, calls or attributes are nested too deeply to be compared")


@contextmanager
def _deep_calls(*modules: ModuleOp) -> Generator[None]:
    """Raise the recursion limit in proportion to the number of functions, because each nested call takes several Python
    frames."""
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
    numbering_after = Numbering(after, AFTER, terms, _rewritten_assumptions(assumed, numbering_before, options))
    first = _Comparison(terms, numbering_before, numbering_after, options.flattened_results).prove()
    if first or not options.loops or not _has_loops(after):
        return _with_loops(first)
    rules = LoopRules(Terms(functions), names_a_memory(before) or names_a_memory(after))
    numbering_before = LoopNumbering(before, BEFORE, rules, assumed)
    numbering_after = LoopNumbering(after, AFTER, rules, _rewritten_assumptions(assumed, numbering_before, options))
    second = _Comparison(rules.terms, numbering_before, numbering_after, options.flattened_results).prove()
    return replace(second if second or second.difference is None else _clearer(_with_loops(first), second), tier=2)


def _clearer(first: Proof, second: Proof) -> Proof:
    """Return the failed proof with the clearer explanation: `first` (tier 1) or `second` (tier 2).

    The explanation of tier 1 names operations, so it is preferred, with two exceptions. If it ends at two loops, which
    may differ only in stacks that recomputation removes, the explanation of tier 2 may name an operation inside a loop.
    If tier 2 proves the equality of the value that differs in tier 1, the explanation of tier 2 is clearer.
    """
    if first.difference is None or second.difference is None or COUNT_DIFFERENTLY in first.difference.loops:
        return first
    return second if second.where != first.where or (first.difference.loops and second.difference.is_named) else first


def _rewritten_assumptions(assumed: NumberingOptions, before: Numbering, options: ProofOptions) -> NumberingOptions:
    """Return the assumptions for the rewritten program: `assumed`, and the constraints of the original program if added
    constraints are allowed."""
    return replace(assumed, constraints_before=before.constraints) if options.added_constraints else assumed


def _has_loops(module: ModuleOp) -> bool:
    """Return whether the module has a loop or conditional to which the rules of tier 2 apply."""
    return any(name_of(op) == WHILE or name_of(op) in BRANCHES for op in every_operation(module))


@dataclass(frozen=True)
class _Comparison:
    """Comparison of two programs that are translated to terms.

    Attributes:
        terms: The table of terms of both programs.
        before, after: The value numberings of the two programs.
        flattened_results: As in `ProofOptions`.
    """

    terms: Terms
    before: Numbering
    after: Numbering
    flattened_results: bool

    def prove(self) -> Proof:
        """Compare the signatures, the results and effects of each entry function, the channels, and the top level of
        the modules.

        Returns:
            The proof, or the first difference.
        """
        self.before.calls.demand_bounded_size(self.before.module)
        self.after.calls.demand_bounded_size(self.after.module)
        first, second = (signature(side, self.flattened_results) for side in (self.before, self.after))
        if (reason := signature_difference(first, second, self.terms)) is not None:
            return Proof(False, reason)
        functions = self.before.functions
        # The signatures already compare declarations.
        public = [name for name in public_functions(functions) if not is_declaration(functions[name])]
        if not public:
            raise Refusal(self.before.module, "the program has no public function to compare")
        results, exchanges = 0, (list[Exchange](), list[Exchange]())
        for name in entry_functions(functions):
            if is_declaration(functions[name]):
                continue
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
        """Return the terms of a function in the original and in the rewritten program."""
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
        for where, number, other_number in _compared_pairs(name, before, after):
            if number != other_number:
                return _failed_proof(self.terms, where, number, other_number)
        reason = _why_not_preserved(self.after, self.terms, name, before, after)
        return None if reason is None else Proof(False, reason)

    def _module_difference(self, before: Sequence[Exchange], after: Sequence[Exchange]) -> Proof | None:
        """Return the first difference in channels or at the top level of the modules; None if there is none."""
        if (channel := newly_shared(before, after)) is not None:
            operations = f"operations that share channel {channel} in the rewritten program"
            return Proof(False, f"{operations} do not share a channel in the original program")
        number = self.before.top_level(self.after.module)
        other_number = self.after.top_level(self.before.module)
        if number != other_number:
            return _failed_proof(self.terms, "the top level of the module", number, other_number)
        return None

    def _proof(self, results: int) -> Proof:
        """Return the proof, with the assumptions that it relies on. `results`: the number of compared results."""
        before, after = self.before, self.after
        tuples = abs(_tuple_results(before.module) - _tuple_results(after.module)) if self.flattened_results else 0
        return Proof(
            True,
            "",
            results=results,
            operations_before=size(before.module),
            operations_after=size(after.module),
            assumed_pure=tuple(sorted(before.effects.assumed_pure | after.effects.assumed_pure)),
            added_constraints=len(after.added_constraints),
            flattened_results=tuples,
            composites=tuple(sorted({name for name, _ in before.calls.composites ^ after.calls.composites})),
        )


def _flatten_tuples(terms: Terms, function: Operation, outcome: FunctionTerms) -> FunctionTerms:
    """Replace each tuple among the results of a function with the elements of the tuple."""
    pairs = zip(outcome.results, result_types(function), strict=True)
    return outcome._replace(results=tuple(leaf for number, type_ in pairs for leaf in leaves(terms, number, type_)))


def _tuple_results(module: ModuleOp) -> int:
    """Return the number of tuple results of public functions."""
    functions = functions_of(module)
    types = [type_ for name in public_functions(functions) for type_ in result_types(functions[name])]
    return sum(isinstance(type_, TupleType) for type_ in types)


def _compared_pairs(name: str, before: FunctionTerms, after: FunctionTerms) -> Iterator[tuple[str, int, int]]:
    """Yield the pairs of terms that must be equal, as (label, original term, rewritten term)."""
    for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
        yield f"result #{index} of @{name}", a, b
    yield f"the effects of @{name}", before.state, after.state


def _failed_proof(terms: Terms, where: str, before: int, after: int) -> Proof:
    return _proof_of_difference(where, first_difference(terms, before, after))


def _proof_of_difference(where: str, difference: Difference) -> Proof:
    return Proof(False, f"{where} differs: {difference}", where, difference)


def _with_loops(proof: Proof) -> Proof:
    """Return the proof, with a description of the difference between two loops if it failed at them."""
    return proof if proof.difference is None else _proof_of_difference(proof.where, proof.difference.with_loops())


def _why_not_preserved(
    numbering: Numbering, terms: Terms, name: str, before: FunctionTerms, after: FunctionTerms
) -> str | None:
    """Return a message about an operation that must be preserved but is in one program only, or that may fail and runs
    only in the rewritten program. Return None if there is no such operation."""
    only = "in @{} occurs only in the {} program; it must not be {}"
    for number in sorted(before.preserved - after.preserved):
        if not numbering.is_covered(number, after.preserved):
            return f"{describe(terms, BEFORE, number)} {only.format(name, 'original', 'dropped')}"
    for number in sorted(after.preserved - before.preserved):
        if not numbering.occurs(number, before.preserved):
            return f"{describe(terms, AFTER, number)} {only.format(name, 'rewritten', 'added')}"
    for number in sorted(after.risks - before.risks):
        if not (is_implied(terms, number, before.risks) or numbering.occurs(number, before.risks)):
            verb = "may not terminate" if terms.head_of(number).kind == "endless" else "may fail"
            return f"{describe(terms, AFTER, number)} in @{name} {verb} and runs only in the rewritten program"
    return None
