"""Lazy import of `recompute.jax`, which imports JAX only when used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import recompute

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
from recompute.jax.options import options_of
import recompute.frontends.jax as folder
assert rj is recompute.jax is folder is sys.modules["recompute.jax"] and rj.jit is jit
assert rj.__name__ == rj.__spec__.name == "recompute.frontends.jax"
assert sys.modules["recompute.jax.options"] is sys.modules["recompute.frontends.jax.options"]
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


def run(script: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_jax_is_imported_with_the_attribute(tmp_path: Path):
    run(WITHOUT, tmp_path)


@pytest.mark.parametrize("folder", [None, Path(recompute.__file__).parent], ids=["elsewhere", "in the repository"])
def test_a_frontend_is_a_module(tmp_path: Path, folder: Path | None):
    run(AS_A_MODULE, folder or tmp_path)


def test_a_module_without_its_framework(tmp_path: Path):
    without = NOT_INSTALLED.replace("    recompute.jax\n", "    import recompute.jax\n")
    assert "pip install 'xdsl-recompute[jax]'" in run(without, tmp_path)


def test_jax_is_not_installed(tmp_path: Path):
    assert "pip install 'xdsl-recompute[jax]'" in run(NOT_INSTALLED, tmp_path)
