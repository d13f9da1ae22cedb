"""The fixture `judge`: JAX's own MLIR, shared by all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recompute.test.mlir_judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    pytest.importorskip("jax", reason="JAX's MLIR judges what is read and written here")
    judge = Judge()
    yield judge
    judge.close()
