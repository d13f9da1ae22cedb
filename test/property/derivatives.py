"""Reverse-mode differentiation of the generated forward passes, with a rule for each operation.

A rule has two halves, as in JAX. `linear` computes the residuals that the pullback needs, in forward time or later.
`pull` maps the result's cotangent to those of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .indexing import scatter_add_rows
from .writer import Dot, Parameters, Pen, Place, Type, Value

Residuals = tuple[Value, ...]
Pulled = tuple[Callable[[], Value] | None, ...]
"""For each operand how to write its cotangent, or None where it has none."""


@dataclass(frozen=True)
class Applied:
    """Forward operation on the tape. `residuals` is None until the linear half has been written."""

    kind: str
    operands: tuple[Value, ...]
    result: Value
    parameters: Parameters
    place: Place
    residuals: Residuals | None


@dataclass(frozen=True)
class Rule:
    linear: Callable[[Pen, Applied], Residuals]
    pull: Callable[[Pen, Applied, Residuals, Value], Pulled]


def _nothing(pen: Pen, op: Applied) -> Residuals:
    return ()


def _both(pen: Pen, op: Applied) -> Residuals:
    return op.operands[:2]


def _times(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    return (lambda: pen.op("multiply", ct, residuals[0]),)


def _elementwise(derivative: Callable[[Pen, Value, Value], Value]) -> Rule:
    """Return the rule of a function of one operand, given its derivative as a function of operand and result."""
    return Rule(lambda pen, op: (derivative(pen, op.operands[0], op.result),), _times)


def _one_minus(pen: Pen, value: Value) -> Value:
    return pen.op("subtract", pen.full("1.0", value.type), value)


def _tanh(pen: Pen, x: Value, y: Value) -> Value:
    return _one_minus(pen, pen.op("multiply", y, y))


def _logistic(pen: Pen, x: Value, y: Value) -> Value:
    return pen.op("multiply", y, _one_minus(pen, y))


def _rsqrt(pen: Pen, x: Value, y: Value) -> Value:
    cube = pen.op("multiply", y, pen.op("multiply", y, y))
    return pen.op("multiply", cube, pen.full("-0.5", y.type))


def _divide(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    def denominator() -> Value:
        square = pen.op("multiply", residuals[1], residuals[1])
        return pen.op("negate", pen.op("divide", pen.op("multiply", ct, residuals[0]), square))

    return lambda: pen.op("divide", ct, residuals[1]), denominator


def _extremum(direction: str) -> Rule:
    """Return the rule of an extremum: the cotangent goes to the operand that is selected, the first one if both are
    equal."""

    def pull(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
        mask, zero = residuals[0], lambda: pen.full("0.0", ct.type)
        return lambda: pen.op("select", mask, ct, zero()), lambda: pen.op("select", mask, zero(), ct)

    return Rule(lambda pen, op: (pen.compare(direction, *op.operands),), pull)


def _select(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    mask = residuals[0]
    return (
        None,
        lambda: pen.op("select", mask, ct, pen.full("0.0", ct.type)),
        lambda: pen.op("select", mask, pen.full("0.0", ct.type), ct),
    )


def _transpose(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    dims = op.parameters.dims
    return (lambda: pen.transpose(ct, [dims.index(index) for index in range(len(dims))]),)


def _broadcast(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    dims, shape = op.parameters.dims, op.operands[0].type.shape

    def pull() -> Value:
        spread = [dim for dim in range(len(ct.type.shape)) if dim not in dims or shape[dims.index(dim)] == 1]
        summed = pen.sum(ct, spread)
        return summed if summed.type.shape == shape else pen.op("reshape", summed, type=op.operands[0].type)

    return (pull,)


def _reduce(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    dims, type_ = op.parameters.dims, op.operands[0].type
    kept = [dim for dim in range(len(type_.shape)) if dim not in dims]
    return lambda: pen.broadcast(ct, type_, kept), None


def _slice(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    """Pad the cotangent with zeros on both sides, one dimension after the other."""
    starts, whole = op.parameters.starts, op.operands[0].type

    def pull() -> Value:
        value = ct
        for dim, (start, size) in enumerate(zip(starts, whole.shape, strict=True)):
            before, after = start, size - start - value.type.shape[dim]
            parts = [_zeros(pen, value, dim, before), value, _zeros(pen, value, dim, after)]
            actual = [part for part in parts if part is not None]
            if len(actual) > 1:
                type_ = _resized(value.type, dim, size)
                value = pen.op("concatenate", *actual, type=type_, parameters=Parameters(dim=dim))
        return value

    return (pull,)


def _resized(type_: Type, dim: int, size: int) -> Type:
    return Type((*type_.shape[:dim], size, *type_.shape[dim + 1 :]), type_.element)


def _zeros(pen: Pen, like: Value, dim: int, size: int) -> Value | None:
    return pen.full("0.0", _resized(like.type, dim, size)) if size else None


def _concatenate(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    dim = op.parameters.dim

    def part(index: int) -> Callable[[], Value]:
        start = sum(value.type.shape[dim] for value in op.operands[:index])
        starts = tuple(start if at == dim else 0 for at in range(len(ct.type.shape)))
        return lambda: pen.op("slice", ct, type=op.operands[index].type, parameters=Parameters(starts=starts))

    return tuple(part(index) for index in range(len(op.operands)))


def _dot(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    numbers = op.parameters.numbers
    return tuple(_dot_side(pen, numbers, residuals, ct, side) for side in (0, 1))


def _dot_side(pen: Pen, numbers: Dot, residuals: Residuals, ct: Value, side: int) -> Callable[[], Value]:
    """Contract the cotangent with the other operand over the latter's free dimensions, then transpose."""
    other = 1 - side
    batch = len(numbers.batch[0])
    free = tuple(numbers.free(at, len(residuals[at].type.shape)) for at in (0, 1))
    start = batch + (len(free[0]) if other == 1 else 0)
    of_other = tuple(range(start, start + len(free[other])))

    def pull() -> Value:
        product = pen.dot(
            ct, residuals[other], Dot((of_other, free[other]), (tuple(range(batch)), numbers.batch[other]))
        )
        matching = (
            numbers.contract[side][numbers.contract[other].index(dim)] for dim in sorted(numbers.contract[other])
        )
        order = (*numbers.batch[side], *free[side], *matching)
        inverse = [order.index(dim) for dim in range(len(order))]
        return product if inverse == sorted(inverse) else pen.transpose(product, inverse)

    return pull


