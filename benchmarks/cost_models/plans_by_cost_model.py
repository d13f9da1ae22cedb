"""Compare plans by cost model, and the roofline model with measured times, for docs/measured/costs.md.

    python -m recompute.benchmarks.cost_models.plans_by_cost_model plans gpt.large unet.large
    python -m recompute.benchmarks.cost_models.plans_by_cost_model times gpt.large resnet.large

Results: extra cost in percent, and seconds, in docs/measured/costs.md. Time: about 1 minute for an example.

`plans` makes a plan under each cost model, and reports its cost under every model. It also proves that every planned
step is equal to the original. `times` compares the measured time of a run in XLA:CPU with the roofline. The measured
time is the best of three runs after a warm-up, and is affected by other load on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from recompute import RecomputeOptions, rewrite
from recompute.benchmarks.harness.command_line import benchmark_parser
from recompute.benchmarks.harness.markdown import table_head, table_row
from recompute.benchmarks.harness.paths import EXAMPLES
from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.rules.costs.cost import Cost, cost_named
from recompute.support.operations import every_operation
from recompute.transforms.inline import inline

COST_MODELS = ("flops", "bytes", "roofline(cpu)", "roofline(h100)")
ROUNDS = 4
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.mlir"))


def text_of(name: str) -> str:
    """Return the program text of an example, given its name, such as `gpt.large`."""
    return (EXAMPLES / f"{name}.mlir").read_text()


def operations_of(module: ModuleOp) -> list[Operation]:
    """Return the operations of the function `main` after inlining its calls."""
    inline(module)
    (main,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"]
    return list(main.body.block.ops)


def plans(name: str, budget: str) -> None:
    """Print a row for each cost model with which the step is planned.

    Each cell gives the cost of the plan's copies under one cost model, in percent of the step's cost.
    """
    before = operations_of(parse_module(text_of(name)))
    costs = [cost_named(model) for model in COST_MODELS]
    print(table_head((f"{name} at {budget}, planned by", *COST_MODELS)))
    for planned in COST_MODELS:
        requested = RecomputeOptions(budget=budget, cost=planned, target="none", calls=False)
        module = rewrite(text_of(name), requested).module
        copies = [op for op in every_operation(module) if Names.COPY in op.attributes]
        shares = [f"{100 * _total(cost, copies) / _total(cost, before):.2f}" for cost in costs]
        print(table_row((planned, *shares)))


def _total(cost: Cost, operations: Sequence[Operation]) -> int:
    return sum(cost.of(operations))


def times(name: str) -> None:
    """Print a row with the predicted and the measured seconds of a step."""
    operations = operations_of(parse_module(text_of(name)))
    roofline = sum(cost_named("roofline").of(operations)) / 1e12
    seconds = measured_seconds(name)
    print(table_row((name, f"{roofline:.2f}", f"{seconds:.2f}", f"{seconds / roofline:.1f}")), flush=True)


def measured_seconds(name: str) -> float:
    """Return the seconds of one run of the plain step in XLA:CPU."""
    jax = import_module("jax")
    client, private = jax.devices("cpu")[0].client, import_module("jax._src.lib").xla_client
    devices = private._xla.DeviceList((jax.devices("cpu")[0],))
    loaded = client.compile_and_load(text_of(name), devices, private.CompileOptions())
    (main,) = [op for op in parse_module(text_of(name)).ops if isinstance(op, FuncOp) and op.sym_name.data == "main"]
    durations = [
        _once(loaded, [_ones(jax.numpy, type_) for type_ in main.function_type.inputs.data]) for _ in range(ROUNDS)
    ]
    return min(durations[1:])


def _ones(numpy: Any, type_: Any) -> Any:
    """Return a new array filled with 1. Each run needs new arguments, because it consumes the donated arguments."""
    names = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "ui32": "uint32", "i64": "int64", "i1": "bool"}
    return numpy.ones(type_.get_shape(), names[str(type_.element_type)]).block_until_ready()


def _once(loaded: Any, arguments: Sequence[Any]) -> float:
    start = perf_counter()
    for shards in loaded.execute_sharded(arguments).disassemble_into_single_device_arrays():
        for shard in shards:
            shard.block_until_ready()
    return perf_counter() - start


def main() -> None:
    """Print the requested table."""
    parser = benchmark_parser(__doc__)
    parser.add_argument("what", choices=["plans", "times"], help="the table to print")
    examples = "the examples to measure, with their sizes, such as gpt.large"
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="EXAMPLE", help=examples)
    parser.add_argument(
        "--budget",
        default="50%",
        help="the peak within which `plans` plans, as a share of the plain peak (default: 50%%)",
    )
    options = parser.parse_args()
    if options.what == "times":
        print(table_head(("step", "roofline, s", "XLA:CPU, s", "measured / roofline")))
    for name in options.names:
        if options.what == "plans":
            plans(name, options.budget)
        else:
            times(name)


if __name__ == "__main__":
    main()
