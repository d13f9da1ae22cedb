"""Execute the expectations of StableHLO's interpreter tests in numpy. Expectations are statements `check.expect_…`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, var_operand_def
from xdsl.parser import Parser

from recompute.dialects.constants.dense import parse_constant
from recompute.dialects.stablehlo.creation import ConstantOp
from recompute.interpreters.devices import run_on_devices
from recompute.interpreters.executor import execute
from recompute.support.diagnostics import Refusal
from recompute.support.operations import name_of


class ExpectOp(IRDLOperation):
    """An expectation of StableHLO's interpreter tests: a value, and a constant or a second value.

    `kind`: the part of the operation's name after `expect_`.
    """

    values = var_operand_def()
    kind = opt_prop_def()
    constant = opt_prop_def()
    ulps = opt_prop_def()


def _expect(kind: str) -> type[Operation]:
    class Expect(ExpectOp):
        name = f"check.expect_{kind}"

        @classmethod
        def parse(cls, parser: Parser) -> ExpectOp:
            start = parser.pos
            operands, properties = [parser.parse_unresolved_operand()], dict[str, Attribute]()
            while parser.parse_optional_punctuation(",") is not None:
                if (operand := parser.parse_optional_unresolved_operand()) is not None:
                    operands.append(operand)
                elif (key := parser.parse_optional_identifier()) is not None and key != "dense":
                    parser.parse_punctuation("=")
                    properties["ulps" if key == "max_ulp_difference" else "kind"] = parser.parse_attribute()
                else:
                    properties["constant"] = parse_constant(parser)
            if "constant" in properties:
                types: list[Any] = [properties["constant"].type]  # pyright: ignore
            else:
                parser.parse_punctuation(":")
                types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            resolved = parser.resolve_operands(operands, types * (len(operands) // len(types)), start)
            return cls.create(operands=resolved, properties=properties)

    return irdl_op_definition(Expect)


KINDS = ("eq", "almost_eq", "eq_const", "almost_eq_const", "close", "serialized_eq")
EXPECTATIONS = Dialect("check", [_expect(kind) for kind in KINDS])


def agree(kind: str, actual: Any, expected: Any, ulps: int) -> bool:
    """Return whether a value is as expected: exactly, within a relative error of 1e-4, or within `ulps` ulps."""
    if kind.startswith(("eq", "serialized")) or actual.dtype.kind in "biu":
        return np.array_equal(actual, expected, equal_nan=actual.dtype.kind in "fc")
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    first, second = actual.astype(wide), expected.astype(wide)
    tolerance = 1e-4
    if kind == "close":
        tolerance = float(np.finfo(actual.real.dtype).eps) * max(ulps, 1) if actual.dtype.kind in "fc" else 0
    return bool(np.allclose(first, second, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))


class Expectation(NamedTuple):
    """An expectation of a test, on SSA values of the program or on computed arrays.

    Attributes:
        kind: The part of the operation's name after `expect_`.
        actual: The value that the program computes.
        expected: The value that the test expects.
        ulps: The accepted difference for the kind `close`, in units in the last place.
    """

    kind: str
    actual: Any
    expected: Any
    ulps: int


def executed_expectations(module: ModuleOp, function: FuncOp, expectations: Sequence[ExpectOp]) -> list[Expectation]:
    """Run the operations that the expectations need, and return the expectations on the computed arrays."""
    block = function.body.block
    on_values = list[Expectation]()
    for op in expectations:
        second = op.values[1] if len(op.values) > 1 else op.values[0]
        if op.constant is not None:
            constant = ConstantOp.create(properties={"value": op.constant}, result_types=[op.values[0].type])
            block.insert_op_before(constant, op)
            second = constant.results[0]
        ulps = getattr(getattr(op.ulps, "value", None), "data", 1)
        on_values.append(Expectation(op.name.removeprefix("check.expect_"), op.values[0], second, ulps))
        op.detach()
    probed = [op for op in function.walk() if name_of(op) == "interpreter.probe"]
    for op in probed:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.detach()
    on_values = [
        entry._replace(actual=_unprobed(entry.actual, probed), expected=_unprobed(entry.expected, probed))
        for entry in on_values
    ]
    computed = dict[SSAValue, Any]()
    parallel = [op for op in block.ops if name_of(op) == "interpreter.run_parallel"]
    for op in parallel:
        inputs = _run(block, op.operands, computed)
        computed.update(zip(op.results, _run_in_parallel(module, op, inputs), strict=True))
    arrays = iter(_run(block, [value for entry in on_values for value in (entry.actual, entry.expected)], computed))
    return [entry._replace(actual=next(arrays), expected=next(arrays)) for entry in on_values]


def _unprobed(value: SSAValue, probed: Sequence[Operation]) -> SSAValue:
    return next((op.operands[0] for op in probed if op.results[0] is value), value)


def _run_in_parallel(module: ModuleOp, op: Operation, inputs: Sequence[Any]) -> list[Any]:
    """Run `interpreter.run_parallel` on simulated devices, and return the results device by device."""
    grid = op.properties.get("programs") or op.attributes["programs"]
    if "infeed" in op.attributes or "infeed" in op.properties:
        raise Refusal(op, "the interpreter does not support infeed")
    functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, FuncOp)}
    assert isinstance(grid, ArrayAttr)
    programs = [[functions[name.string_value()] for name in row if isinstance(name, SymbolRefAttr)] for row in grid]  # pyright: ignore
    remaining = iter(inputs)
    inputs_of_devices = [
        list(islice(remaining, len(program.function_type.inputs))) for row in programs for program in row
    ]
    return [value for results in run_on_devices(programs, inputs_of_devices) for value in results]


def _run(block: Block, values: Sequence[SSAValue], computed: dict[SSAValue, Any]) -> list[Any]:
    """Compute values of a block, by running the operations that they need in a separate function.

    `computed`: the arrays of the values that are already computed.
    """
    needed, stack = set[Operation](), [value for value in values if value not in computed]
    while stack:
        owner = stack.pop().owner
        assert isinstance(owner, Operation), "a function with expectations must have no arguments"
        if owner not in needed:
            needed.add(owner)
            reads = [*owner.operands, *(value for op in owner.walk() for value in op.operands)]
            stack += [
                value
                for value in reads
                if value not in computed and isinstance(value.owner, Operation) and value.owner.parent is block
            ]
    inner = Block(arg_types=[value.type for value in computed])
    mapping: dict[SSAValue, SSAValue] = dict(zip(computed, inner.args, strict=True))
    for op in block.ops:
        if op in needed:
            inner.add_op(op.clone(mapping))
    results = [mapping[value] for value in values]
    inner.add_op(ReturnOp(*results))
    types = [value.type for value in computed], [value.type for value in results]
    function = FuncOp("expectation", types, Region(inner))
    parent = block.parent_op()
    assert parent is not None and parent.parent is not None, "the function must be inside a module"
    parent.parent.add_op(function)
    try:
        return list(execute(function, list(computed.values())))
    finally:
        function.detach()
