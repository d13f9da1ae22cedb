"""`recompute.jax` is there when it is asked for, and JAX is not imported before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_jax_is_not_installed(tmp_path: Path):
    assert "pip install 'xdsl-recompute[jax]'" in run(NOT_INSTALLED, tmp_path)
