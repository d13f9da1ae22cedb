"""Value numbering: turns the functions of a program into terms (see `terms.py`), one operation after the other.

    %2, %3 = stablehlo.optimization_barrier %0, %1      %2 is %0 and %3 is %1: the positional identity
    %4 = recompute.depend %0 after %t                   %4 is %0: the token orders, it computes nothing
    %5 = func.call @private(%0)                         what @private returns for %0: calls are inlined here

Goes by operation name, attributes, properties, operands and regions alone, so that registered and unregistered
operations are treated alike. What is not understood raises a `Refusal`; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnrankedMemRefType,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, Region, SSAValue
from xdsl.utils.hints import isa

from ..dialects.diagnostics import Refusal
from ..dialects.guards import is_tensor
from .attribute_keys import OpaqueAttributeError
from .terms import NO_BLOCK, Attributes, Head, Inside, Side, Terms

MAX_OPERATIONS = 5_000_000
"""More operations than this, with calls inlined, are refused: calls of calls can double at each level."""

TERMINATORS = frozenset(
    "func.return stablehlo.return recompute.yield scf.yield scf.condition linalg.yield tensor.yield".split()
)
OF_THE_REGION = frozenset({"linalg.index"})
"""They read which point of the loops around them runs: not the same in two regions, though nothing is an operand."""
WORDS = {"arg_attrs": "parameter", "res_attrs": "result"}
SIGNATURE = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})


def name_of(op: Operation) -> str:
    """The operation's name, also that of an unregistered operation."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def attributes_of(op: Operation) -> dict[str, Attribute]:
    """Properties and attributes together, without those of the passes, which no proof believes. Raises `Refusal`."""
    attributes = without_ours(op.attributes)
    if isinstance(op, UnregisteredOp):
        del attributes["op_name__"]
    if both := attributes.keys() & op.properties.keys():
        raise Refusal(op, f"{name_of(op)} has '{min(both)}' both as attribute and as property")
    return attributes | op.properties


def without_ours(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if not name.startswith("recompute.")}


def functions_of(module: ModuleOp) -> dict[str, Operation]:
    """The top-level functions by name. Raises `Refusal` for a function without a name or with one that is taken."""
    functions: dict[str, Operation] = {}
    for op in module.ops:
        if name_of(op) != "func.func":
            continue
        name = attributes_of(op).get("sym_name")
        if not isinstance(name, StringAttr) or name.data in functions:
            raise Refusal(op, "a function needs a name of its own")
        functions[name.data] = op
    return functions


def position_attributes(function: Operation, name: str, count: int) -> list[dict[str, Attribute]]:
    """`arg_attrs` or `res_attrs` as one dictionary for each position; absent and empty are the same."""
    value = attributes_of(function).get(name)
    if value is None:
        return [{} for _ in range(count)]
    if not isa(value, ArrayAttr[DictionaryAttr]) or len(value.data) != count:
        raise Refusal(function, f"'{name}' needs one dictionary for each of the {count} positions")
    return [without_ours(each.data) for each in value.data]


@dataclass
class Scope:
    """What is visible at a point: the values of this region, then those of the regions around it; and the state.

    `entry` stands for one execution of the region: it is the state at its start.
    """

    depth: int
    state: int
    entry: int
    around: Scope | None = None
    values: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def find(self, value: SSAValue) -> int | None:
        scope: Scope | None = self
        while scope is not None:
            if (number := scope.values.get(value)) is not None:
                return number
            scope = scope.around
        return None


class Outcome(NamedTuple):
    """The terms of what a function returns, and of the state when it returns."""

    results: tuple[int, ...]
    state: int