def _gather(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    table, indices = op.operands[0].type, residuals[0]
    return lambda: scatter_add_rows(pen, pen.full("0.0", table), indices, ct), None


def _call(pen: Pen, op: Applied, residuals: Residuals, ct: Value) -> Pulled:
    name = op.parameters.backward
    return (lambda: pen.call(name, (*residuals, ct), [op.operands[0].type])[0],)


RULES: dict[str, Rule] = {
    "sine": _elementwise(lambda pen, x, y: pen.op("cosine", x)),
    "cosine": _elementwise(lambda pen, x, y: pen.op("negate", pen.op("sine", x))),
    "tanh": _elementwise(_tanh),
    "exponential": _elementwise(lambda pen, x, y: y),
    "logistic": _elementwise(_logistic),
    "rsqrt": _elementwise(_rsqrt),
    "abs": _elementwise(lambda pen, x, y: pen.op("sign", x)),
    "log": Rule(
        lambda pen, op: op.operands,
        lambda pen, op, residuals, ct: (lambda: pen.op("divide", ct, residuals[0]),),
    ),
    "negate": Rule(_nothing, lambda pen, op, residuals, ct: (lambda: pen.op("negate", ct),)),
    "add": Rule(_nothing, lambda pen, op, residuals, ct: (lambda: ct, lambda: ct)),
    "subtract": Rule(_nothing, lambda pen, op, residuals, ct: (lambda: ct, lambda: pen.op("negate", ct))),
    "multiply": Rule(
        _both,
        lambda pen, op, residuals, ct: (
            lambda: pen.op("multiply", ct, residuals[1]),
            lambda: pen.op("multiply", residuals[0], ct),
        ),
    ),
    "divide": Rule(_both, _divide),
    "maximum": _extremum("GE"),
    "minimum": _extremum("LE"),
    "select": Rule(lambda pen, op: op.operands[:1], _select),
    "convert": Rule(
        _nothing,
        lambda pen, op, residuals, ct: (lambda: pen.op("convert", ct, type=op.operands[0].type),),
    ),
    "reshape": Rule(
        _nothing,
        lambda pen, op, residuals, ct: (lambda: pen.op("reshape", ct, type=op.operands[0].type),),
    ),
    "transpose": Rule(_nothing, _transpose),
    "broadcast_in_dim": Rule(_nothing, _broadcast),
    "reduce": Rule(_nothing, _reduce),
    "slice": Rule(_nothing, _slice),
    "concatenate": Rule(_nothing, _concatenate),
    "dot_general": Rule(_both, _dot),
    "gather": Rule(lambda pen, op: op.operands[1:], _gather),
    # The forward function returns the residuals.
    "call": Rule(_nothing, _call),
}


@dataclass
class Cotangents:
    """Cotangents accumulated for each value; a second contribution is added where it arises."""

    arrived: dict[Value, Value] = field(default_factory=dict[Value, Value])

    def add(self, pen: Pen, value: Value, ct: Value) -> None:
        known = self.arrived.get(value)
        self.arrived[value] = ct if known is None else pen.op("add", known, ct)


def backward(pen: Pen, tape: Sequence[Applied], seed: tuple[Value, Value], requested: frozenset[Value]) -> Cotangents:
    """Write the backward pass of `tape` for the cotangent `seed`, a pair of a value and its cotangent.

    Only operations that lead to a `requested` value are written.
    """
    active = _depends_on(tape, requested)
    result = Cotangents({seed[0]: seed[1]})
    for op in reversed(tape):
        ct = result.arrived.get(op.result)
        if ct is None or op.result not in active:
            continue
        here = pen.at(op.place)
        residuals = op.residuals if op.residuals is not None else RULES[op.kind].linear(here, op)
        for operand, pull in zip(op.operands, RULES[op.kind].pull(here, op, residuals, ct), strict=False):
            if pull is not None and operand in active:
                result.add(here, operand, pull())
    return result


def _depends_on(tape: Sequence[Applied], requested: frozenset[Value]) -> frozenset[Value]:
    active = set(requested)
    for op in tape:
        if any(operand in active for operand in op.operands):
            active.add(op.result)
    return frozenset(active)
