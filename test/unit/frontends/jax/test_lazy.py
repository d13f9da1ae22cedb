"""Frontends and public names are imported at their first use, without other modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recompute
from recompute.frontends.import_hook import FRONTENDS

pytest.importorskip("jax", reason="the frontend for JAX")

WITHOUT = """
import sys
import recompute
from recompute import *
import recompute.universe
dir(recompute)
assert "jax" not in sys.modules
recompute.rewrite, recompute.Selection
assert "jax" not in sys.modules
assert callable(recompute.jax.jit) and "jax" in sys.modules
import jax
assert jax.__name__ == "jax" and recompute.jax is not jax
from recompute import jax as ours
assert ours is recompute.jax and set(ours.__all__) <= set(dir(ours))
"""

AS_A_MODULE = """
import sys
import recompute.jax
import recompute.jax as rj
from recompute.jax import jit
from recompute.jax.keywords.jit_options import options_of
import recompute.frontends.jax as folder
assert rj is recompute.jax is folder is sys.modules["recompute.jax"] and rj.jit is jit
assert rj.__name__ == rj.__spec__.name == "recompute.frontends.jax"
assert sys.modules["recompute.jax.keywords.jit_options"] is sys.modules["recompute.frontends.jax.keywords.jit_options"]
import jax, importlib.util
assert jax.__name__ == "jax" and importlib.util.find_spec("recompute.tensorflow") is None
"""

NOT_INSTALLED = """
import sys
sys.modules["jax"] = None
import recompute
try:
    recompute.jax
except ImportError as error:
    print(error)
"""


LIGHT_UNTIL_THREADS_CALL = """
import sys
import recompute.jax
recompute.jax.block, recompute.jax.save, recompute.jax.disabled, recompute.jax.NothingSaved
recompute.jax.paddle.recompute, recompute.jax.mindspore.Cell
heavy = [f"recompute.{name}" for name in "driver options planning rules search transforms".split()]
heavy += ["xdsl", "numba", "networkx", "highspy"]
print(*[name for name in heavy if name in sys.modules])

import threading
import jax
import jax.numpy as jnp
import recompute.jax

def loss(w, x):
    return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

def first_call(number):
    start.wait()
    step = recompute.jax.jit(jax.value_and_grad(loss), measure=False)
    results[number] = step(jnp.eye(4), jnp.ones((4, 4)))[0]

results, start = {}, threading.Barrier(4)
threads = [threading.Thread(target=first_call, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4 and len({float(result) for result in results.values()}) == 1, results
"""


def run(script: str, folder: Path) -> str:
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_dir_lists_the_frontends():
    assert set(FRONTENDS) <= set(dir(recompute))


def test_jax_is_imported_at_first_attribute_access(tmp_path: Path):
    run(WITHOUT, tmp_path)


@pytest.mark.slow("elsewhere")
@pytest.mark.parametrize("folder", [None, Path(recompute.__file__).parent], ids=["elsewhere", "in the repository"])
def test_frontend_is_an_importable_module(tmp_path: Path, folder: Path | None):
    run(AS_A_MODULE, folder or tmp_path)


def test_importing_a_frontend_without_its_framework_names_the_install(tmp_path: Path):
    without = NOT_INSTALLED.replace("    recompute.jax\n", "    import recompute.jax\n")
    assert "pip install 'xdsl-recompute[jax]'" in run(without, tmp_path)


def test_missing_jax_error_names_the_install(tmp_path: Path):
    assert "pip install 'xdsl-recompute[jax]'" in run(NOT_INSTALLED, tmp_path)


def test_package_import_omits_the_engine_and_its_import_is_thread_safe(tmp_path: Path):
    """The import of the package omits the engine, which the first calls then import, in several threads at once."""
    assert run(LIGHT_UNTIL_THREADS_CALL, tmp_path).split() == []


@pytest.mark.parametrize("module", [recompute, recompute.jax], ids=["recompute", "recompute.jax"])
def test_public_names_are_listed_consistently(module: ModuleType):
    """`__all__`, the imports for type checkers and the lazy names agree, and no public name hides a module."""
    path = Path(str(module.__file__))
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    typed = {alias.name for node in imports if node.level for alias in node.names if alias.asname == alias.name}
    assert typed - FRONTENDS.keys() == set(module.__all__)
    modules = {file.stem for file in path.parent.glob("*.py")}
    assert not modules & set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__name__ if name != "config" else module.config


def test_unknown_name_raises_attribute_error():
    with pytest.raises(
        AttributeError, match=r"module 'recompute\.frontends\.jax' has no attribute 'jitt'; did you mean 'jit'"
    ):
        getattr(recompute.jax, "jitt")  # noqa: B009
    with pytest.raises(AttributeError, match=r"module 'recompute' has no attribute 'jaxx'; did you mean 'jax'"):
        getattr(recompute, "jaxx")  # noqa: B009
