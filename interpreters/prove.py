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

Trusted, and therefore kept small
---------------------------------
* The parser that built the two modules, and xDSL's attribute classes (`attribute_keys.py` says where their equality is
  replaced by a comparison of bits).
* `pure_operations.py`: each operation on that list is a deterministic function that always ends. Hence a call or a loop
  without effects may be removed, and with it an endless loop whose results nobody reads; an unstable `sort` is taken to
  break ties in the same way each time.
* What the caller vouches for, by `also_pure` or `register_pure`; a proof that makes use of it lists it (`believed`).
* These rules, each used in both programs alike:
  - `stablehlo.optimization_barrier` and `recompute.depend` give back their values, result i for value i; the token
    does not count. `recompute.segment` and `recompute.gradient` are the operations that they hold.
  - `func.call` is the body of the function named. Recursion is refused.
  - Attributes on one of these, or on a function called, stay around the values: losing a sharding is not proved.
  - Everything else that is not on the list is an ordered effect: what it does may depend on all effects before it. So
    effects keep their number and order, and what they return is equal only to itself. So is whatever takes or makes a
    memref, be it on the list or not, and whatever holds such an operation in a region.
  - Two regions are the same if they compute the same from their arguments and from the same captured values.
* What is compared besides: the attributes of the modules, every operation at the top level that is not a function, and
  of every public function name, type, argument attributes (donation: `tf.aliasing_output`, `jax.buffer_donor`;
  shardings), result attributes and all others. Empty dictionaries are as good as none.
* What is ignored: locations, names of SSA values, of private functions and of the module itself, private functions that
  nobody calls, and discardable attributes that start with `recompute.`.

Refused, because equal text would not mean equal content: several blocks, dense resources, attribute aliases in
unregistered attributes, symbols that name functions (other than `callee`), symbols inside of operations.

Equal programs that are not proved: operands of a commutative operation swapped, anything folded or simplified, a loop
with other carries, even dead ones (that needs rules for loops), `custom_call` and collectives cloned.

Not trusted and not used: the passes, their attributes, and every table of the packages rules, analysis, transforms.
What no proof can see, because the numbers do not change, is memory: a missing token or a clone that nobody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Operation

from ..dialects.diagnostics import Refusal, position_of
from .first_difference import AFTER, BEFORE, Difference, first_attribute, first_difference
from .foreign import registered_pure
from .pure_operations import PURE_OPERATIONS
from .terms import Attributes, Terms
from .value_numbering import Numbering, attributes_of, functions_of, position_attributes


@dataclass(frozen=True)
class Proof:
    """The verdict, the reason where there is no proof, and the sizes of what was compared.

    `where` names the result (`result #3 of @main`) and `difference` the path from it to the first difference, where
    the programs were comparable at all. `believed`: operations that are pure on the user's word alone.
    """

    proved: bool
    reason: str
    where: str = ""
    difference: Difference | None = None
    results: int = 0
    operations_before: int = 0
    operations_after: int = 0
    believed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.proved


def prove(
    before: ModuleOp,
    after: ModuleOp,
    *,
    pure: Collection[str] = PURE_OPERATIONS,
    also_pure: Collection[str] | None = None,
) -> Proof:
    """Try to prove that `after` computes the same as `before`. Never raises for what a module holds; changes nothing.

    Both modules must verify. `pure`: names of the operations that are functions of their operands, attributes, regions.
    `also_pure`: those that the caller vouches for; what `recompute.interpreters.register_pure` was told if not given.
    """
    declared = registered_pure() if also_pure is None else frozenset(also_pure)
    try:
        return _compare(before, after, pure, declared.difference(pure))
    except Refusal as refusal:
        side = "before" if _module_of(refusal.operation) is before else "after"
        position = position_of(refusal.operation)
        at = "" if position == "<unknown>" else f" at {position}"
        return Proof(False, f"the program {side} cannot be compared{at}: {refusal.reason}")
    except RecursionError:
        return Proof(False, "regions, calls or attributes are nested too deeply to be compared")


def _compare(before: ModuleOp, after: ModuleOp, known: Collection[str], declared: frozenset[str]) -> Proof:
    terms = Terms(frozenset(functions_of(before).keys() | functions_of(after).keys()))
    pure = declared.union(known)
    one = Numbering(before, BEFORE, terms, pure, declared)
    other = Numbering(after, AFTER, terms, pure, declared)
    if (reason := _signature_difference(_signature(one), _signature(other), terms)) is not None:
        return Proof(False, reason)
    results = 0
    for where, number, other_number in _values(one, other):
        if number != other_number:
            difference = first_difference(terms, number, other_number)
            return Proof(False, f"{where} differs: {difference}", where, difference)
        results += where.startswith("result")
    if not public_functions(one.functions):
        return Proof(False, "there is no public function to compare")
    believed = tuple(sorted(one.believed | other.believed))
    return Proof(True, "", "", None, results, _size(before), _size(after), believed)


def public_functions(functions: Mapping[str, Operation]) -> list[str]:
    """The names of the functions that can be called from outside."""
    private = StringAttr("private")
    return [name for name, op in functions.items() if attributes_of(op).get("sym_visibility") != private]


def _values(one: Numbering, other: Numbering) -> Iterator[tuple[str, int, int]]:
    """What must be equal: name, number before, number after."""
    for name in public_functions(one.functions):
        before, after = one.function(name), other.function(name)
        for index, (a, b) in enumerate(zip(before.results, after.results, strict=True)):
            yield f"result #{index} of @{name}", a, b
        yield f"the effects of @{name}", before.state, after.state
    yield "the top level of the module", one.top_level(), other.top_level()


def _signature(numbering: Numbering) -> dict[str, Attributes]:
    """What is promised to the outside: place -> attributes."""
    module = numbering.module
    of_module = {name: value for name, value in attributes_of(module).items() if name != "sym_name"}
    places = {"the module": numbering.attributes(module, of_module)}
    for name in public_functions(numbering.functions):
        function = numbering.functions[name]
        own = attributes_of(function)
        if own.get("sym_visibility") == StringAttr("public"):
            del own["sym_visibility"]
        type_ = own["function_type"]
        assert isinstance(type_, FunctionType), "verified: a function has a function type"
        arg_attrs = position_attributes(function, "arg_attrs", len(type_.inputs))
        res_attrs = position_attributes(function, "res_attrs", len(type_.outputs))
        own = {key: value for key, value in own.items() if key not in ("arg_attrs", "res_attrs")}
        places[f"@{name}"] = numbering.attributes(function, own)
        for what, each in (("argument", arg_attrs), ("result", res_attrs)):
            for index, attributes in enumerate(each):
                places[f"{what} #{index} of @{name}"] = numbering.attributes(function, attributes)
    return places


def _signature_difference(before: dict[str, Attributes], after: dict[str, Attributes], terms: Terms) -> str | None:
    for place in before | after:
        if place not in before or place not in after:
            return f"{place} is only in the program {'before' if place in before else 'after'}"
        if before[place] != after[place]:
            texts = first_attribute(terms, before[place], after[place])
            return f"{place} differs: before {texts[0]}, after {texts[1]}"
    return None


def _module_of(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def _size(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk()) - 1
