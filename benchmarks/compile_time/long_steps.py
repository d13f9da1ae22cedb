"""Generate the text of training steps of any length: chains of small blocks whose values the backward pass reads.

h1 = tanh(sine(h0) * w)                forward, in the scope block0
g0 = g1 * (1 - h1²) * w * cos(h0)      backward, with a gradient of w that is summed over the blocks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from recompute.options.selection import AUTO, Selection

TYPE = "tensor<64xf32>"
OPERATIONS_PER_BLOCK = 12
HIDDEN, GRADIENT = "h{}", "g{}"
BLOCKS_PER_SEGMENT = 4
SEGMENTS = 4
MARK = " {recompute.recompute = true}"


@dataclass(frozen=True)
class Kind:
    """A kind of step.

    Attributes:
        scoped: Whether each block has a scope name.
        marked: Whether operations are marked by hand.
        weights: The weight that a block reads: one argument of all blocks (`argument`), one forward value of all blocks
            (`value`), or its own argument (`own`).
        select: Returns the selection of segments for a number of blocks.
    """

    scoped: bool = True
    marked: bool = False
    weights: Literal["argument", "value", "own"] = "argument"
    select: Callable[[int], Selection] = lambda blocks: AUTO


def _between(blocks: int) -> Selection:
    return replace(AUTO, checkpoints=tuple(HIDDEN.format(i) for i in range(0, blocks, BLOCKS_PER_SEGMENT)))


KINDS = {
    "chain": Kind(),
    "shared": Kind(weights="value"),
    "outputs": Kind(select=lambda blocks: replace(AUTO, outputs=True)),
    "marks": Kind(scoped=False, marked=True),
    "checkpoints": Kind(scoped=False, weights="value", select=_between),
    "segments": Kind(weights="own", select=lambda blocks: replace(AUTO, segment_count=SEGMENTS)),
}


def blocks_for(operations: int) -> int:
    """Return the number of blocks of a step with about `operations` operations."""
    return max(2, operations // OPERATIONS_PER_BLOCK)


@dataclass
class _Text:
    """The text of the step's body. Every operation has its own line in a fictitious source file."""

    kind: Kind
    lines: list[str] = field(default_factory=list[str])

    def add(self, result: str, operation: str, operands: str, scope: str, mark: bool = False) -> None:
        place = f'loc("jit(step)/{scope}/{operation}"("step.py":{len(self.lines) + 1}:1))'
        marked = MARK if mark and self.kind.marked else ""
        self.lines.append(f"    %{result} = stablehlo.{operation} {operands}{marked} : {TYPE} {place}")


def long_step(kind: Kind, blocks: int) -> str:
    """Return a module with one step of about `OPERATIONS_PER_BLOCK * blocks` operations."""
    text = _Text(kind)
    text.lines.append(f"    %one = stablehlo.constant dense<1.0> : {TYPE}")
    text.add("h0", "tanh", "%x", "jvp()")
    text.add("s", "exponential", "%w", "jvp()")
    for index in range(blocks):
        _forward(text, index)
    text.add(GRADIENT.format(blocks), "negate", f"%h{blocks}", "transpose(jvp())")
    text.add(f"v{blocks}", "negate", "%w", "transpose(jvp())")
    for index in reversed(range(blocks)):
        _backward(text, index)
    body = "\n".join(text.lines)
    results = f"{TYPE}, {TYPE}, {TYPE}"
    return (
        f"func.func public @main(%x: {TYPE}, {_arguments(kind, blocks)}) -> ({results}) {{\n{body}\n"
        f"    func.return %h{blocks}, %g0, %v0 : {results}\n}}\n"
    )


def _scope(kind: Kind, index: int) -> str:
    return f"block{index}" if kind.scoped else ""


def _arguments(kind: Kind, blocks: int) -> str:
    names = ["%w", *(_weight(kind, i) for i in range(blocks))]
    return ", ".join(f"{name}: {TYPE}" for name in dict.fromkeys(names) if name != "%s")


def _weight(kind: Kind, index: int) -> str:
    return {"argument": "%w", "value": "%s", "own": f"%w{index}_"}[kind.weights]


def _forward(text: _Text, i: int) -> None:
    scope = f"jvp({_scope(text.kind, i)})"
    text.add(f"a{i}", "sine", f"%h{i}", scope, mark=True)
    text.add(f"c{i}", "cosine", f"%h{i}", scope, mark=True)
    text.add(f"m{i}", "multiply", f"%a{i}, {_weight(text.kind, i)}", scope, mark=True)
    text.add(f"t{i}", "tanh", f"%m{i}", scope)
    text.add(HIDDEN.format(i + 1), "add", f"%t{i}, %h{i}", scope)


def _backward(text: _Text, i: int) -> None:
    scope = f"transpose(jvp({_scope(text.kind, i)}))"
    text.add(f"q{i}", "multiply", f"%t{i}, %t{i}", scope)
    text.add(f"u{i}", "subtract", f"%one, %q{i}", scope)
    text.add(f"p{i}", "multiply", f"%g{i + 1}, %u{i}", scope)
    text.add(f"v{i}_", "multiply", f"%p{i}, %a{i}", scope)
    text.add(f"v{i}", "add", f"%v{i + 1}, %v{i}_", scope)
    text.add(f"d{i}", "multiply", f"%p{i}, %c{i}", scope)
    text.add(f"e{i}", "multiply", f"%d{i}, {_weight(text.kind, i)}", scope)
    text.add(GRADIENT.format(i), "add", f"%e{i}, %g{i + 1}", scope)
