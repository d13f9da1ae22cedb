"""Random requests to the pipeline for one program: a policy, marks on operations, a target, the source of phases."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from recompute.analysis.step.direction import Direction
from recompute.analysis.step.jax_paths import scope_of
from recompute.analysis.step.order import functions_of, single_block
from recompute.dialects.mark_kind import MarkKind
from recompute.dialects.names import Names
from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.options.selection import AUTO, Selection
from recompute.planning.host_moves import Offload
from recompute.transforms.inline import inline
from recompute.transforms.phase import annotate_phases

from .programs import Program


@dataclass(frozen=True)
class Request:
    """Request to the pipeline.

    Attributes:
        marks: Positions in the public function's block, with the kind of mark to write there.
        what: The remaining selection.
        moved: Whether values marked `offload` go to the host.
        phases: Source of the phases: `locations`, `attributes` alone (with locations removed), or `both`.
    """

    segments: str = "auto"
    target: str = "stablehlo"
    marks: tuple[tuple[int, MarkKind], ...] = ()
    phases: str = "locations"
    outputs: bool = False
    copies: int = 2
    what: Selection = AUTO
    moved: bool = False

    @property
    def offload(self) -> Offload:
        return Offload(marked=self.moved)

    @property
    def selection(self) -> Selection:
        return replace(self.what, segments=self.segments, outputs=self.outputs)

    @property
    def is_policy_only(self) -> bool:
        return not self.moved and not any(kind.recomputes for _, kind in self.marks)

    def __str__(self) -> str:
        marks = ", ".join(f"{position} {kind.value}" for position, kind in self.marks)
        return (
            f"segments={self.segments} outputs={self.outputs} copies={self.copies} target={self.target} "
            f"{'moved ' if self.moved else ''}phases from {self.phases}; marks: {marks or 'none'}; {_words(self.what)}"
        )


def request_for(program: Program, module: ModuleOp) -> Request:
    """Return the request for a program, whose parsed text is `module`; it is determined by the program's seed."""
    random = Random(f"request/{program.seed}")
    scope = random.choice(program.scopes)
    moves = Random(f"moves/{program.seed}")
    moved = moves.random() < 0.25
    patterns = ("*", scope, scope.rpartition("/")[2], scope[:-1] + "?", "block*" if random.random() < 0.3 else "*")
    result = Request(
        segments="auto" if random.random() < 0.7 else random.choice(patterns),
        target="stablehlo" if random.random() < 0.8 else "none",
        marks=_marks(random, module) if random.random() < 0.3 else (),
        phases=random.choices(("locations", "both", "attributes"), (18, 1, 1))[0],
        outputs=random.random() < 0.2,
        copies=random.choice((1, 2, 2)),
        what=_selection(random, module) if random.random() < 0.3 else AUTO,
    )
    return replace(result, moved=True, marks=_with_moves(moves, module, result.marks)) if moved else result


def _with_moves(
    random: Random, module: ModuleOp, marks: tuple[tuple[int, MarkKind], ...]
) -> tuple[tuple[int, MarkKind], ...]:
    """Mark some more operations for offload."""
    taken, operations = {position for position, _ in marks}, single_block(step_of(module)).ops
    more = [
        (position, MarkKind.OFFLOAD)
        for position, op in enumerate(operations)
        if position not in taken and _is_forward(op) and random.random() < 0.3
    ]
    return tuple(sorted([*marks, *more], key=lambda item: item[0]))


POLICIES = (
    "everything_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "offload_dot_with_no_batch_dims",
)
CHAINS = ("main:stablehlo.dot_general; num:1", "pre:stablehlo.add; main:stablehlo.tanh")


def _selection(random: Random, module: ModuleOp) -> Selection:
    """Return one of the other ways to select what is recomputed, sometimes with operations to skip."""
    skip = (random.randint(0, 3),) if random.random() < 0.3 else ()
    kind = random.choice(("policy", "save", "segments", "checkpoints", "exclude", "skip"))
    if kind == "policy":
        return Selection(policy=random.choice(POLICIES), skip=skip)
    if kind == "save":
        return Selection(save=tuple(random.sample(("dot_general", "stablehlo.tanh", "*sine", "reduce"), 2)), skip=skip)
    if kind == "segments":
        return Selection(segment_count=random.randint(1, 4), skip=skip)
    if kind == "checkpoints":
        return Selection(checkpoints=tuple(f"point{at}" for at in _points(random, module)), skip=skip)
    if kind == "exclude":
        return Selection(exclude=(random.choice(CHAINS),), skip=skip)
    return Selection(skip=skip or (0,))


def _points(random: Random, module: ModuleOp) -> tuple[int, ...]:
    """Return the positions of a few forward operations."""
    forward = [at for at, op in enumerate(single_block(step_of(module)).ops) if _is_forward(op)]
    return tuple(sorted(random.sample(forward, min(len(forward), random.randint(1, 4)))))


def _words(selection: Selection) -> str:
    """Return the options of a selection that differ from the default."""
    different = {field.name: getattr(selection, field.name) for field in fields(selection)}
    messages = [f"{name}={value}" for name, value in different.items() if value != getattr(AUTO, name)]
    return " ".join(messages) or "nothing more"


_RECOMPUTED = [kind for kind in MarkKind if kind.recomputes]
_KEPT = [kind for kind in MarkKind if not kind.recomputes]


def _marks(random: Random, module: ModuleOp) -> tuple[tuple[int, MarkKind], ...]:
    """Return marks on a few forward operations, or on many."""
    share = random.choice((0.05, 0.3, 0.8))
    recomputed = random.choice((0.0, 0.5, 1.0))
    operations = single_block(step_of(module)).ops
    return tuple(
        (position, random.choice(_RECOMPUTED if random.random() < recomputed else _KEPT))
        for position, op in enumerate(operations)
        if _is_forward(op) and random.random() < share
    )


def _is_forward(op: Operation) -> bool:
    return bool(op.operands) and scope_of(op.location).direction is Direction.FORWARD


def step_of(module: ModuleOp) -> FuncOp:
    (function,) = functions_of(module)
    return function


def parsed(program: Program) -> ModuleOp:
    """Return the module of a program, which `prepare` verifies."""
    return parse_module(program.text, f"seed-{program.seed}.mlir")


def written(kind: MarkKind, op: Operation) -> Attribute:
    """Return the mark in one of its notations: a truth value, a name, or a list with an entry for each result."""
    name = StringAttr(kind.value)
    if kind in (MarkKind.MUST_RECOMPUTE, MarkKind.MUST_SAVE):
        return BoolAttr.from_bool(kind.recomputes)
    if len(op.results) > 1:
        return ArrayAttr([name, *[StringAttr(MarkKind.PREFER_RECOMPUTE.value)] * (len(op.results) - 1)])
    return name


def prepare(module: ModuleOp, request: Request) -> None:
    """Write the request's marks and phases on the program."""
    operations = list(single_block(step_of(module)).ops)
    for position, kind in request.marks:
        if position < len(operations):
            operations[position].attributes[Names.RECOMPUTE] = written(kind, operations[position])
    for name in request.what.checkpoints or ():
        operations[int(name.removeprefix("point"))].attributes[Names.NAME] = StringAttr(name)
    if request.phases != "locations":
        inline(module)
        annotate_phases(module)
    if request.phases == "attributes":
        for op in module.walk():
            op.location = UnknownLoc()
    verify_module(module)
