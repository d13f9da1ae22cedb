"""Build four variants of a step: plain, with inlined calls, recomputed, and with `jax.checkpoint` on every block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from recompute.examples.models.step import Step
from recompute.examples.with_jax import with_module
from recompute.interpreters.execute_check import PreparedPair
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import INPUT_KINDS, random_inputs
from recompute.interpreters.kernels.arrays import Array
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.transforms.inline import inline

PLAIN, INLINED, OURS, CHECKPOINT = "plain", "inlined", "ours", "jax.checkpoint"


@dataclass(frozen=True)
class Forms:
    """The variants of a step by name, both as modules and as JAX's lowered steps."""

    step: Step
    modules: Mapping[str, ModuleOp]
    lowered: Mapping[str, jax.stages.Lowered]

    @classmethod
    def of(cls, step: Step, checkpointed: Step) -> Forms:
        """Build all variants of a step. `checkpointed`: the step with `jax.checkpoint` on every block."""
        plain, checkpoint = step.lower(), checkpointed.lower()
        original = parse_module(plain.as_text(debug_info=True))
        inlined, ours = original.clone(), original.clone()
        inline(inlined)
        rewrite_in_place(ours)
        twin = parse_module(checkpoint.as_text(debug_info=True))
        rewritten = {
            name: with_module(plain, print_module(entry)) for name, entry in ((INLINED, inlined), (OURS, ours))
        }
        return cls(
            step,
            {PLAIN: original, INLINED: inlined, OURS: ours, CHECKPOINT: twin},
            {PLAIN: plain, **rewritten, CHECKPOINT: checkpoint},
        )

    def unequal(self) -> Iterator[str]:
        """Yield a message for each variant that is not proved equal to the plain step, or differs from it in numpy."""
        plain = self.modules[PLAIN]
        inputs = {kind: random_inputs(function_named(plain), kind=kind) for kind in INPUT_KINDS}
        for name in (INLINED, OURS, CHECKPOINT):
            module = self.modules[name]
            proof, pair = prove(plain, module), PreparedPair.of(plain, module)
            if not proof:
                yield f"{name} is not proved equal to the plain step: {proof.reason}"
            for kind, arrays in inputs.items():
                if (difference := pair.compare(arrays).difference) is not None:
                    yield f"{name} differs in numpy on {kind} inputs: {difference}"

    def by_numpy(self, inputs: Any) -> list[Array]:
        """Execute the plain step in numpy, and return its results."""
        arrays = [jax.device_get(leaf) for leaf in jax.tree.leaves(inputs)]
        return list(execute(function_named(self.modules[PLAIN]), arrays))
