"""At the same blocks ours takes no more than the frameworks' own remat; numbers, donation and shardings stay.

The models are those of `benchmarks/peers`, small.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import recompute

pytest.importorskip("jax", reason="the frontend for JAX")
pytest.importorskip("optax", reason="the optimizers of the steps")

from recompute.benchmarks.peers import bars
from recompute.benchmarks.peers.costs import costs
from recompute.benchmarks.peers.distance import distances
from recompute.benchmarks.peers.forms import PLAIN, SAME, THEIRS
from recompute.benchmarks.peers.peer import SMALL
from recompute.benchmarks.peers.random_program import built, program
from recompute.benchmarks.peers.registry import PEERS
from recompute.benchmarks.peers.settings import CPU
from recompute.test.unit.frontends.steps import jax

ROOT = Path(recompute.__file__).resolve().parent
NEEDS = {"linen": "flax", "lstm": "flax", "nnx": "flax", "equinox": "equinox"}


def peer_of(name: str) -> Any:
    if library := NEEDS.get(name.split()[0]):
        pytest.importorskip(library, reason="the step's own framework")
    return PEERS[name]


# Most of plain's temporaries that ours may need: a step that saves nothing would be within theirs on a bad day.
@pytest.mark.parametrize(
    ("name", "most"),
    [("gpt", 0.5), ("linen gpt adamw", 0.5), ("linen resnet", 0.8), ("unet", 0.9), ("moe", 0.6)],
)
def test_at_the_same_blocks(name: str, most: float):
    row = costs(peer_of(name), SMALL, (THEIRS, SAME), CPU[:1])
    (found,) = ({form: asdict(cost) for form, cost in made.items()} for made in row["costs"].values())
    assert row["errors"] == {} and list(bars.missed(found)) == []
    assert found[SAME]["temp_bytes"] <= most * found[PLAIN]["temp_bytes"]
    assert found[SAME]["why"] is None


def test_the_state_of_adamw_is_donated():
    peer = peer_of("linen gpt adamw")
    made = peer.build(None, SMALL)
    state = jax.tree.leaves(made.arguments(0)[0])
    compiled = recompute.jax.jit(made.step, **made.options).lower(*made.arguments(0)).compile()
    memory = compiled.memory_analysis()
    assert memory is not None
    assert memory.alias_size_in_bytes == sum(leaf.nbytes for leaf in state if hasattr(leaf, "nbytes"))


@pytest.mark.parametrize("name", ["gpt, no scopes", "equinox vit"])
def test_results(name: str):
    found = distances(peer_of(name), SMALL, range(2))
    assert list(found.missed()) == []


ON_A_MESH = """
import warnings

import jax

import recompute
from recompute.benchmarks.peers.distance import far
from recompute.benchmarks.peers.costs import arrays
from recompute.benchmarks.peers.registry import PEERS

warnings.simplefilter("error", recompute.jax.NothingSaved)
for name in ("mesh automatic", "mesh explicit"):
    made = PEERS[name].build(None, "small")
    with made.context():
        ours = recompute.jax.jit(made.step, segments="block*", measure=False, **made.options)(*made.arguments(0))
        theirs = jax.jit(made.step, **made.options)(*made.arguments(0))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert jax.typeof(a) == jax.typeof(b), (name, jax.typeof(a), jax.typeof(b))
        assert a.sharding.is_equivalent_to(b.sharding, a.ndim), (name, a.sharding, b.sharding)
        assert len(a.sharding.device_set) == 8
    assert any(not a.sharding.is_fully_replicated for a in jax.tree.leaves(ours)), name
    assert max(map(far, arrays(theirs), arrays(ours), strict=False)) <= 8, name
"""


def test_shardings_on_a_mesh():
    """In a process of its own: devices are asked for before JAX starts."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": str(ROOT.parent),
    }
    done = subprocess.run([sys.executable, "-c", ON_A_MESH], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_random_programs_are_the_same_for_the_same_seed():
    assert program(7) == program(7)
    assert len({str(program(seed)) for seed in range(30)}) == 30
    texts = [jax.jit(made.step).lower(*made.arguments(0)).as_text() for made in (built(program(7)), built(program(7)))]
    assert texts[0] == texts[1]


def test_random_programs_vary():
    """All kinds of layers, losses and optimizers come within a hundred."""
    drawn = [program(seed) for seed in range(100)]
    assert {node.kind for one in drawn for node in one.nodes} >= {"attention", "conv2d", "scan", "cond", "checkpointed"}
    assert {one.optimizer for one in drawn} == {"none", "sgd", "adam"}
    assert {one.donated for one in drawn} == {True, False}
    assert any(one.second for one in drawn) and any(one.aux for one in drawn) and any(one.embedded for one in drawn)
    assert all(place <= number for one in drawn for number, node in enumerate(one.nodes) for place in node.reads)
