"""Measure recomputation in training steps without locations, in forms that other tools write.

    python -m recompute.benchmarks.xla_memory.without_locations                 # all steps, one line for each
    python -m recompute.benchmarks.xla_memory.without_locations vit_lamb

Results: temporaries as shares of the plain step's, printed only. Time: about 2 minutes.

Each of the twelve steps is lowered by JAX with scope names, and without them in a foreign form: the loss is computed
last or not returned, results are a tuple, or batch normalization is one operation. The columns list: XLA:CPU's
temporaries of the named step and of the foreign form after `recompute`, as shares of the plain step's; their ratio;
whether the rewrite of the foreign form is proved; and the guess about its phases.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import jax
from jax.interpreters import mlir
from jaxlib.mlir import ir

from recompute.benchmarks.harness.command_line import add_names, benchmark_parser
from recompute.benchmarks.harness.compiled_cost import temporary_bytes
from recompute.benchmarks.xla_memory.foreign_steps import STEPS, Form, lowered
from recompute.examples.with_jax import compile_keeping_barriers, with_module
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place


def foreign(step: jax.stages.Lowered, form: Form) -> str:
    """Return the text of the step in the given form, without locations."""
    module: Any = ir.Module.parse(step.as_text(), mlir.make_ir_context())
    form(next(function for function in module.body if function.name.value == "main"))
    return str(module)


def temporaries(step: jax.stages.Lowered) -> int:
    """Compile a step with barriers kept, and return its bytes of temporaries."""
    return temporary_bytes(compile_keeping_barriers(step))


def rewritten(text: str) -> tuple[str, bool, list[str]]:
    """Run `recompute`, and return the new text, whether it is proved equal, and the remarks."""
    module = parse_module(text)
    outcome = rewrite_in_place(module)
    remarks = [str(remark.reason) for remark in outcome.remarks]
    return print_module(module), bool(prove(parse_module(text), module)), remarks


def untupled(text: str) -> str:
    """Return the text with its result tuple split, since JAX expects separate results."""
    module: Any = ir.Module.parse(text, mlir.make_ir_context())
    function = next(each for each in module.body if each.name.value == "main")
    end = list(function.entry_block.operations)[-1]
    whole = end.operands[0].owner
    if whole.name != "stablehlo.tuple":
        return text
    parts = list(whole.operands)
    with ir.InsertionPoint(end), ir.Location.unknown(module.context):
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([argument.type for argument in function.arguments], [part.type for part in parts])
        )
        ir.Operation.create("func.return", operands=parts)
    end.erase()
    whole.erase()
    return str(module)


def row(name: str) -> str:
    """Measure one step, and return its table row as a string."""
    form = STEPS[name].form
    with_names, without = lowered(name, True), lowered(name, False)
    plain = temporaries(without)
    named = temporaries(with_module(with_names, rewritten(with_names.as_text(debug_info=True))[0]))
    text, proved, remarks = rewritten(foreign(without, form))
    size = temporaries(with_module(without, untupled(text)))
    return (
        f"{name:<20}{form.__name__:<10}{named / plain:>8.3f}{size / plain:>8.3f}{size / named:>8.3f}  "
        f"{'proved' if proved else 'not proved'}  {'; '.join(reason for reason in remarks if 'guess' in reason)}"
    )


def main() -> None:
    """Print a table row for each requested step."""
    parser = benchmark_parser(__doc__)
    add_names(parser, "step", STEPS)
    names = parser.parse_args().names or STEPS
    print(f"{'step':<20}{'form':<10}{'named':>8}{'foreign':>8}{'ratio':>8}")
    for name in names:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
