"""Each recipe of docs/recipes.md trains, and recomputes something."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

import recompute

pytestmark = pytest.mark.slow

pytest.importorskip("jax", reason="the page is about JAX")
pytest.importorskip("optax", reason="the optimizers of the recipes")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
TEXT = PAGE.read_text()
RECIPES = dict(re.findall(r"^## ([^\n]+)\n.*?```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE))
NEEDS = {
    "flax nnx": "flax.nnx",
    "flax linen with a TrainState": "flax",
    "equinox": "equinox",
    "optax": "optax",
    "haiku": "haiku",
    "Keras on JAX": "keras",
}
AFTER_EACH_CALL = re.compile(r"^( +)(.*= train_step\(.*|.*= step\(.*)$", re.MULTILINE)


def test_every_recipe_states_its_framework():
    assert RECIPES.keys() == NEEDS.keys() == set(re.findall(r"^## (.*)$", TEXT, re.MULTILINE))


@pytest.mark.slow("linen", "equinox", "haiku", "Keras", "optax")
@pytest.mark.parametrize("name", NEEDS)
def test_recipes_train_with_equal_losses(name: str, tmp_path: Path):
    """The losses of a recipe equal those of the same lines under the framework's own `jit`."""
    pytest.importorskip(NEEDS[name], reason="the recipe's framework")
    with warnings.catch_warnings():
        warnings.simplefilter("error", recompute.jax.NothingSaved)
        losses = losses_of(RECIPES[name], tmp_path / "ours.py")
    assert losses[0] > losses[-1]
    # XLA may round the two programs differently: Keras's losses differ in the last bit.
    assert losses == pytest.approx(losses_of(with_framework_jit(RECIPES[name]), tmp_path / "theirs.py"), rel=1e-6)


def losses_of(snippet: str, path: Path) -> list[float]:
    """Run the snippet, and return the loss after each of its steps."""
    name = "value" if ", value = train_step" in snippet else "loss"
    traced = AFTER_EACH_CALL.sub(rf"\1\2\n\1losses.append(float({name}))", snippet)
    path.write_text(f"from functools import partial\n\nlosses = []\n{traced}")
    result: dict[str, Any] = runpy.run_path(str(path))
    assert len(result["losses"]) == 3
    return result["losses"]


def with_framework_jit(snippet: str) -> str:
    """Return the snippet with the framework's own `jit` in place of ours, and without its report."""
    lines = [line for line in snippet.splitlines() if not line.startswith("print(")]
    text = "\n".join(lines).replace("recompute.nnx.jit", "nnx.jit").replace("recompute.eqx.", "eqx.")
    return re.sub(r"@recompute\.jax\.jit\((.*?)\)  #", r"@partial(jax.jit, \1)  #", text).replace(
        "recompute.jax.jit", "jax.jit"
    )
