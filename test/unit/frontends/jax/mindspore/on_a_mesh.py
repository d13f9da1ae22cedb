"""MindSpore's options for several devices, on eight devices; `test_mindspore.py` runs this in a process of its own."""

# pyright: basic

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import recompute
from recompute.test.unit.frontends.jax.steps import far_apart, temporaries

LAYERS = 6
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
Spec = PartitionSpec


def placed(spec: PartitionSpec, *shape: int) -> Any:
    array = np.random.default_rng(sum(shape)).normal(0, 0.1, shape)
    return jax.device_put(jnp.asarray(array, jnp.float32), NamedSharding(MESH, spec))


def layer(w: Any, x: Any) -> Any:
    return x + jnp.tanh(jnp.sin(x @ w["up"]) * 2) @ w["down"]


def summed(w: Any, x: Any) -> Any:
    """Layer with manual collectives in which each device has half of the hidden values."""
    return x + jnp.tanh(jax.lax.psum(jnp.tanh(jnp.sin(x @ w["up"]) * 2) @ w["down"], "model"))


def gathered(w: Any, x: Any) -> Any:
    """Layer with manual collectives in which each device has half of each parameter."""
    up = jax.lax.all_gather(w["up"].astype(jnp.bfloat16), "model", axis=0, tiled=True).astype(jnp.float32)
    return x + jnp.tanh(jnp.sin(x @ up) * 2) @ up.T


def gradient(call: Any) -> Any:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = call(w, x)
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)


def lowered(call: Any, arguments: Any, around: Any = lambda step: step, **switches: bool) -> recompute.jax.Lowered:
    cell = recompute.jax.mindspore.Cell(call)
    cell.recompute(**switches)
    actual = recompute.jax.jit(around(gradient(cell)), measure=False).lower(*arguments)
    expected = jax.jit(around(gradient(call)))(*arguments)
    assert actual.why is None, actual.why
    assert far_apart(actual.compile()(*arguments), expected) == []
    return actual


def count(first: Any, operation: str) -> int:
    return first.as_text().count(operation)


def kept_inputs_are_sharded() -> None:
    weights = [{"up": placed(Spec(None, "model"), 64, 256), "down": placed(Spec("model"), 256, 64)}] * LAYERS
    arguments = weights, placed(Spec("data"), 4096, 64)
    whole, sharded = (lowered(layer, arguments, recompute_slice_activation=flag) for flag in (False, True))
    assert count(whole, "sdy.sharding_constraint") == 0
    # The first block reads the batch, which is there anyway; the last is left alone.
    assert count(sharded, '[{?}, {"model", ?}]') >= LAYERS - 2
    saved = temporaries(whole.compile()) - temporaries(sharded.compile())
    kept = 4096 // 4 * 64 * 4
    assert saved > 0.5 * (LAYERS - 2) * kept / 2, saved


def missing_mesh_is_reported() -> None:
    arguments = [{"up": jnp.ones((64, 256)), "down": jnp.ones((256, 64))}] * 3, jnp.ones((512, 64))
    actual = lowered(layer, arguments, recompute_slice_activation=True)
    assert any(
        "recompute_slice_activation has no effect: the module has no mesh" in str(each) for each in actual.remarks
    )


def collectives_of_tensors() -> None:
    weights = [{"up": placed(Spec(None, "model"), 64, 256), "down": placed(Spec("model"), 256, 64)}] * LAYERS
    specs = [{"up": Spec(None, "model"), "down": Spec("model")}] * LAYERS
    around = partial(
        jax.shard_map, mesh=MESH, in_specs=(specs, Spec("data")), out_specs=(Spec(), specs), check_vma=False
    )
    arguments = weights, placed(Spec("data"), 512, 64)
    again, kept = (lowered(summed, arguments, around, mp_comm_recompute=flag) for flag in (True, False))
    assert count(kept, "stablehlo.all_reduce") == count(kept.plain, "stablehlo.all_reduce")
    assert count(again, "stablehlo.all_reduce") > count(kept, "stablehlo.all_reduce")
    sliced = lowered(summed, arguments, around, recompute_slice_activation=True)
    assert any(
        "has no effect in a loop, and where each device has values of its own" in str(remark)
        for remark in sliced.remarks
    )


def collectives_of_parameters() -> None:
    weights = [{"up": placed(Spec("model"), 64, 256)}] * LAYERS
    specs = [{"up": Spec("model")}] * LAYERS
    around = partial(
        jax.shard_map, mesh=MESH, in_specs=(specs, Spec("data")), out_specs=(Spec(), specs), check_vma=False
    )
    arguments = weights, placed(Spec("data"), 512, 64)
    kept, again = (
        lowered(gathered, arguments, around, parallel_optimizer_comm_recompute=flag) for flag in (False, True)
    )
    assert count(kept, "stablehlo.all_gather") == count(kept.plain, "stablehlo.all_gather")
    assert count(again, "stablehlo.all_gather") > count(kept, "stablehlo.all_gather")


if __name__ == "__main__":
    kept_inputs_are_sharded()
    missing_mesh_is_reported()
    collectives_of_tensors()
    collectives_of_parameters()
    print("as it should be")
