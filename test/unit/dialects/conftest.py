from __future__ import annotations

from collections.abc import Iterator

import pytest

from .judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    pytest.importorskip("jax", reason="JAX's MLIR judges what is read and written here")
    judge = Judge()
    yield judge
    judge.close()
