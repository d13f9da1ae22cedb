"""recompute-verify: check the invariants of a rewritten step. A comparison of results would not reveal their violation.

    %x = recompute.depend %0 after %t
    %c = stablehlo.tanh %0 {recompute.copy = 1, …}     error: this copy of stablehlo.tanh reads … without waiting …

The invariants are: definitions dominate uses; `recompute.` attributes are known, well-typed and consistent; copies wait
for a gradient, replace uses of their originals, and are unique; tokens wait for gradients and have uses. An error is
located at the operation that violates an invariant. If there are no copies to verify, a remark reports this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..analysis.step.marks import is_copy
from ..analysis.step.order import functions_of
from ..analysis.step.phases import phases
from ..analysis.step.step import Step, Steps
from ..analysis.verify.dominance import verify_dominance
from ..analysis.verify.invariants import violations
from ..dialects.discardable import verify_attributes, verify_marks
from ..dialects.recompute import TokenOp
from ..dialects.sdy.attached import check_attached_shardings
from ..dialects.stablehlo.extent_bounds import check_bounds
from ..mlir_io.function_syntax import verify_functions
from ..support.diagnostics import Refusal
from ..support.operations import every_operation
from ..support.remarks import Remark, RemarkKind, tell
from .outlining.nested_steps import outline_temporarily


def verify_input(module: ModuleOp) -> None:
    """Check what xDSL's verifier does not check: functions, dominance, `recompute.` attributes, shardings, and bounds.

    Raises:
        Refusal: A check fails.
    """
    operations = every_operation(module)
    verify_functions(operations)
    verify_dominance(module)
    annotated = [op for op in operations if op.attributes or type(op) is FuncOp]
    verify_attributes(annotated)
    verify_marks(annotated)
    _verify_shardings(annotated)
    _verify_bounds(operations)


def _verify_shardings(operations: Iterable[Operation]) -> None:
    """Raise `Refusal` at the first operation with an invalid sharding attribute."""
    for op in operations:
        try:
            check_attached_shardings(op)
        except VerifyException as error:
            raise Refusal(op, str(error)) from None


def _verify_bounds(operations: Iterable[Operation]) -> None:
    """Raise `Refusal` at the first operation with a type whose bounds do not match its shape."""
    # Types are compared by id: a step has few of them, and its operations keep them alive.
    checked = set[int]()
    for op in operations:
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*op.results, *arguments):
            if id(value.type) not in checked:
                _verify_bounds_of(op, value.type)
                checked.add(id(value.type))


def _verify_bounds_of(op: Operation, type_: Attribute) -> None:
    try:
        check_bounds(type_)
    except VerifyException as error:
        raise Refusal(op, str(error)) from None


def verify(module: ModuleOp, steps: Steps | None = None) -> None:
    """Check all invariants of a module with copies.

    `steps`: the steps of the module, if they are already computed.

    Raises:
        Refusal: An invariant is violated; the error is reported at the first violation.
    """
    verify_input(module)
    step_of = dict(steps or ())
    for function in functions_of(module):
        step = step_of.get(function)
        if step is None and (classified := phases(function)) is not None:
            step = Step.of(classified)
        if step is not None:
            for op, violation in violations(step):
                raise Refusal(op, violation)
        elif (copy := next((op for op in function.walk() if is_copy(op)), None)) is not None:
            raise Refusal(copy, COPY_WITHOUT_GRADIENT)


COPY_WITHOUT_GRADIENT = (
    "this copy is in a function without gradient operations: no location names transpose(jvp(...)) and no operation "
    'has recompute.phase = "gradient"; probably a tool has dropped the locations: print the module with locations, or '
    "run recompute-phase before recompute-clone, so that attributes state the phases"
)
NOTHING_TO_VERIFY = (
    "no copies to verify: there is no recompute.token, and no operation has the attribute recompute.copy; run "
    "recompute-clone before recompute-verify"
)


@dataclass(frozen=True)
class VerifyPass(ModulePass):
    name = "recompute-verify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with outline_temporarily(op):
            verify(op)
            if not any(isinstance(inner, TokenOp) or is_copy(inner) for inner in every_operation(op)):
                tell(ctx, [Remark(op, NOTHING_TO_VERIFY, RemarkKind.ANALYSIS)])
