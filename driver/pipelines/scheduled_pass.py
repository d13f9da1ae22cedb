"""Passes that run only on the operations that an anchor matches.

Passes of this project run on modules. Other passes of xDSL may be anchored at functions or at other operations: such a
pass runs once for each anchored operation, on a module that contains only this operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...analysis.step.module_steps import NoGradient
from ...support.diagnostics import BadRequest
from ...support.nested_modules import modules_with_functions
from ...support.operations import name_of
from ...support.remarks import Remark, tell
from ...support.suggestions import did_you_mean
from ...universe import UNIVERSE
from .pipeline_syntax import ANY, MODULE, AnchoredSpec


@dataclass(frozen=True)
class ScheduledPass:
    """A pass and its anchor.

    Attributes:
        module_pass: The pass.
        path: The names of the nested anchors, as in `AnchoredSpec`.
    """

    module_pass: ModulePass
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.module_pass.name

    def __str__(self) -> str:
        """Return the pass as MLIR writes it in a pipeline: `func.func(cse)`."""
        return str(AnchoredSpec(self.module_pass.pipeline_pass_spec(), self.path))

    def apply(self, context: Context, module: ModuleOp) -> None:
        """Run the pass on each operation that the path matches.

        Without a path, passes of this project run on each module with functions, including inner modules. If no
        operation matches, passes that are not of this project, such as `cse`, are skipped with a remark, as in MLIR.

        Raises:
            BadRequest: No operation matches, and the pass is a pass of this project or the anchor is misspelt.
        """
        ours = self.name in UNIVERSE.all_passes
        if not self.path:
            return self._apply_to_each(context, modules_with_functions(module) if ours else [module])
        anchored = list(_operations_at(module, self.path))
        if not anchored:
            nested = " in ".join(reversed(self.path))
            misspelt = did_you_mean(self.path[-1], {name_of(op) for op in module.walk()} - {self.path[-1]})
            reason = f"'{self.name}' did not run: there is no {nested}"
            if ours or misspelt:
                raise BadRequest(module, f"{reason}{misspelt or '; without this anchor it runs on the module itself'}")
            tell(context, [Remark(module, reason)])
        for op in anchored:
            if isinstance(op, ModuleOp):
                self.module_pass.apply(context, op)
            else:
                _apply_alone(self.module_pass, context, op)

    def _apply_to_each(self, context: Context, modules: Sequence[ModuleOp]) -> None:
        """Run the pass on each module. If some modules have a gradient, modules without a gradient are left
        unchanged."""
        refused = list[NoGradient]()
        for module in modules:
            try:
                self.module_pass.apply(context, module)
            except NoGradient as error:
                refused.append(error)
        if len(refused) == len(modules):
            raise refused[0]
        tell(context, [Remark(error.operation, f"this module is left unchanged: {error.reason}") for error in refused])


def _operations_at(module: ModuleOp, path: tuple[str, ...]) -> Iterator[Operation]:
    level: list[Operation] = [module]
    for anchor in path:
        inner = [op for outer in level for region in outer.regions for block in region.blocks for op in block.ops]
        level = [op for op in inner if name_of(op) == anchor or (anchor == ANY and op.regions)]
    yield from level


def _apply_alone(module_pass: ModulePass, context: Context, op: Operation) -> None:
    """Move the operation into a separate module, run the pass on this module, and put the result back in the
    operation's place."""
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


def pipeline_text(passes: tuple[ScheduledPass, ...]) -> str:
    """Return the pipeline as MLIR writes it."""
    return f"{MODULE}({','.join(map(str, passes))})"
