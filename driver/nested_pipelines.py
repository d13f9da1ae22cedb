"""Pipelines as MLIR writes them, with passes on inner operations: `builtin.module(a{x=1},func.func(cse,dce))`.

Passes of this project run on modules. Other passes of xDSL may be anchored at functions or at other operations: such a
pass runs once for each of them, on a module that contains it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ParameterListType, ParameterType

from ..dialects.context import tell
from ..interpreters.nested_modules import modules_with_functions
from ..rules.names import name_of
from ..support.diagnostics import Remark
from ..transforms.phase import NoGradient
from ..universe import UNIVERSE
from .pipeline import BadPipeline, Passes, resolve, specs

MODULE = "builtin.module"
ANY = "any"
"""The anchor that MLIR matches with every operation."""
_ANCHORED = re.compile(r"\s*([\w.]+)\s*\((.*)\)\s*", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){}\[\],]')


@dataclass(frozen=True)
class ScheduledPass:
    """A pass and its anchor: `path` leads from the module to the operations that it runs on, one name a level."""

    module_pass: ModulePass
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.module_pass.name

    def __str__(self) -> str:
        """The pass as MLIR writes it in a pipeline: `func.func(cse)`."""
        spec = self.module_pass.pipeline_pass_spec()
        options = " ".join(_option(name, values) for name, values in spec.parameters.items())
        text = f"{spec.name}{{{options}}}" if options else spec.name
        for anchor in reversed(self.path):
            text = f"{anchor}({text})"
        return text

    def apply(self, context: Context, module: ModuleOp) -> None:
        """Run the pass on each operation that the path leads to. A path that leads nowhere is told as a remark.

        Without a path, passes of this project run on each module with functions, inner modules included.
        """
        if not self.path:
            ours = self.name in UNIVERSE.all_passes
            return self._apply_to_each(context, modules_with_functions(module) if ours else [module])
        anchored = list(_operations_at(module, self.path))
        if not anchored:
            tell(context, [Remark(module, f"'{self.name}' has run on nothing: there is no {' in '.join(self.path)}")])
        for op in anchored:
            if isinstance(op, ModuleOp):
                self.module_pass.apply(context, op)
            else:
                _apply_alone(self.module_pass, context, op)

    def _apply_to_each(self, context: Context, modules: Sequence[ModuleOp]) -> None:
        """Run the pass on each module. One without a gradient is left as it is if another has one."""
        refused = list[NoGradient]()
        for module in modules:
            try:
                self.module_pass.apply(context, module)
            except NoGradient as error:
                refused.append(error)
        if len(refused) == len(modules):
            raise refused[0]
        tell(context, [Remark(error.operation, f"this module is left as it is: {error.reason}") for error in refused])


def _option(name: str, values: ParameterListType) -> str:
    return f"{name}={','.join(map(_value, values))}" if values else name


def _value(value: ParameterType) -> str:
    """A value of an option. Quotes are escaped, which xDSL's own text of a spec leaves as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if isinstance(value, str) else escaped


def _operations_at(module: ModuleOp, path: tuple[str, ...]) -> Iterator[Operation]:
    level: list[Operation] = [module]
    for anchor in path:
        inner = [op for outer in level for region in outer.regions for block in region.blocks for op in block.ops]
        level = [op for op in inner if name_of(op) == anchor or (anchor == ANY and op.regions)]
    yield from level


def _apply_alone(module_pass: ModulePass, context: Context, op: Operation) -> None:
    """Run a pass on one operation, in a module of its own, and put the result in its place."""
    block, following = op.parent, op.next_op
    assert block is not None, "an operation inside a module has a block"
    op.detach()
    alone = ModuleOp([op])
    alone.location = op.location
    try:
        module_pass.apply(context, alone)
    finally:
        for result in list(alone.body.block.ops):
            result.detach()
            if following is None:
                block.add_op(result)
            else:
                block.insert_op_before(result, following)


def schedule(text: str, known: Passes) -> tuple[ScheduledPass, ...]:
    """Parse `a,func.func(b)` as passes on a module. Raises `BadPipeline`."""
    return tuple(_scheduled(text, known, ()))


def module_schedule(text: str, known: Passes) -> tuple[ScheduledPass, ...]:
    """Parse `builtin.module(a,func.func(b))`. Raises `BadPipeline`, also for another outermost operation."""
    match = _ANCHORED.fullmatch(text)
    if match is None or match[1] not in (MODULE, "module", ANY):
        raise BadPipeline(f"--pass-pipeline reads 'builtin.module(...)', not '{text}'; see also --passes")
    return schedule(match[2], known)


def pipeline_text(passes: tuple[ScheduledPass, ...]) -> str:
    """The pipeline as MLIR writes it."""
    return f"{MODULE}({','.join(map(str, passes))})"


def _scheduled(text: str, known: Passes, path: tuple[str, ...]) -> Iterator[ScheduledPass]:
    for element in _elements(text):
        if (match := _ANCHORED.fullmatch(element)) is not None:
            yield from _scheduled(match[2], known, (*path, match[1]))
            continue
        for spec in specs(element):
            module_pass = resolve(spec, known, "pass")
            if path and path[-1] != MODULE and spec.name in UNIVERSE.all_passes:
                raise BadPipeline(
                    f"'{spec.name}' runs on {MODULE}, not on {path[-1]}: write it outside '{path[-1]}(...)'"
                )
            yield ScheduledPass(module_pass, path)


def _elements(text: str) -> Iterator[str]:
    """The parts between the commas that are in no brackets and no string."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        elif token[0] == "," and not depth:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]
