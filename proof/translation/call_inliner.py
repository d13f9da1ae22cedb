"""Translate calls and composites to terms by inlining the function that they call.

    %5 = func.call @private(%0)                                             the result of @private for %0
    %6 = stablehlo.composite "a.b" %0 {decomposition = @private}            the same
    func.call @external(%0)                                                 an effect: @external has no body

The attributes of the call, of the function, and of its `func.return` are compared: the values that enter and leave the
function are wrapped in terms that contain them (`Wrapping` in `transparent_ops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.ir import Block, Operation

from ...dialects.reserved_names import is_reserved
from ...support.diagnostics import Refusal
from ...support.operations import name_of
from ..expressions.block_requirements import function_body, is_declaration
from ..expressions.terms import Attributes, Head, Heads, Terms, result_head
from ..operations.operation_parts import attributes_of, callee_of, entry_functions, size_with_calls
from .scope import RegionScope
from .transparent_ops import Wrapping, entry_heads, without_names

MAX_OPERATIONS = 5_000_000
"""Maximum number of operations after inlining all calls. Nested calls can double it at each level."""

OF_COMPOSITES = frozenset({"name", "composite_attributes", "version"})
"""Attributes by which a consumer recognizes a composite. They do not change its results: the decomposition defines the
results."""
SIGNATURE = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})

TranslateBlock = Callable[[Block, RegionScope], tuple[int, tuple[int, ...]]]
"""A function that translates the operations of a block. It returns the id of the terminator's head and the terms of the
terminator's operands."""


