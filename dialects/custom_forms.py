"""Where the custom form of an operation of xDSL, as xDSL 0.73 and 0.74 print it, does not say everything about it."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import BroadcastOp, TransposeOp, YieldOp
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Operation

LEAVE_ATTRIBUTES_OUT = frozenset(
    """
    arith.cmpf arith.cmpi linalg.broadcast linalg.reduce linalg.transpose memref.cast memref.copy memref.rank
    scf.execute_region scf.parallel tensor.empty
    """.split()
)
"""They print no attributes."""

RESULT_IS_SCALAR = frozenset({"arith.cmpf", "arith.cmpi"})
"""They are read as if the operands were scalars, whatever type stands there."""

ELIDE_TERMINATORS = frozenset({"scf.execute_region", "scf.for", "scf.if", "scf.parallel"})
"""They leave a terminator without operands out, and its attributes with it."""

NOT_SHOWN_BY_LINALG = ("indexing_maps", "linalg.memoized_indexing_maps", "iterator_types", "doc", "library_call")


def says_everything(op: Operation) -> bool:
    """Whether the custom form, read again, is the same operation."""
    match op:
        case FuncOp():
            return not (op.is_declaration and (op.arg_attrs is not None or op.res_attrs is not None))
        case NamedOperation():
            return _is_as_named(op)
        case TransposeOp() | BroadcastOp():
            return _yields_its_first_argument(op) and not op.attributes and op.results[0].type == op.init.type
        case _:
            loses_type = op.name in RESULT_IS_SCALAR and op.results[0].type != i1
            return not (loses_type or _loses_attributes(op) or _loses_terminator(op))


def _loses_attributes(op: Operation) -> bool:
    return op.name in LEAVE_ATTRIBUTES_OUT and bool(op.attributes)


def _loses_terminator(op: Operation) -> bool:
    if op.name not in ELIDE_TERMINATORS:
        return False
    last = [block.last_op for region in op.regions for block in region.blocks]
    return any(terminator is not None and terminator.attributes for terminator in last)


def _is_as_named(op: NamedOperation) -> bool:
    """Whether its body and its maps are those that go without saying with the name."""
    defined = op.get_irdl_definition().properties
    shown = all(
        (op.properties | op.attributes).get(name) in (None, defined[name].default_value if name in defined else None)
        for name in NOT_SHOWN_BY_LINALG
    )
    return shown and op.regions[0].is_structurally_equivalent(op.get_hidden_region(op.inputs, op.outputs))


def _yields_its_first_argument(op: TransposeOp | BroadcastOp) -> bool:
    block = op.regions[0].block
    last = block.last_op
    return (
        isinstance(last, YieldOp)
        and last is block.first_op
        and not last.attributes
        and last.operands[0] is block.args[0]
    )
