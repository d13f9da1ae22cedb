"""Small steps as text, and queries on them for the tests.

    step(forward("a", "sine %x", "cell"), backward("h", "multiply %ct, %a", "cell"), returns="%a, %h")

Every value is `tensor<256xf32>`, 1 KiB, unless a line states another type. `%x` and `%ct` are the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from recompute.analysis.copies.copying import CloneOptions
from recompute.analysis.memory.timeline import eager_timeline, timeline
from recompute.analysis.step.marks import is_copy
from recompute.analysis.step.order import functions_of
from recompute.analysis.step.phases import Phases, phases
from recompute.dialects.names import Names
from recompute.dialects.recompute import DependOp, TokenOp
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import function_named
from recompute.interpreters.inputs import INPUT_KINDS, random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.mark import mark
from recompute.rewriting.rewrite import Recomputation, rewrite_in_place
from recompute.support.operations import name_of
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.inline import inline
from recompute.transforms.preparation.flatten import drop_dead
from recompute.transforms.verify import verify

NETS = Path(__file__).resolve().parent / "nets"
T = "tensor<256xf32>"
VALUE_BYTES = 1024


def forward(result: str, text: str, scope: str = "", marks: str = "", types: str = T) -> str:
    """Return the line of a forward operation; without a scope it belongs to no segment."""
    return _line(result, text, f"jvp({scope})", marks, types)


def backward(result: str, text: str, scope: str = "", marks: str = "", types: str = T) -> str:
    return _line(result, text, f"transpose(jvp({scope}))", marks, types)


def _line(result: str, text: str, path: str, marks: str, types: str) -> str:
    name = text.split()[0]
    location = f'loc("jit(f)/{path}/{name}")'
    attributes = f" {{{marks}}}" if marks else ""
    return f"  %{result} = stablehlo.{text}{attributes} : {types} {location}"


def step(
    *lines: str, returns: str, arguments: str = f"%x: {T}, %ct: {T}", types: str = "", functions: str = ""
) -> ModuleOp:
    """Return a module with one function `f`. `types`: its result types, all `T` by default. `functions`: further
    functions."""
    types = types or ", ".join([T] * len(returns.split(",")))
    text = [f"func.func @f({arguments}) -> ({types}) {{", *lines, f"  func.return {returns} : {types}", "}", functions]
    return parse_module("\n".join(text), "step.mlir")


@cache
def _net(name: str) -> ModuleOp:
    module = parse_module((NETS / f"{name}.mlir").read_text(), f"{name}.mlir")
    inline(module)
    drop_dead(module)
    return module


def net(name: str) -> ModuleOp:
    """Return a counterpart of a real system's net, inlined and without dead code."""
    return _net(name).clone()


# What comes behind a cell that ends in %b, and the gradient that arrives at it, %g.
BEHIND = (
    forward("d", "exponential %b", "next"),
    backward("g", "multiply %ct, %d", "next"),
)


DERIVATIVES: dict[str, Callable[[str, str, str], list[tuple[str, str]]]] = {
    "sine": lambda x, y, g: [("d", f"cosine {x}"), ("", f"multiply {g}, %d")],
    "cosine": lambda x, y, g: [("d", f"sine {x}"), ("n", "negate %d"), ("", f"multiply {g}, %n")],
    "exponential": lambda x, y, g: [("", f"multiply {g}, {y}")],
    "sqrt": lambda x, y, g: [("d", f"add {y}, {y}"), ("", f"divide {g}, %d")],
    "tanh": lambda x, y, g: [("d", f"multiply {y}, {y}"), ("n", f"multiply {g}, %d"), ("", f"subtract {g}, %n")],
}


def chain(names: Sequence[str], blocks: int, size: int = 256, forward_too: bool = False) -> ModuleOp:
    """Return blocks of unary operations, with gradients that read their operands and results as in MindSpore.

    The cotangent is an argument, and the gradient of the input is the only result, as in MindSpore's GradOperation.
    With `forward_too`, the result of the forward pass is also returned.
    """
    types = f"tensor<{size}xf32>"
    lines, value, x = list[str](), list[tuple[str, str, str, str]](), "%x"
    for block in range(blocks):
        for index, name in enumerate(names):
            y = f"v{block}x{index}"
            lines.append(forward(y, f"{name} {x}", f"block{block}", types=types))
            value.append((name, f"block{block}", x, f"%{y}"))
            x = f"%{y}"
    gradient = "%ct"
    for number, (name, scope, x, y) in enumerate(reversed(value)):
        for suffix, text in DERIVATIVES[name](x, y, gradient):
            spelled = text.replace("%d", f"%d{number}").replace("%n", f"%n{number}")
            lines.append(backward(f"{suffix or 'g'}{number}", spelled, scope, types=types))
        gradient = f"%g{number}"
    returned = [value[-1][3], gradient] if forward_too else [gradient]
    return step(
        *lines,
        returns=", ".join(returned),
        arguments=f"%x: {types}, %ct: {types}",
        types=", ".join([types] * len(returned)),
    )