class CallInliner:
    """Inlines the calls of one program.

    Args:
        functions: The functions of the program, by name.
        terms: The table of terms.
        heads: The heads of terms of this program.
        wrapping: Wraps the values that enter and leave a function.
        origins: The first operation of each term of this program. The dictionary is extended in place.

    Attributes:
        composites: The name and the attributes of each composite that was inlined.
    """

    def __init__(
        self,
        functions: Mapping[str, Operation],
        terms: Terms,
        heads: Heads,
        wrapping: Wrapping,
        origins: dict[int, Operation],
    ):
        self.composites = set[tuple[str, Attributes]]()
        self._functions = functions
        self._terms = terms
        self._heads = heads
        self._wrapping = wrapping
        self._origins = origins

    def demand_bounded_size(self, module: Operation) -> None:
        """Raise `Refusal` at the module if the program is recursive or is too large after all calls are inlined."""
        if size_with_calls(self._functions, entry_functions(self._functions)) > MAX_OPERATIONS:
            raise Refusal(module, f"after inlining all calls, the program has more than {MAX_OPERATIONS} operations")

    def inline_call(
        self, op: Operation, operands: Sequence[int], scope: RegionScope, translate: TranslateBlock
    ) -> Sequence[int]:
        """Inline the function that a `func.call` calls and return the terms of the call's results. A call to a function
        without a body is an effect.

        Args:
            op: The call.
            operands: The terms of its operands.
            scope: The scope of the call.
            translate: Translates the body of the function.
        """
        name = callee_of(op, self._functions)
        if is_declaration(self._functions[name]):
            return self._external_call(op, name, operands, scope)
        return self._inline(op, operands, scope, translate, {"callee"})

    def inline_composite(
        self, op: Operation, operands: Sequence[int], scope: RegionScope, translate: TranslateBlock
    ) -> Sequence[int]:
        """Translate a composite as a call to its decomposition, and return the terms of the results.

        See `inline_call` for the arguments.
        """
        if op.regions:
            raise Refusal(op, f"{name_of(op)} has regions; the proof supports only composites without regions")
        attributes = {name: value for name, value in attributes_of(op).items() if name in OF_COMPOSITES}
        name = attributes.get("name")
        self.composites.add((name.data if isinstance(name, StringAttr) else "", self._heads.attributes(op, attributes)))
        return self._inline(op, operands, scope, translate, {"decomposition", *OF_COMPOSITES})

    def run(
        self, name: str, arguments: Sequence[int], scope: RegionScope, translate: TranslateBlock
    ) -> tuple[int, ...]:
        """Return the terms of the results of a function for these arguments. The effects of the function follow the
        state of the scope."""
        block = function_body(self._functions[name], name, self._heads)
        scope.define(block.args, arguments)
        _, results = translate(block, scope)  # `_inline` and the signature compare the attributes of the return
        return results

    def _inline(
        self,
        op: Operation,
        operands: Sequence[int],
        scope: RegionScope,
        translate: TranslateBlock,
        own: Set[str],
    ) -> Sequence[int]:
        """Inline the called function, and return the terms of its results.

        `own`: the names of attributes that belong to the call itself and are not compared.
        """
        name = callee_of(op, self._functions)
        block = function_body(self._functions[name], name, self._heads)
        function = self._functions[name]
        last = block.last_op
        assert last is not None, "checked: a function ends with func.return"
        types = self._heads.types
        argument_types, result_types = types(block.args, op), types(last.operands, op)
        if (types(op.operands, op), types(op.results, op)) != (argument_types, result_types):
            raise Refusal(op, f"{name_of(op)} of @{name} has operands or results that do not match the function")
        around = self._wrapping.around(
            ("call", op, without_names(attributes_of(op), own)),
            ("function", function, without_names(attributes_of(function), SIGNATURE)),
            ("return", last, attributes_of(last)),
            always=scope.is_literal,
        )
        if is_reserved(name):
            return self._reserved_call(op, name, operands, scope)
        state = self._wrapping.wrap_state(entry_heads(around), scope.state, operands)
        arguments = self._wrapping.wrap(entry_heads(around), operands)
        arguments = self._wrapping.by_position("parameter", function, "arg_attrs", arguments)
        inner = scope.for_callee(state)
        returned = self.run(name, arguments, inner, translate)
        results = self._wrapping.by_position("result", function, "res_attrs", returned)
        if inner.state != state or scope.is_literal:
            scope.state = self._wrapping.wrap_state(around, inner.state, results)
        return self._wrapping.wrap(around, results)

    def _reserved_call(self, op: Operation, name: str, operands: Sequence[int], scope: RegionScope) -> Sequence[int]:
        """Translate a call to a function with a reserved name as an effect, and return the terms of the results. The
        function itself is compared like a public function.
        """
        head = self._heads.of("effect", op, without_names(attributes_of(op), {"callee", "decomposition"}))
        return self._effect(op, head._replace(name=f"{name_of(op)} of @{name}"), operands, scope)

    def _external_call(self, op: Operation, name: str, operands: Sequence[int], scope: RegionScope) -> Sequence[int]:
        """Translate a call to a function without a body as an effect, and return the terms of the results.

        The name of a declaration identifies the function to the linker. The term contains this name and all attributes
        of the declaration, so the declarations in both programs must be equal.
        """
        declaration = self._functions[name]
        type_ = attributes_of(declaration).get("function_type")
        head = self._heads.of("effect", op, without_names(attributes_of(op), {"callee"}))
        if (
            not isinstance(type_, FunctionType)
            or head.operand_types != self._heads.numbers(type_.inputs, declaration)
            or head.types != self._heads.numbers(type_.outputs, declaration)
        ):
            raise Refusal(op, f"{name_of(op)} of @{name} has operands or results that do not match the function")
        declared = self._heads.attributes(declaration, without_names(attributes_of(declaration), {"sym_name"}))
        # Every name gets a prefix, so that an attribute of the call never stands for one of the declaration.
        attributes = (
            *((f"call: {key}", value) for key, value in head.attributes),
            *((f"declaration: {key}", value) for key, value in declared),
        )
        head = head._replace(name=f"{name_of(op)} of external @{name}", attributes=attributes)
        return self._effect(op, head, operands, scope)

    def _effect(self, op: Operation, head: Head, operands: Sequence[int], scope: RegionScope) -> Sequence[int]:
        """Apply the head of an effect to the state of the scope and to the operands, and return the terms of the
        results."""
        scope.state = self._terms.term(head, (scope.state, *operands))
        self._origins.setdefault(scope.state, op)
        return [self._terms.term(result_head(index), (scope.state,)) for index in range(len(op.results))]
