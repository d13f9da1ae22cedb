"""Tokens that order effects, operations with such effects, and computations that run in the background.

    %t = stablehlo.create_token : !stablehlo.token
    %u = stablehlo.after_all %t, %t : !stablehlo.token

StableHLO prints all operations other than these two in generic form.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ...support.type_guards import is_tensor
from .checks import Constraint, verify_constraints
from .control import ReturnOp, check_all, returned_types
from .formats import ResultTypeOp, SameTypeOp, parse_all_operands
from .process_groups import check_channel_type, check_distinct_pairs, check_pairs_have_two_columns


@irdl_attr_definition
class StableTokenType(ParametrizedAttribute, TypeAttribute):
    """The type of values without data that order effects."""

    name = "stablehlo.token"


@irdl_attr_definition
class FutureType(ParametrizedAttribute, TypeAttribute):
    """The type of the results of a computation that may still be running: `!stablehlo.future<tensor<4xf32>>`"""

    name = "stablehlo.future"

    types: ArrayAttr[Attribute] = param_def()

    def verify(self) -> None:
        for type_ in self.types:
            if not is_tensor(type_):
                raise VerifyException(f"a future contains the type {type_}, expected a ranked tensor")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return [ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.types, printer.print_attribute)


@irdl_op_definition
class CreateTokenOp(ResultTypeOp):
    """Return a token that waits for no other operation."""

    name = "stablehlo.create_token"

    output = result_def(StableTokenType)

    traits = traits_def(Pure())


@irdl_op_definition
class AfterAllOp(SameTypeOp):
    """Return a token that is available once all operands are available."""

    name = "stablehlo.after_all"

    inputs = var_operand_def(StableTokenType)
    result = result_def(StableTokenType)

    traits = traits_def(Pure())

    @classmethod
    def parse_operand_names(cls, parser: Parser) -> list[UnresolvedOperand]:
        return parse_all_operands(parser)


def _check_received(op: InfeedOp | RecvOp) -> None:
    if not op.received:
        raise VerifyException("there are no results, expected at least a token")


def _check_data(op: InfeedOp | RecvOp) -> None:
    for type_ in op.result_types[:-1]:
        if not is_tensor(type_):
            raise VerifyException(f"a result has type {type_}, expected a tensor")


def _check_last(op: InfeedOp | RecvOp) -> None:
    if not isinstance(op.result_types[-1], StableTokenType):
        raise VerifyException(f"the last result has type {op.result_types[-1]}, expected a token")


def _check_layout(op: InfeedOp) -> None:
    """Check that there is a layout for each result except the token. A layout is an array of integers."""
    if op.layout is None:
        return
    if len(op.layout) != len(op.result_types) - 1:
        raise VerifyException(
            f"the number of layouts is {len(op.layout)}, expected {len(op.result_types) - 1}, one for each tensor"
        )
    for layout in op.layout:
        if not isa(layout, ArrayAttr[IntegerAttr]):
            raise VerifyException(f"the layout {layout} is not an array of integers")


@irdl_op_definition
class InfeedOp(IRDLOperation):
    """Read tensors from a queue that the host fills."""

    name = "stablehlo.infeed"

    token = operand_def(StableTokenType)
    infeed_config = opt_prop_def(StringAttr)
    layout = opt_prop_def(ArrayAttr)
    received = var_result_def()

    def verify_(self) -> None:
        verify_constraints(self, INFEED_CONSTRAINTS)


INFEED_CONSTRAINTS: tuple[Constraint[InfeedOp], ...] = (
    Constraint("C1", _check_received),
    Constraint("C2", _check_data),
    Constraint("C3", _check_last),
    Constraint("layout", _check_layout),
)


@irdl_op_definition
class OutfeedOp(IRDLOperation):
    """Write tensors to a queue that the host reads."""

    name = "stablehlo.outfeed"

    inputs = var_operand_def()
    token = operand_def(StableTokenType)
    outfeed_config = opt_prop_def(StringAttr)
    result = result_def(StableTokenType)


@irdl_op_definition
class SendOp(IRDLOperation):
    """Send tensors over a channel."""

    name = "stablehlo.send"

    inputs = var_operand_def()
    token = operand_def(StableTokenType)
    channel_handle = prop_def()
    is_host_transfer = opt_prop_def(BoolAttr)
    source_target_pairs = opt_prop_def()
    result = result_def(StableTokenType)

    def verify_(self) -> None:
        verify_constraints(self, SEND_CONSTRAINTS)


SEND_CONSTRAINTS: tuple[Constraint[SendOp], ...] = (
    Constraint("C1", lambda op: check_pairs_have_two_columns(op.source_target_pairs, any_rank_if_empty=True)),
    Constraint("C2", lambda op: check_distinct_pairs("sources", op.source_target_pairs, 0)),
    Constraint("C3", lambda op: check_distinct_pairs("targets", op.source_target_pairs, 1)),
    Constraint("C5", lambda op: check_channel_type(op.channel_handle, op.is_host_transfer, is_sent=True)),
)


@irdl_op_definition
class RecvOp(IRDLOperation):
    """Receive tensors over a channel."""

    name = "stablehlo.recv"

    token = operand_def(StableTokenType)
    channel_handle = prop_def()
    is_host_transfer = opt_prop_def(BoolAttr)
    source_target_pairs = opt_prop_def()
    received = var_result_def()

    def verify_(self) -> None:
        verify_constraints(self, RECV_CONSTRAINTS)


RECV_CONSTRAINTS: tuple[Constraint[RecvOp], ...] = (
    Constraint("results", _check_received),
    Constraint("results", _check_data),
    Constraint("results", _check_last),
    Constraint("C1", lambda op: check_pairs_have_two_columns(op.source_target_pairs, any_rank_if_empty=True)),
    Constraint("C2", lambda op: check_distinct_pairs("sources", op.source_target_pairs, 0)),
    Constraint("C3", lambda op: check_distinct_pairs("targets", op.source_target_pairs, 1)),
    Constraint("C5", lambda op: check_channel_type(op.channel_handle, op.is_host_transfer, is_sent=False)),
)


@irdl_op_definition
class AsyncStartOp(IRDLOperation):
    """Start the operation in the region, a collective or a slice, in the background."""

    name = "stablehlo.async_start"

    inputs = var_operand_def()
    body = region_def("single_block")
    result = result_def(FutureType)

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, START_CONSTRAINTS)


IN_BACKGROUND = frozenset(
    f"stablehlo.{name}"
    for name in """
    all_reduce all_gather all_to_all collective_permute reduce_scatter collective_broadcast slice dynamic_slice
    dynamic_update_slice
    """.split()
)


def _operations(block: Block) -> list[Operation]:
    return [op for op in block.ops if not isinstance(op, ReturnOp)]


def _check_single(op: AsyncStartOp) -> None:
    if len(_operations(op.body.block)) != 1 or not isinstance(op.body.block.last_op, ReturnOp):
        raise VerifyException("the region must consist of one operation, followed by stablehlo.return")


def _check_kind(op: AsyncStartOp) -> None:
    (inner,) = _operations(op.body.block)
    if inner.name not in IN_BACKGROUND:
        raise VerifyException(f"the region contains {inner.name}, expected a collective or a slice")


def _check_arguments(op: AsyncStartOp) -> None:
    block = op.body.block
    (inner,) = _operations(block)
    check_all("the arguments of the region", block.arg_types, op.operand_types)
    if tuple(inner.operands) != tuple(block.args):
        raise VerifyException(f"the operands of {inner.name} must be the arguments of the region")


def _check_future(op: AsyncStartOp) -> None:
    assert isinstance(op.result.type, FutureType), "the definition of the operation requires a future"
    check_all("the types of the future", op.result.type.types.data, returned_types(op.body.block))


START_CONSTRAINTS: tuple[Constraint[AsyncStartOp], ...] = (
    Constraint("C1", _check_single),
    Constraint("C2", _check_kind),
    Constraint("C3", _check_arguments),
    Constraint("C4", _check_future),
)


@irdl_op_definition
class AsyncDoneOp(IRDLOperation):
    """Wait until an operation in the background has finished, and return its results."""

    name = "stablehlo.async_done"

    operand = operand_def(FutureType)
    finished = var_result_def()

    def verify_(self) -> None:
        verify_constraints(self, DONE_CONSTRAINTS)


def _check_finished(op: AsyncDoneOp) -> None:
    assert isinstance(op.operand.type, FutureType), "the definition of the operation requires a future"
    check_all("the results", op.result_types, op.operand.type.types.data)


DONE_CONSTRAINTS: tuple[Constraint[AsyncDoneOp], ...] = (Constraint("C1", _check_finished),)

TOKEN_TYPES: list[type[Attribute]] = [StableTokenType, FutureType]
TOKENS: list[type[Operation]] = [
    CreateTokenOp,
    AfterAllOp,
    InfeedOp,
    OutfeedOp,
    SendOp,
    RecvOp,
    AsyncStartOp,
    AsyncDoneOp,
]
