"""Random training steps as StableHLO text: a forward pass in named scopes, its derivative, and sometimes an update.

`generate(seed)` is a function of the seed only. Every program verifies and has a defined result; moderate inputs give
moderate values. The distribution is skewed towards steps that save much for their backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from .derivatives import backward
from .forward import KEY, Forward, function_text
from .pieces import activation, mlp, some_piece, unknown
from .writer import Pen, Place, Type, Value, Writer

LINES_PER_BODY = 1000
"""Bodies stand apart in the source; a body that is run again has the same lines."""


@dataclass(frozen=True)
class Program:
    """Generated program.

    Attributes:
        text: A module with one public function.
        scopes: The scopes of its blocks.
        gradients_from: Index of the first result that is a gradient or updated weight; there is one for each weight.
    """

    seed: int
    text: str
    scopes: tuple[str, ...]
    gradients_from: int


@dataclass(frozen=True)
class Block:
    """One run of a body. Runs of the same `body` share their code.

    `weights` names the weights that it reads. `caller`: the caller of the code, which is part of its source position.
    """

    scope: tuple[str, ...]
    body: int
    weights: str
    caller: int = 0


@dataclass(frozen=True)
class Shape:
    """Choices that determine the kind of step. `towers`: the second half of the blocks starts from the input again."""

    rows: int
    width: int
    outer: tuple[str, ...]
    blocks: tuple[Block, ...]
    pieces: tuple[int, int]
    early: float
    takes_cotangent: bool
    returns_loss: bool
    update: str
    head: bool
    unknown: bool
    towers: bool = False


def shape_of(random: Random) -> Shape:
    outer = ("model",) if random.random() < 0.3 else ()
    update = random.choices(("none", "descent", "momentum"), (5, 4, 2))[0]
    towers = random.random() < 0.06
    return Shape(
        rows=random.choice((8, 16, 32)),
        width=random.choice((4, 8, 16)),
        outer=outer,
        blocks=_towers(random, outer) if towers else tuple(_blocks(random, outer)),
        pieces=random.choice(((1, 2), (1, 3), (2, 4))),
        early=random.choice((1.0, 1.0, 0.8, 0.0)),
        takes_cotangent=random.random() < 0.2,
        returns_loss=random.random() < 0.7,
        update=update,
        head=random.random() < 0.6,
        unknown=random.random() < 0.03,
        towers=towers,
    )


def _towers(random: Random, outer: tuple[str, ...]) -> tuple[Block, ...]:
    """Return the blocks of an encoder, with the same weights, for each of two inputs."""
    count = random.choice((1, 2))
    return tuple(
        Block((*outer, f"block{index}"), index, f"b{index}", caller) for caller in (0, 1) for index in range(count)
    )


def _blocks(random: Random, outer: tuple[str, ...]) -> list[Block]:
    """Return blocks that mostly have a scope each; sometimes a repeated layer, tied weights, or a scope that is entered
    again."""
    count = random.choice((2, 2, 3, 3, 4))
    kind = random.choices(("apart", "repeated", "tied", "returning"), (12, 4, 3, 1))[0]
    if kind == "apart":
        return [Block((*outer, f"block{index}"), index, f"b{index}") for index in range(count)]
    if kind == "returning":
        return [Block((*outer, f"block{index % 2}"), index, f"b{index}") for index in range(count)]
    return [Block((*outer, "layer"), 0, "tied" if kind == "tied" else f"b{index}") for index in range(count)]


def generate(seed: int, change: Callable[[Shape], Shape] = lambda shape: shape) -> Program:
    """Return the training step of a seed; `change` may override some of its choices."""
    random = Random(seed)
    shape = change(shape_of(random))
    writer = Writer()
    forward = Forward(Pen(writer, Place(), "forward"), random, shape.early)
    data = Value("x", Type((shape.rows, shape.width)))
    result = _forward_pass(forward, shape, data, seed)
    step = _Step(forward, shape, data, random)
    arguments, returned = step.finish(result)
    text = function_text("public @main", arguments, writer.lines, returned)
    others = "".join(function.text for function in forward.functions.values())
    scopes = tuple(dict.fromkeys("/".join(block.scope) for block in shape.blocks))
    return Program(seed, f"module @jit_step {{\n{text}{others}}}\n", scopes, step.gradients_from)


def _forward_pass(f: Forward, shape: Shape, data: Value, seed: int) -> Value:
    """Write the head, the blocks and the tail; return the value from which the loss is computed."""
    h = beside = mlp(f, data) if shape.head else f.apply("tanh", data)
    for index, block in enumerate(shape.blocks):
        if shape.towers and 2 * index == len(shape.blocks):
            beside, h = h, f.apply("sine", data)
        f.known.append(h)
        h = _run(f, Random(f"{seed}/{block.body}"), block, shape, h)
        if shape.unknown and index == 0:
            h = unknown(f, h)
    if shape.towers:
        h = f.apply(f.random.choice(("subtract", "multiply")), beside, h)
    return activation(f, h) if f.random.random() < 0.5 else h


def _run(f: Forward, random: Random, block: Block, shape: Shape, h: Value) -> Value:
    """Write a block. Joins in it read its own values, and earlier ones if its body runs only once."""
    outer, place, known = f.random, f.pen.place, f.known
    again = sum(actual.body == block.body for actual in shape.blocks) > 1
    f.random, f.weight_prefix, f.known = random, block.weights, [h] if again else [*known]
    f.pen = f.pen.at(Place(block.scope, LINES_PER_BODY * (block.body + 1) + LINES_PER_BODY // 2 * block.caller))
    entered = len(f.known)
    for _ in range(random.randint(*shape.pieces)):
        h = _nested(f, h) if random.random() < 0.2 else some_piece(f, h)
        f.known.append(h)
    # Rarely a later block reads the inside of this one, and not only what it hands on.
    inside = f.known[entered : entered + 1] if random.random() < 0.1 else []
    f.random, f.weight_prefix, f.known = outer, "", [*known, *inside]
    f.pen = f.pen.at(replace(place, line=place.line + 10))
    return h


def _nested(f: Forward, h: Value) -> Value:
    """Apply a piece in a scope nested in that of the block."""
    with f.scoped(f.random.choice(("attention", "mlp"))):
        return some_piece(f, h)


@dataclass
class _Step:
    """Part of the step after the forward pass."""

    forward: Forward
    shape: Shape
    data: Value
    random: Random

    def finish(self, result: Value) -> tuple[list[Value | str], list[Value]]:
        """Write the backward pass and the update; return the arguments and the results of the step."""
        f, shape = self.forward, self.shape
        loss, ct = self._cotangent(result)
        pen = Pen(f.pen.writer, f.pen.place, "backward")
        weights = list(f.weights.values.values())
        requested = [*weights, self.data] if not weights or self.random.random() < 0.3 else weights
        actual = backward(pen, f.tape, (loss, ct), frozenset(requested)).arrived
        gradients = {value: actual[value] if value in actual else pen.full("0.0", value.type) for value in requested}
        first = [loss] if shape.returns_loss else []
        first += f.returned if self.random.random() < 0.8 else []
        first += [f.state] if f.state and self.random.random() < 0.5 else []
        self.gradients_from = len(first)
        updated, extra = self._update(gradients, weights)
        returned = [*first, *updated]
        if self.random.random() < 0.1:
            returned.append(self.random.choice(requested))
        arguments = [self._argument(value, returned, donated=shape.update != "none") for value in (*weights, *extra)]
        others = [self.data, *([ct] if shape.takes_cotangent else []), *([KEY] if f.reads_key else [])]
        return [*arguments, *others], returned

    def _cotangent(self, result: Value) -> tuple[Value, Value]:
        """Return the differentiated value and its cotangent: one for a loss, otherwise an argument."""
        f = self.forward
        if self.shape.takes_cotangent:
            return result, Value("ct", result.type)
        squared = f.apply("multiply", result, result)
        size = result.type.shape[0] * result.type.shape[1]
        loss = f.scale(f.sum(squared, [0, 1]), 1 / size)
        return loss, f.pen.scalar("1.0")

    def _update(self, gradients: dict[Value, Value], weights: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Return new weights and momenta if there is an update, otherwise the gradients; and the arguments for the
        momenta."""
        if self.shape.update == "none" or not weights:
            return list(gradients.values()), []
        pen = Pen(self.forward.pen.writer, Place(line=5), "neither")
        momenta = [Value(f"m{index}", value.type) for index, value in enumerate(weights)]
        new_weights, new_momenta = list[Value](), list[Value]()
        for weight, momentum in zip(weights, momenta, strict=True):
            change = gradients[weight]
            if self.shape.update == "momentum":
                change = pen.op("add", pen.op("multiply", momentum, pen.full("0.9", change.type)), change)
                new_momenta.append(change)
            scaled = pen.op("multiply", change, pen.full("0.01", change.type))
            new_weights.append(pen.op("subtract", weight, scaled))
        others = [gradient for value, gradient in gradients.items() if value not in weights]
        return [*new_weights, *new_momenta, *others], momenta if new_momenta else []

    def _argument(self, value: Value, returned: Sequence[Value], donated: bool) -> Value | str:
        """Return an argument; if donated, it states the result that reuses its memory: the last free one of its
        type."""
        if not donated or value.name.startswith("x"):
            return value
        matching = [
            index for index, first in enumerate(returned) if first.type == value.type and index not in self._taken
        ]
        if not matching:
            return value
        self._taken.add(matching[-1])
        return f"{value}: {value.type} {{tf.aliasing_output = {matching[-1]} : i32}}"

    def __post_init__(self) -> None:
        self._taken = set[int]()
        self.gradients_from = 0
