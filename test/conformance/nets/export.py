"""Write the counterparts as StableHLO text next to this file.

python test/conformance/nets/export.py [NAME ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

import models  # noqa: E402
from models import BLOCKS, of  # noqa: E402


@dataclass(frozen=True)
class Net:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


SQUARE = of(1024, 1024)
ATTENTION = (of(8, 128, 16, 32), *[of(8, 128, 128)] * BLOCKS)
FLEET = ([of(10, 1 if index == 14 else 10) for index in range(15)], of(4, 10), [of(4, 10, dtype=jnp.bool_)] * 5)
LAYERS = ([*[of(8, 8), of(8)] * 4, of(8, 1), of(1)], of(16, 8), of(16, 1))
MLP = ([of(32, 128), of(128), of(128, 2), of(2)], of(32, 32), of(32, 1, dtype=jnp.int32))
KEYS = of(4, 2, dtype=jnp.uint32)

NETS: dict[str, Net] = {
    "attention": Net(models.pulled_back(models.attention_net), ATTENTION),
    "attention_dropout": Net(
        models.pulled_back(models.attention_with_dropout, (1,)), (of(BLOCKS, 2, dtype=jnp.uint32), *ATTENTION)
    ),
    "conv_relu": Net(models.pulled_back(models.conv_relu), (of(2, 2, 2, 2), of(2, 2, 2, 2))),
    "sin_exp_cos_tanh": Net(models.pulled_back(models.chain(jnp.sin, jnp.exp, jnp.cos, jnp.tanh)), (SQUARE,)),
    "exp_sqrt_exp_tanh": Net(models.pulled_back(models.chain(jnp.exp, jnp.sqrt, jnp.exp, jnp.tanh)), (SQUARE,)),
    "fleet": Net(jax.value_and_grad(models.fleet_loss), FLEET),
    "mlp": Net(jax.value_and_grad(models.mlp_loss), MLP),
    "layers": Net(jax.value_and_grad(models.layers_loss()), LAYERS),
    "layers_dropout": Net(jax.value_and_grad(models.layers_loss(models.halved)), (*LAYERS, KEYS)),
    "gumbel": Net(jax.value_and_grad(models.layers_loss(models.gumbel_softmax)), (*LAYERS, KEYS)),
    "rrelu": Net(jax.value_and_grad(models.layers_loss(models.rrelu)), (*LAYERS, KEYS)),
    "branches": Net(jax.value_and_grad(models.branches_loss), LAYERS),
    "dropout": Net(jax.value_and_grad(models.noisy_loss, has_aux=True), (of(4000), of(2, dtype=jnp.uint32))),
    "batch_norm": Net(jax.value_and_grad(models.batch_norm_loss, has_aux=True), (of(4, 3, 5, 5),)),
}


def as_text(net: Net) -> str:
    """Return StableHLO with locations; file names are relative to the repository or to site-packages."""
    folders = rf"^(.*/site-packages/|{re.escape(str(ROOT))}/)"
    jax.config.update("jax_hlo_source_file_canonicalization_regex", folders)
    return jax.jit(net.function).lower(*net.arguments).as_text(debug_info=True)


def main(names: list[str]) -> None:
    """Export each net in a process of its own, since JAX numbers the functions of a process."""
    if len(names) == 1:
        (HERE / f"{names[0]}.mlir").write_text(as_text(NETS[names[0]]))
        return
    for name in names or NETS:
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