class Numbering:
    """Numbers the values of one program.

    `pure`: the names of the operations that have no effect. `declared`: those of them that only the user vouches for;
    `believed` are the ones that the program has.
    """

    def __init__(
        self, module: ModuleOp, side: Side, terms: Terms, pure: Collection[str], declared: Collection[str] = ()
    ):
        self.functions = functions_of(module)
        self.module = module
        self._terms = terms
        self._pure = pure
        self._declared = declared
        self.believed = set[str]()
        self._origins = terms.origins[side]
        self._insides = terms.insides[side]
        self._active_calls: list[str] = []
        self._visited = 0

    def function(self, name: str) -> Outcome:
        """Results and effects of a function for unknown arguments. Raises `Refusal`."""
        types = self.types(self._body(name).args, self.functions[name])
        start = self._terms.term(Head("state", f"start of @{name}"))
        scope = Scope(depth=0, state=start, entry=start)
        parameters = [
            self._terms.term(Head("parameter", f"{index} of @{name}", types=(type_,)))
            for index, type_ in enumerate(types)
        ]
        return self._run(name, parameters, scope)

    def top_level(self) -> int:
        """The state after everything at the top level that is not a function, taken as effects. Raises `Refusal`."""
        start = self._terms.term(Head("state", "start of the module"))
        scope = Scope(depth=0, state=start, entry=start)
        for op in self.module.ops:
            if name_of(op) != "func.func":
                self._operation(op, scope)
        return scope.state

    def attributes(self, op: Operation, attributes: Mapping[str, Attribute]) -> Attributes:
        """The attributes, numbered, in the order of their names. Raises `Refusal` where one cannot be compared."""
        try:
            return tuple((name, self._terms.attributes.number(attributes[name])) for name in sorted(attributes))
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has an attribute that cannot be compared: {error}") from None

    def types(self, values: Iterable[SSAValue], op: Operation) -> tuple[int, ...]:
        """The types of the values, numbered. Raises `Refusal` where one cannot be compared."""
        return self._type_numbers([value.type for value in values], op)

    def _type_numbers(self, types: Iterable[Attribute], op: Operation) -> tuple[int, ...]:
        try:
            return tuple([self._terms.attributes.number(type_) for type_ in types])
        except OpaqueAttributeError as error:
            raise Refusal(op, f"{name_of(op)} has a type that cannot be compared: {error}") from None

    def _operands(self, op: Operation, scope: Scope) -> tuple[int, ...]:
        numbers: list[int] = []
        for index, operand in enumerate(op.operands):
            if (number := scope.find(operand)) is None:
                raise Refusal(op, f"operand {index} of {name_of(op)} is used before its definition")
            numbers.append(number)
        return tuple(numbers)

    def _operation(self, op: Operation, scope: Scope) -> None:
        self._visited += 1
        if self._visited > MAX_OPERATIONS:
            raise Refusal(op, f"more than {MAX_OPERATIONS} operations once calls are inlined")
        if op.successors:
            raise Refusal(op, f"{name_of(op)} branches: only single blocks are compared")
        match name_of(op):
            case "stablehlo.optimization_barrier":
                results = self._identity(op, op.operands, scope)
            case "recompute.depend":
                results = self._identity(op, op.operands[:-1], scope)
            case "recompute.segment" | "recompute.gradient":
                results = self._group(op, scope)
            case "func.call":
                results = self._call(op, scope)
            case _:
                results = self._apply(op, scope)
        scope.values.update(zip(op.results, results, strict=True))

    def _identity(self, op: Operation, values: Sequence[SSAValue], scope: Scope) -> Sequence[int]:
        if op.regions or self.types(values, op) != self.types(op.results, op):
            raise Refusal(op, f"{name_of(op)} does not give back its values one by one, with the same types")
        numbers = self._operands(op, scope)[: len(values)]
        return [self._attributed("barrier", number, op, attributes_of(op)) for number in numbers]

    def _group(self, op: Operation, scope: Scope) -> Sequence[int]:
        """Operations grouped for the reader: they run where they stand."""
        block = _body_of(op)
        inner = Scope(scope.depth, scope.state, scope.entry, scope)
        _, numbers = self._block(block, inner)
        scope.state = inner.state
        yields = block.last_op is not None and name_of(block.last_op) == "recompute.yield"
        if not yields or block.args or op.operands or len(numbers) != len(op.results):
            raise Refusal(op, f"{name_of(op)} does not yield its results")
        return [self._attributed("group", number, op, attributes_of(op)) for number in numbers]

    def _apply(self, op: Operation, scope: Scope) -> Sequence[int]:
        name = name_of(op)
        attributes = attributes_of(op)
        nested_symbol = "sym_name" in attributes and op.parent_op() is not self.module
        if nested_symbol or name in ("builtin.module", "func.func"):
            raise Refusal(op, f"{name}: only symbols at the top level of the module are compared")
        operands = self._operands(op, scope)
        if name in OF_THE_REGION:
            parent = op.parent_op()
            if parent is None or not name_of(parent).startswith("linalg."):
                raise Refusal(op, f"{name} does not stand directly in the loops that it counts")
            operands = (scope.entry, *operands)
        regions = [self._region(op, region, scope) for region in op.regions]
        in_memory = any(_refers_to_memory(value.type) for value in (*op.operands, *op.results))
        effect = name not in self._pure or in_memory or any(inside and inside.has_effects for inside, _, _ in regions)
        if name in self._declared and not effect:
            self.believed.add(name)
        head = Head(
            "effect" if effect else "operation",
            name,
            self.attributes(op, attributes),
            self.types(op.results, op),
            tuple([body for _, body, _ in regions]),
        )
        for _, _, captures in regions:
            operands += captures
        term = self._terms.term(head, (scope.state, *operands) if effect else operands)
        if effect:
            scope.state = term
        self._origins.setdefault(term, op)
        if regions:
            self._insides.setdefault(term, tuple([inside for inside, _, _ in regions if inside]))
        if len(op.results) == 1:
            return (term,)
        return [self._terms.term(Head("result", str(index)), (term,)) for index in range(len(op.results))]

    def _region(self, op: Operation, region: Region, around: Scope) -> tuple[Inside | None, int, tuple[int, ...]]:
        """The region as terms, its body and its captures."""
        if not region.blocks:
            return None, self._terms.body(NO_BLOCK), ()
        block = _single_block(op, region)
        depth = around.depth + 1
        types = self.types(block.args, op)
        bound = [self._terms.bound("bound", (type_,), depth) for type_ in types]
        start = self._terms.bound("state", (), depth)
        scope = Scope(depth, start, start, around, dict(zip(block.args, bound, strict=True)))
        ending, results = self._block(block, scope)
        inside = Inside((*bound, start), (*results, scope.state))
        return inside, *self._terms.close(inside, types, ending, depth)

    def _block(self, block: Block, scope: Scope) -> tuple[int, tuple[int, ...]]:
        """Number a block. Returns the head of its terminator (-1: none that we know) and what the terminator reads."""
        last = block.last_op
        returns = last is not None and name_of(last) in TERMINATORS and not (last.results or last.regions)
        for op in block.ops:
            if not (returns and op is last):
                self._operation(op, scope)
        if last is None or not returns:
            return -1, ()
        head = Head("operation", name_of(last), self.attributes(last, attributes_of(last)))
        return self._terms.head(head), self._operands(last, scope)

    def _call(self, op: Operation, scope: Scope) -> Sequence[int]:
        attributes = attributes_of(op)
        callee = attributes.pop("callee", None)
        if not isinstance(callee, SymbolRefAttr) or callee.nested_references.data:
            raise Refusal(op, "func.call names no function at the top level")
        name = callee.root_reference.data
        if name not in self.functions:
            raise Refusal(op, f"func.call of @{name}, which does not exist")
        if name in self._active_calls:
            raise Refusal(op, f"@{name} calls itself: recursion is not compared")
        block = self._body(name)
        assert block.last_op is not None, "checked: a function ends with func.return"
        taken, returned = self.types(block.args, op), self.types(block.last_op.operands, op)
        if (self.types(op.operands, op), self.types(op.results, op)) != (taken, returned):
            raise Refusal(op, f"func.call of @{name} with operands or results that it does not have")
        function, called = self.functions[name], Scope(scope.depth, scope.state, scope.entry)
        arguments = self._with_attributes_of("arg_attrs", function, self._operands(op, scope))
        outcome = self._run(name, arguments, called)
        scope.state = outcome.state
        results = self._with_attributes_of("res_attrs", function, outcome.results)
        own = {key: value for key, value in attributes_of(function).items() if key not in SIGNATURE}
        results = [self._attributed("function", number, function, own) for number in results]
        return [self._attributed("call", number, op, attributes) for number in results]

    def _run(self, name: str, arguments: Sequence[int], scope: Scope) -> Outcome:
        """The function for these arguments, from the scope's state on."""
        block = self._body(name)
        scope.values.update(zip(block.args, arguments, strict=True))
        self._active_calls.append(name)
        _, results = self._block(block, scope)
        self._active_calls.pop()
        return Outcome(results, scope.state)

    def _with_attributes_of(self, name: str, function: Operation, numbers: Sequence[int]) -> Sequence[int]:
        """The values, each with the attributes that the function called gives its position."""
        extras = position_attributes(function, name, len(numbers))
        pairs = zip(numbers, extras, strict=True)
        return [self._attributed(WORDS[name], number, function, extra) for number, extra in pairs]

    def _body(self, name: str) -> Block:
        """The block of a function, which takes and returns what the function's type says."""
        function = self.functions[name]
        block = _body_of(function)
        type_, last = attributes_of(function).get("function_type"), block.last_op
        if (
            not isinstance(type_, FunctionType)
            or self.types(block.args, function) != self._type_numbers(type_.inputs, function)
            or last is None
            or name_of(last) != "func.return"
            or self.types(last.operands, last) != self._type_numbers(type_.outputs, function)
        ):
            raise Refusal(function, f"@{name} does not take and return what its type says")
        return block

    def _attributed(self, what: str, number: int, op: Operation, attributes: Mapping[str, Attribute]) -> int:
        """The value with attributes that are neither dropped nor understood: a term around it, if there are any."""
        if not attributes:
            return number
        return self._terms.term(Head("attributed", what, self.attributes(op, attributes)), (number,))


def _refers_to_memory(type_: Attribute) -> bool:
    """A memref, or a type that holds one."""
    if is_tensor(type_):
        return _refers_to_memory(type_.element_type)
    if isinstance(type_, MemRefType | UnrankedMemRefType):
        return True
    parts = type_.parameters if isinstance(type_, ParametrizedAttribute) else ()
    listed = type_.data if isa(type_, ArrayAttr) else ()
    return any(map(_refers_to_memory, (*parts, *listed)))


def _single_block(op: Operation, region: Region) -> Block:
    if len(region.blocks) != 1:
        raise Refusal(op, f"{name_of(op)} has a region of {len(region.blocks)} blocks: only single blocks are compared")
    return region.blocks[0]


def _body_of(op: Operation) -> Block:
    if len(op.regions) != 1 or not op.regions[0].blocks:
        raise Refusal(op, f"a {name_of(op)} without a body cannot be compared")
    return _single_block(op, op.regions[0])
