"""Fixtures of this folder: one judge for all tests, since it takes a second or two to start."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from .judge import Judge
from .programs import Base, bases

SMALL = "calls barriers dead_and_double unknown_regions sharding effects tiny_modules regions attributes blocks".split()


@pytest.fixture(scope="session")
def judge() -> Generator[Judge]:
    with Judge() as context:
        yield context


@pytest.fixture(scope="session")
def programs(judge: Judge) -> Sequence[Base]:
    """Return some of the hand-written programs that are fast to check."""
    return bases(judge, SMALL)