@dataclass(frozen=True)
class Result:
    """Step before and after recomputation, and the outcome. `before` has no dead code."""

    before: ModuleOp
    after: ModuleOp
    recomputation: Recomputation

    @property
    def copies(self) -> list[str]:
        """Names of the copied operations in program order, without the dialect."""
        return copies_in(self.after)

    @property
    def remarks(self) -> list[str]:
        return [remark.reason for remark in self.recomputation.remarks]

    @property
    def saving(self) -> float:
        """Peak after relative to the peak before, in program order."""
        return peak(self.after) / peak(self.before)

    def check_equal(self) -> None:
        check_equal(self.before, self.after)


@dataclass(frozen=True)
class Chosen:
    """Step with copies behind tokens, and the remarks of the passes."""

    after: ModuleOp
    remarks: tuple[str, ...]

    @property
    def copies(self) -> list[str]:
        return copies_in(self.after)

    def has_remark(self, words: str) -> bool:
        return any(words in remark for remark in self.remarks)


def check_equal(before: ModuleOp, after: ModuleOp) -> None:
    """Check that the modules are proved equal, and equal bit for bit when executed on every kind of inputs."""
    assert prove(before, after).proved
    function = function_named(before)
    for kind in INPUT_KINDS:
        assert compare(before, after, random_inputs(function, kind=kind)).equal, kind


def recomputed(
    module: ModuleOp, segments: str = "auto", outputs: bool = False, copies: int = 2, target: str = "stablehlo"
) -> Result:
    """Recompute the step by the whole pipeline."""
    before, after = module.clone(), module.clone()
    inline(before)
    drop_dead(before)
    options = RecomputeOptions(Selection(segments, outputs=outputs), copies=copies, target=target, attempts=1)
    return Result(before, after, rewrite_in_place(after, options))


def cloned(module: ModuleOp, segments: str = "auto", outputs: bool = False) -> ModuleOp:
    """Return the step marked, cloned and cleaned up, with its tokens."""
    work = module.clone()
    inline(work)
    drop_dead(work)
    mark(work, Selection(segments, outputs=outputs))
    clone(work)
    cse(work)
    verify(work)
    return work


def chosen(module: ModuleOp, selection: Selection) -> Result:
    """Recompute the step by the whole pipeline with the given selection."""
    before, after = module.clone(), module.clone()
    inline(before)
    drop_dead(before)
    return Result(before, after, rewrite_in_place(after, RecomputeOptions(selection, attempts=1)))


def by_hand(module: ModuleOp, selection: Selection) -> Chosen:
    """Mark, clone and clean up the step, whether or not this saves memory, and keep the remarks of the passes."""
    work = module.clone()
    remarks = [remark.reason for remark in mark(work, selection)]
    result = clone(work, CloneOptions(permission=selection.permission))
    cse(work)
    verify(work)
    return Chosen(work, (*remarks, *(remark.reason for remark in result.remarks)))


def names_in(module: ModuleOp) -> list[str]:
    return [name_of(op).removeprefix("stablehlo.") for op in module.walk()]


def copies_in(module: ModuleOp) -> list[str]:
    return [name_of(op).removeprefix("stablehlo.") for op in module.walk() if is_copy(op)]


def tokens_in(module: ModuleOp) -> list[TokenOp]:
    return [op for op in module.walk() if isinstance(op, TokenOp)]


def depends_in(module: ModuleOp) -> list[DependOp]:
    return [op for op in module.walk() if isinstance(op, DependOp)]


def regions_of_copies(module: ModuleOp) -> list[str]:
    """Return the segments that have copies, in the order of the backward pass."""
    result = dict.fromkeys(op.attributes.get(Names.SEGMENT) for op in module.walk() if is_copy(op))
    return [segment.data for segment in result if isinstance(segment, StringAttr)]


def copies_of(module: ModuleOp, name: str) -> list[Operation]:
    """Return the copies of StableHLO operations with this name."""
    return [op for op in module.walk() if is_copy(op) and name_of(op) == f"stablehlo.{name}"]


def named(module: ModuleOp, hint: str) -> SSAValue:
    """Return the value with this name."""
    return next(result for op in module.walk() for result in op.results if result.name_hint == hint)


def maker(module: ModuleOp, hint: str) -> Operation:
    """Return the operation that defines the value with this name."""
    return owner_of(named(module, hint))


def owner_of(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation), "not an argument"
    return value.owner


def undelayed(value: SSAValue) -> SSAValue:
    """Return the value that a token delays, or the value itself."""
    owner = value.owner
    return owner.values[owner.delayed.index(value)] if isinstance(owner, DependOp) else value


def classified(module: ModuleOp) -> Phases:
    actual = phases(functions_of(module)[0])
    assert actual is not None
    return actual


def peak(module: ModuleOp) -> int:
    """Return the peak of the temporaries in program order, in bytes."""
    return timeline(functions_of(module)[0], classified(module)).peak_bytes


def eager_peak(module: ModuleOp) -> int:
    """Return the peak of the temporaries in bytes if operations start as soon as they can."""
    return eager_timeline(functions_of(module)[0], classified(module)).peak_bytes


def same_bits(actual: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(actual, other, strict=True))
